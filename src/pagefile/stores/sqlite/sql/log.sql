-- The turn log: conversations, ai_message, conversation_summaries.

-- fragment: entry
m.kind, m.message_id, m.seq, m.status, m.query, m.answer, m.steps, m.at, m.create_time,
m.user_tokens, m.assistant_tokens, m.tokens, m.counter, m.metadata, m.messages

-- fragment: counted
c.user_id, c.agent, c.created, c.updated, c.last_seq, c.reset_seq, c.covered_through_seq,
c.turns, c.live_turns, c.live_tokens, c.project, c.language, c.timezone

-- fragment: head
{counted}, (SELECT coalesce(max(epoch), 0) FROM scope_epochs)

-- name: state
-- What a write must know about its conversation; the current checkpoint's version is 0 after a reset.
SELECT {counted}, c.last_create_time, c.checkpoint_version, c.checkpoint_id IS NOT NULL
FROM conversations AS c WHERE c.tenant = :tenant AND c.conversation_id = :conversation

-- fragment: relabelled
agent = coalesce(excluded.agent, agent),
  project = coalesce(excluded.project, project),
  language = coalesce(excluded.language, language),
  timezone = coalesce(excluded.timezone, timezone)

-- name: conversation_touch
-- A write begins: the conversation gets its owner, its agent, its labels and its times.
INSERT INTO conversations (
  tenant, conversation_id, user_id, owner, agent, project, language, timezone, created, updated)
VALUES (:tenant, :conversation, :user, coalesce(:user, ''), :agent, :project, :language, :timezone, :now, :now)
ON CONFLICT DO UPDATE SET
  {relabelled},
  updated = max(updated, excluded.updated)

-- name: conversation_turn
-- The same for a turn that ends in this write.
INSERT INTO conversations (
  tenant, conversation_id, user_id, owner, agent, project, language, timezone, created, updated, last_create_time, last_seq,
  turns, live_turns, live_tokens)
VALUES (
  :tenant, :conversation, :user, coalesce(:user, ''), :agent, :project, :language, :timezone, :now, :now, :create_time, 1,
  :done, :done, :live_tokens)
ON CONFLICT DO UPDATE SET
  {relabelled},
  updated = max(updated, excluded.updated),
  last_create_time = excluded.last_create_time,
  last_seq = last_seq + 1,
  turns = turns + excluded.turns,
  live_turns = live_turns + excluded.live_turns,
  live_tokens = live_tokens + excluded.live_tokens

-- name: conversation_goes_on
-- The same where the conversation is known and stays as it is: a plain update takes less than half the time.
UPDATE conversations SET
  updated = max(updated, :now), last_create_time = :create_time, last_seq = last_seq + 1, turns = turns + :done,
  live_turns = live_turns + :done, live_tokens = live_tokens + :live_tokens
WHERE tenant = :tenant AND conversation_id = :conversation

-- name: turn_insert
INSERT INTO ai_message (
  message_id, conversation_id, query, answer, create_time, create_by, update_time, update_by, tenant, seq, kind, status,
  at, steps, metadata, messages, digest, user_tokens, assistant_tokens, tokens, counter)
VALUES (
  :id, :conversation, :query, :answer, :create_time, iif(:kind = 'turn', :user, 'system'), :now,
  iif(:kind = 'turn', :user, 'system'), :tenant, :seq, :kind, :status,
  :at, :steps, :metadata, :messages, :digest, :user_tokens, :assistant_tokens, :tokens, :counter)
ON CONFLICT (message_id, conversation_id, tenant) DO NOTHING

-- name: turn_update
UPDATE ai_message SET
  query = :query, user_tokens = :user_tokens, messages = :messages, digest = :digest,
  answer = :answer, create_time = :create_time, update_time = :now, update_by = :user, seq = :seq, status = :status,
  steps = :steps, assistant_tokens = :assistant_tokens, tokens = :tokens
WHERE message_id = :id AND conversation_id = :conversation AND tenant = :tenant

-- name: entry_by_id
SELECT {entry} FROM ai_message AS m
WHERE m.message_id = :id AND m.conversation_id = :conversation AND m.tenant = :tenant

-- name: entry_any
SELECT 1 FROM ai_message WHERE conversation_id = :conversation AND tenant = :tenant LIMIT 1

-- name: coverage
-- What a checkpoint speaks for and what it leaves.
SELECT
  count(*) FILTER (WHERE seq <= :covered),
  coalesce(sum((query IS NOT NULL) + (answer IS NOT NULL)) FILTER (WHERE seq <= :covered), 0),
  count(*) FILTER (WHERE seq > :covered),
  coalesce(sum(tokens) FILTER (WHERE seq > :covered), 0)
FROM ai_message
WHERE conversation_id = :conversation AND tenant = :tenant AND seq > :reset_seq AND kind = 'turn' AND status = 'done'

