-- The turn log: conversations, ai_message, conversation_summaries.

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
  :tenant, :conversation, :user, coalesce(:user, ''), :agent, :project, :language, :timezone, :now, :now, :created, 1,
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
  updated = max(updated, :now), last_create_time = :created, last_seq = last_seq + 1, turns = turns + :done,
  live_turns = live_turns + :done, live_tokens = live_tokens + :live_tokens
WHERE tenant = :tenant AND conversation_id = :conversation

-- name: turn_insert
INSERT INTO ai_message (
  message_id, conversation_id, query, answer, create_time, create_by, update_time, update_by, tenant, seq, kind, status,
  at, steps, metadata, messages, digest, user_tokens, assistant_tokens, tokens, counter)
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

-- name: turns_up_to
-- A turn and the done turn before it.
SELECT {entry} FROM ai_message AS m
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq <= :seq AND m.kind = 'turn' AND m.status = 'done'
ORDER BY m.seq DESC LIMIT 2

-- name: session_turn
-- A turn was done; a path that is NULL sets nothing.
UPDATE sessions SET value = json_set(value,
  '$.meta.updated_at', :seconds,
  '$.flow_context.turn_count',
  iif(json_type(value, '$.flow_context.turn_count') = 'integer', value ->> '$.flow_context.turn_count', 0) + 1,
  iif(:user IS NULL, NULL, '$.meta.user_id'), :user,
  iif(:user IS NULL, NULL, '$.user_snapshot.user_id'), :user,
  iif(:agent IS NULL, NULL, '$.flow_context.current_agent_key'), :agent,
  iif(:answer IS NULL, NULL, '$.flow_context.last_bot_message'), :answer)
WHERE tenant = :tenant AND conversation_id = :conversation
