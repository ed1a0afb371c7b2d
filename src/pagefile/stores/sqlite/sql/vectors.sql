-- Vectors of turns.

-- name: maker_write
INSERT INTO episode_makers (maker, name, dimension) VALUES (:maker, :name, :dimension) ON CONFLICT DO NOTHING

-- name: maker_known
SELECT 1 FROM episode_makers WHERE maker = :maker

-- name: maker_drop
DELETE FROM episode_makers WHERE maker = :maker

-- name: makers
SELECT m.name, m.dimension, (SELECT count(*) FROM conversation_episodes AS e WHERE e.maker = m.maker)
FROM episode_makers AS m ORDER BY m.maker

-- name: episode_write
-- A turn that is gone is passed over.
INSERT OR REPLACE INTO conversation_episodes (id, conversation_id, tenant, seq, user_id, maker, embedding, created_at)
SELECT m.message_id, m.conversation_id, m.tenant, m.seq, c.user_id, :maker, :embedding, :created_at FROM ai_message AS m
JOIN conversations AS c ON c.tenant = m.tenant AND c.conversation_id = m.conversation_id
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq = :seq AND m.message_id = :id

-- name: episode_drop
DELETE FROM conversation_episodes
WHERE conversation_id = :conversation AND tenant = :tenant AND maker = :maker AND seq = :seq

-- name: episodes_of_user
SELECT place, id, conversation_id, seq, embedding FROM conversation_episodes
WHERE maker = :maker AND tenant = :tenant AND user_id = :user AND place > :known ORDER BY place LIMIT :limit

-- name: episodes_of_conversation
SELECT place, id, conversation_id, seq, embedding FROM conversation_episodes
WHERE conversation_id = :conversation AND tenant = :tenant AND maker = :maker AND place > :known ORDER BY place LIMIT :limit

-- name: episodes_of_tenant
SELECT place, id, conversation_id, seq, embedding FROM conversation_episodes
WHERE maker = :maker AND tenant = :tenant

-- name: episodes_there
SELECT count(*) FROM conversation_episodes WHERE place IN (SELECT value FROM json_each(:places))

-- name: episodes_drop
DELETE FROM conversation_episodes
WHERE place IN (SELECT place FROM conversation_episodes WHERE maker = :maker LIMIT :limit)

-- name: erase_episodes_of_conversation
DELETE FROM conversation_episodes WHERE tenant = :tenant AND conversation_id = :conversation
AND (:user IS NULL OR user_id IS NULL OR user_id = :user)

-- name: erase_episodes_of_user
DELETE FROM conversation_episodes WHERE place IN (
  SELECT e.place FROM conversations AS c
  JOIN conversation_episodes AS e ON e.conversation_id = c.conversation_id AND e.tenant = c.tenant
  WHERE c.tenant = :tenant AND c.user_id = :user)

-- name: erase_episodes_of_tenant
DELETE FROM conversation_episodes WHERE tenant = :tenant

-- name: database_file
SELECT file FROM pragma_database_list WHERE name = 'main'
