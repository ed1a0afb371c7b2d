-- The session in place.

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