-- name: conversation_checkpoint
UPDATE conversations SET
  updated = max(updated, :now),
  last_create_time = :create_time, last_seq = :seq, covered_through_seq = :covered, live_turns = :live_turns, live_tokens = :live_tokens,
  checkpoint_id = :id, checkpoint_version = :version
WHERE tenant = :tenant AND conversation_id = :conversation

-- name: summary_put
INSERT OR REPLACE INTO conversation_summaries (
  id, conversation_id, summary, covered_message_count, created_at, tenant, seq, version, covered_through_seq,
  covered_turns, anchors, archive_refs, tokens, counter)
VALUES (
  :id, :conversation, :summary, :covered_messages, :create_time, :tenant, :seq, :version, :covered,
  :covered_turns, :anchors, :archive_refs, :tokens, :counter)

-- name: conversation_reset
UPDATE conversations SET
  last_create_time = :create_time, last_seq = :seq, reset_seq = :seq, covered_through_seq = 0,
  turns = 0, live_turns = 0, live_tokens = 0, checkpoint_id = NULL
WHERE tenant = :tenant AND conversation_id = :conversation

-- name: summary_drop
DELETE FROM conversation_summaries WHERE conversation_id = :conversation AND tenant = :tenant

-- name: conversation_times
-- A restored conversation has the times of its entries.
UPDATE conversations SET created = :created, updated = :updated
WHERE tenant = :tenant AND conversation_id = :conversation

-- name: view
-- The head, the checkpoint in force and the open turn, in one row.
SELECT {head},
  s.id, s.seq, s.version, s.summary, s.covered_through_seq, s.covered_turns, s.created_at, s.tokens, s.counter,
  s.anchors, s.archive_refs,
  {entry},
  (SELECT json_extract(value, '$.user_snapshot') FROM sessions AS v
   WHERE v.tenant = c.tenant AND v.conversation_id = c.conversation_id)
FROM conversations AS c
LEFT JOIN conversation_summaries AS s ON s.conversation_id = c.conversation_id AND s.tenant = c.tenant
LEFT JOIN ai_message AS m
  ON m.message_id = :open_turn AND m.conversation_id = c.conversation_id AND m.tenant = c.tenant AND m.status = 'open'
WHERE c.tenant = :tenant AND c.conversation_id = :conversation

-- name: turns_back
-- Live turns, newest first; the reader stops when it has enough.
SELECT {entry} FROM ai_message AS m
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq > :after AND m.kind = 'turn' AND m.status = 'done'
ORDER BY m.seq DESC

-- name: turns_after
SELECT {entry} FROM ai_message AS m
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq > :after AND m.kind = 'turn' AND m.status = 'done'
ORDER BY m.seq LIMIT :limit

-- name: turns_up_to
-- A turn and the done turn before it.
SELECT {entry} FROM ai_message AS m
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq <= :seq AND m.kind = 'turn' AND m.status = 'done'
ORDER BY m.seq DESC LIMIT 2

-- name: owner
SELECT user_id FROM conversations WHERE tenant = :tenant AND conversation_id = :conversation

-- fragment: asked_for
m.conversation_id = :conversation AND m.tenant = :tenant AND instr(:kinds, m.kind)
AND (m.kind <> 'turn' OR instr(:statuses, m.status))

-- name: entries_ended
SELECT {entry} FROM ai_message AS m WHERE {asked_for} AND m.seq > :after ORDER BY m.seq LIMIT :limit

-- name: entries_ended_back
SELECT {entry} FROM ai_message AS m WHERE {asked_for} AND m.seq > :after ORDER BY m.seq DESC LIMIT :limit

-- name: entries_open
SELECT {entry} FROM ai_message AS m WHERE {asked_for} AND m.seq IS NULL ORDER BY m.rowid LIMIT :limit

-- name: entries_open_back
SELECT {entry} FROM ai_message AS m WHERE {asked_for} AND m.seq IS NULL ORDER BY m.rowid DESC LIMIT :limit

-- name: head_of_conversation
SELECT c.conversation_id, {head} FROM conversations AS c
WHERE c.tenant = :tenant AND c.conversation_id = :conversation

-- name: heads_of_user
SELECT c.conversation_id, {head} FROM conversations AS c WHERE c.tenant = :tenant AND c.user_id = :user
AND (:after IS NULL OR (c.updated, :after) < (:updated, c.conversation_id))
ORDER BY c.updated DESC, c.conversation_id LIMIT :limit

-- name: heads_of_tenant
SELECT c.conversation_id, {head} FROM conversations AS c WHERE c.tenant = :tenant
AND (:after IS NULL OR (c.updated, :after) < (:updated, c.conversation_id))
ORDER BY c.updated DESC, c.conversation_id LIMIT :limit

-- name: conversations_of_user
SELECT c.conversation_id, c.user_id, c.last_seq FROM conversations AS c
WHERE c.tenant = :tenant AND c.user_id = :user ORDER BY c.conversation_id

-- name: conversations_of_tenant
SELECT c.conversation_id, c.user_id, c.last_seq FROM conversations AS c
WHERE c.tenant = :tenant ORDER BY c.conversation_id
