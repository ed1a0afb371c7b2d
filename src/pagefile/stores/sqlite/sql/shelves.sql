-- Sessions and calls.

-- name: session_get
SELECT value FROM sessions WHERE tenant = :tenant AND conversation_id = :conversation

-- name: session_put
INSERT INTO sessions (tenant, conversation_id, value) VALUES (:tenant, :conversation, :value)
ON CONFLICT DO UPDATE SET value = excluded.value

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

-- name: session_marker
-- A checkpoint took effect, or a reset took it away; a NULL count leaves the count.
UPDATE sessions SET value = json_set(value,
  '$.meta.updated_at', :seconds,
  iif(:turn_count IS NULL, NULL, '$.flow_context.turn_count'), :turn_count,
  '$.message_context.summary', :summary,
  '$.message_context.mode', :mode,
  '$.message_context.checkpoint_message_id', :checkpoint)
WHERE tenant = :tenant AND conversation_id = :conversation

-- name: call_put
INSERT INTO context_calls (
  id, tenant, user_id, conversation_id, at, turn_id, query, options, tokens, ratio, mode, prefix_hash, receipt)
VALUES (
  :id, :tenant, :user, :conversation, :at, :turn, :query, :options, :tokens, :ratio, :mode, :prefix_hash, :receipt)
ON CONFLICT DO NOTHING

-- name: calls_trim
DELETE FROM context_calls WHERE conversation_id IS :conversation AND tenant = :tenant AND place <= (
  SELECT place FROM context_calls WHERE conversation_id IS :conversation AND tenant = :tenant
  ORDER BY place DESC LIMIT 1 OFFSET :keep)

-- name: calls_any
SELECT 1 FROM context_calls WHERE conversation_id IS :conversation AND tenant = :tenant LIMIT 1

-- name: calls_loose
SELECT DISTINCT k.tenant, k.user_id, k.conversation_id FROM context_calls AS k
WHERE (:tenant IS NULL OR k.tenant = :tenant) AND k.conversation_id IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM conversations AS c WHERE c.tenant = k.tenant AND c.conversation_id = k.conversation_id)
ORDER BY k.tenant, k.conversation_id, k.user_id

-- fragment: call
k.id, k.user_id, k.conversation_id, k.at, k.turn_id, k.query, k.options, k.tokens, k.ratio, k.mode, k.prefix_hash,
k.receipt

-- fragment: made_for
-- A handle without a user used to work for the owner of the conversation, whom the call names.
coalesce(k.user_id, k.options ->> '$.moment.owner')

-- name: call_get
SELECT {call} FROM context_calls AS k WHERE k.id = :id AND k.tenant = :tenant

-- name: call_place
SELECT k.place, {made_for}, k.conversation_id FROM context_calls AS k WHERE k.id = :after AND k.tenant = :tenant

-- fragment: calls_behind
(:place IS NULL OR k.place < :place) ORDER BY k.place DESC LIMIT :limit

-- name: calls_of_conversation
SELECT {call} FROM context_calls AS k
WHERE k.conversation_id = :conversation AND k.tenant = :tenant AND {made_for} IS :user AND {calls_behind}

-- name: calls_of_user
SELECT {call} FROM context_calls AS k WHERE k.tenant = :tenant AND k.user_id = :user AND {calls_behind}

-- name: calls_of_tenant
SELECT {call} FROM context_calls AS k WHERE k.tenant = :tenant AND {calls_behind}
