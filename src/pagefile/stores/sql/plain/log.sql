-- The turn log where a statement costs no round trip: a turn is written, and a view is read, in several.

-- fragment: relabelled
agent = coalesce(excluded.agent, c.agent),
  project = coalesce(excluded.project, c.project),
  language = coalesce(excluded.language, c.language),
  timezone = coalesce(excluded.timezone, c.timezone)

-- name: conversation_touch
-- A write begins: the conversation gets its owner, its agent, its labels and its times.
INSERT INTO conversations AS c (
  tenant, conversation_id, user_id, owner, agent, project, language, timezone, created, updated)
VALUES (:tenant, :conversation, :user, coalesce(:user, ''), :agent, :project, :language, :timezone, :now, :now)
ON CONFLICT (tenant, conversation_id) DO UPDATE SET
  {relabelled},
  updated = {greatest}(c.updated, excluded.updated)

-- name: conversation_turn
-- The same for a turn that ends in this write.
INSERT INTO conversations AS c (
  tenant, conversation_id, user_id, owner, agent, project, language, timezone, created, updated, last_create_time, last_seq,
  turns, live_turns, live_tokens)
VALUES (
  :tenant, :conversation, :user, coalesce(:user, ''), :agent, :project, :language, :timezone, :now, :now, :created, 1,
  :done_turns, :done_turns, :live_tokens)
ON CONFLICT (tenant, conversation_id) DO UPDATE SET
  {relabelled},
  updated = {greatest}(c.updated, excluded.updated),
  last_create_time = excluded.last_create_time,
  last_seq = c.last_seq + 1,
  turns = c.turns + excluded.turns,
  live_turns = c.live_turns + excluded.live_turns,
  live_tokens = c.live_tokens + excluded.live_tokens

-- name: conversation_goes_on
-- The same where the conversation is known and stays as it is: a plain update takes less than half the time.
UPDATE conversations SET
  updated = {greatest}(updated, :now), last_create_time = :created, last_seq = last_seq + 1, turns = turns + :done_turns,
  live_turns = live_turns + :done_turns, live_tokens = live_tokens + :live_tokens
WHERE tenant = :tenant AND conversation_id = :conversation

-- name: turn_insert
INSERT INTO ai_message (
  message_id, conversation_id, query, answer, create_time, create_by, update_time, update_by, tenant, seq, kind, status,
  "at", steps, metadata, messages, digest, user_tokens, assistant_tokens, tokens, counter)
VALUES (
  :id, :conversation, :query, :answer, :created, :user, :now,
  :user, :tenant, :seq, 'turn', :status,
  :at, :steps, :metadata, :messages, :digest, :user_tokens, :assistant_tokens, :tokens, :counter)
ON CONFLICT (message_id, conversation_id, tenant) DO NOTHING

-- name: turn_update
UPDATE ai_message SET
  query = :query, user_tokens = :user_tokens, messages = :messages, digest = :digest,
  answer = :answer, create_time = :created, update_time = :now, update_by = :user, seq = :seq, status = :status,
  steps = :steps, assistant_tokens = :assistant_tokens, tokens = :tokens
WHERE message_id = :id AND conversation_id = :conversation AND tenant = :tenant

-- name: view
-- The head and the checkpoint in force, in one row.
SELECT {head},
  s.id, s.seq, s.version, s.summary, s.covered_through_seq, s.covered_turns, s.created_at, s.tokens, s.counter,
  s.anchors, s.archive_refs, s.fallback_reason,
  {session_profile}
FROM conversations AS c
LEFT JOIN sessions AS v ON v.tenant = c.tenant AND v.conversation_id = c.conversation_id
LEFT JOIN conversation_summaries AS s ON s.conversation_id = c.conversation_id AND s.tenant = c.tenant
WHERE c.tenant = :tenant AND c.conversation_id = :conversation

-- name: turns_running
-- Open turns, newest first; the one that a window is for is always among them.
SELECT {entry} FROM ai_message AS m
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq IS NULL AND {not_reset}
ORDER BY coalesce(m.message_id = :open_turn, FALSE) DESC, {place} DESC LIMIT :limit

-- name: turns_back
-- Live turns, newest first, some at a time.
SELECT {entry} FROM ai_message AS m
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq > :after_seq AND m.seq < :before_seq
AND {counts}
ORDER BY m.seq DESC LIMIT :limit

-- name: turns_up_to
-- A turn and the one before it.
SELECT {entry} FROM ai_message AS m
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq <= :seq AND {counts}
ORDER BY m.seq DESC LIMIT 2

-- name: turns_at
SELECT {entry} FROM ai_message AS m
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq {in seqs} AND {counts}

-- name: entries_ended
SELECT {entry} FROM ai_message AS m WHERE {asked_for} AND m.seq > :after_seq ORDER BY m.seq LIMIT :limit

-- name: entries_ended_back
SELECT {entry} FROM ai_message AS m WHERE {asked_for} AND m.seq > :after_seq ORDER BY m.seq DESC LIMIT :limit

-- name: entries_open
SELECT {entry} FROM ai_message AS m WHERE {asked_for} AND m.seq IS NULL ORDER BY {place} LIMIT :limit

-- name: entries_open_back
SELECT {entry} FROM ai_message AS m WHERE {asked_for} AND m.seq IS NULL ORDER BY {place} DESC LIMIT :limit
