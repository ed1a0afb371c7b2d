-- Sessions. SQLite has the value alone, and changes it in place; PostgreSQL leaves the value as it was put, and has columns for
-- what turns and markers changed since.

-- fragment: session_beside
FROM conversations AS c
LEFT JOIN sessions AS s ON s.tenant = c.tenant AND s.conversation_id = c.conversation_id
WHERE c.tenant = :tenant AND c.conversation_id = :conversation

-- name: session_get
-- The owner of the conversation, whether there is a session, its value, and what changed since it was put.
SELECT c.user_id, s.conversation_id IS NOT NULL, s.value, NULL, 0, FALSE, NULL, NULL, NULL, NULL, NULL
{session_beside}

-- name: session_get (postgres)
SELECT c.user_id, s.conversation_id IS NOT NULL, s.value, s.changed, s.turns, s.anew, s.user_id, s.agent, s.answer,
  s.checkpoint_id, s.summary
{session_beside}

-- fragment: session_opening
INSERT INTO conversations AS c (tenant, conversation_id, user_id, owner, created, updated)
VALUES (:tenant, :conversation, :user, coalesce(:user, ''), :now, :now)
ON CONFLICT (tenant, conversation_id) DO UPDATE SET updated = {greatest}(c.updated, excluded.updated)
WHERE c.user_id IS NOT DISTINCT FROM :user

-- name: session_opened
-- The conversation of a session that is about to be changed, locked.
{session_opening}

-- name: session_begun
-- The conversation of a session that is about to be put.
{session_opening}

-- name: session_begun (postgres)
-- `session_put` does it.

-- name: session_put
-- Nothing comes back, and nothing is written, when another user owns the conversation.
INSERT INTO sessions (tenant, conversation_id, value)
SELECT c.tenant, c.conversation_id, :value FROM conversations AS c
WHERE c.tenant = :tenant AND c.conversation_id = :conversation AND c.user_id IS NOT DISTINCT FROM :user
ON CONFLICT (tenant, conversation_id) DO UPDATE SET value = excluded.value
RETURNING 1

-- name: session_put (postgres)
WITH told AS (
  {session_opening}
  RETURNING c.conversation_id)
INSERT INTO sessions (tenant, conversation_id, value, snapshot)
SELECT :tenant, told.conversation_id, :value, :snapshot FROM told
ON CONFLICT (tenant, conversation_id) DO UPDATE SET
  value = excluded.value, snapshot = excluded.snapshot, changed = NULL, turns = 0, anew = FALSE, user_id = NULL, agent = NULL, answer = NULL,
  checkpoint_id = NULL, summary = NULL
RETURNING 1

-- fragment: session_summary
'$.message_context.summary', :summary,
'$.message_context.mode', :mode,
'$.message_context.checkpoint_message_id', :checkpoint

-- name: session_checkpoint
-- A checkpoint took effect.
UPDATE sessions SET value = json_set(value, '$.meta.updated_at', :seconds, {session_summary})
WHERE tenant = :tenant AND conversation_id = :conversation

-- name: session_checkpoint (postgres)
INSERT INTO sessions AS s (tenant, conversation_id, changed, user_id, checkpoint_id, summary)
VALUES (:tenant, :conversation, :created, :user, :id, :summary)
ON CONFLICT (tenant, conversation_id) DO UPDATE SET
  changed = excluded.changed, checkpoint_id = excluded.checkpoint_id, summary = excluded.summary

-- name: session_reset
-- A reset removed it.
UPDATE sessions SET value = json_set(value,
  '$.meta.updated_at', :seconds, '$.flow_context.turn_count', 0, {session_summary})
WHERE tenant = :tenant AND conversation_id = :conversation

-- name: session_reset (postgres)
INSERT INTO sessions AS s (tenant, conversation_id, changed, anew, user_id)
VALUES (:tenant, :conversation, :created, TRUE, :user)
ON CONFLICT (tenant, conversation_id) DO UPDATE SET
  changed = excluded.changed, turns = 0, anew = TRUE, checkpoint_id = NULL, summary = NULL

-- fragment: session_profile
-- Of the session: whether it is blank, its `user_snapshot`, the user of turns since, and whether it is there.
FALSE, json_extract(v.value, '$.user_snapshot'), NULL, v.conversation_id

-- fragment: session_profile (postgres)
v.value IS NULL, v.snapshot, v.user_id, v.conversation_id

-- name: secret_put
INSERT INTO secrets (name, secret) VALUES (:name, :secret) ON CONFLICT DO NOTHING

-- name: secret_get
SELECT secret FROM secrets WHERE name = :name
