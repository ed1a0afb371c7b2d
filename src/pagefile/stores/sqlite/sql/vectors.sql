-- Vectors of turns.

-- name: maker_again
-- Another process may have dropped it since it was prepared.
INSERT INTO episode_makers (maker, name, dimension, version) VALUES (:maker, :name, :dimension, :made_by)
ON CONFLICT DO NOTHING

-- name: makers
SELECT m.name, m.dimension, m.version, (SELECT count(*) FROM conversation_episodes AS e WHERE e.maker = m.maker)
FROM episode_makers AS m ORDER BY m.maker

-- name: episode_write
-- A turn that no longer exists is skipped.
INSERT OR REPLACE INTO conversation_episodes (id, conversation_id, tenant, seq, user_id, maker, embedding, created_at)
SELECT m.message_id, m.conversation_id, m.tenant, m.seq, c.user_id, :maker, :vector, :seconds FROM ai_message AS m
JOIN conversations AS c ON c.tenant = m.tenant AND c.conversation_id = m.conversation_id
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq = :seq AND m.message_id = :id

-- name: episodes_of_user
SELECT place, id, conversation_id, seq, embedding FROM conversation_episodes
WHERE maker = :maker AND tenant = :tenant AND user_id = :user AND place > :known ORDER BY place LIMIT :limit

-- name: episodes_of_conversation
SELECT place, id, conversation_id, seq, embedding FROM conversation_episodes
WHERE conversation_id = :conversation AND tenant = :tenant AND maker = :maker AND place > :known ORDER BY place LIMIT :limit

-- name: episodes_of_tenant
SELECT place, id, conversation_id, seq, embedding FROM conversation_episodes
WHERE maker = :maker AND tenant = :tenant

-- name: episodes_number_of_user
SELECT count(*) FROM conversation_episodes WHERE maker = :maker AND tenant = :tenant AND user_id = :user

-- name: episodes_number_of_conversation
SELECT count(*) FROM conversation_episodes WHERE conversation_id = :conversation AND tenant = :tenant AND maker = :maker

-- name: episodes_drop
DELETE FROM conversation_episodes
WHERE place IN (SELECT place FROM conversation_episodes WHERE maker = :maker LIMIT :limit)

-- name: erase_episodes_of_conversation
DELETE FROM conversation_episodes WHERE tenant = :tenant AND conversation_id = :conversation
AND (:user IS NULL OR EXISTS (
  SELECT 1 FROM conversations AS c WHERE c.tenant = :tenant AND c.conversation_id = :conversation AND c.user_id = :user))

-- name: erase_episodes_of_user
DELETE FROM conversation_episodes WHERE place IN (
  SELECT e.place FROM conversations AS c
  JOIN conversation_episodes AS e ON e.conversation_id = c.conversation_id AND e.tenant = c.tenant
  WHERE c.tenant = :tenant AND c.user_id = :user)

-- name: erase_episodes_of_tenant
DELETE FROM conversation_episodes WHERE tenant = :tenant

-- name: database_file
SELECT file FROM pragma_database_list WHERE name = 'main'

-- name: episodes_rebuild
-- The table as migration 0003 makes it, with what the one that is there holds.
CREATE TABLE episodes_rebuilt (
  place           INTEGER PRIMARY KEY AUTOINCREMENT,
  id              TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  tenant          TEXT NOT NULL,
  seq             INTEGER NOT NULL,
  user_id         TEXT,
  maker           TEXT NOT NULL,
  embedding       BLOB NOT NULL,
  created_at      INTEGER NOT NULL,
  UNIQUE (conversation_id, tenant, maker, seq),
  FOREIGN KEY (tenant, conversation_id) REFERENCES conversations (tenant, conversation_id) ON DELETE CASCADE
) STRICT;
INSERT INTO episodes_rebuilt (place, id, conversation_id, tenant, seq, user_id, maker, embedding, created_at)
SELECT e.place, e.id, e.conversation_id, e.tenant, e.seq, c.user_id, e.maker, e.embedding, e.created_at
FROM conversation_episodes AS e JOIN conversations AS c ON c.tenant = e.tenant AND c.conversation_id = e.conversation_id;
DROP TABLE conversation_episodes;
ALTER TABLE episodes_rebuilt RENAME TO conversation_episodes;
CREATE INDEX episodes_by_user ON conversation_episodes (maker, tenant, user_id);
CREATE TRIGGER episodes_claimed AFTER UPDATE OF user_id ON conversations WHEN new.user_id IS NOT old.user_id
BEGIN
  UPDATE conversation_episodes SET seq = -seq WHERE conversation_id = new.conversation_id AND tenant = new.tenant;
  INSERT INTO conversation_episodes (id, conversation_id, tenant, seq, user_id, maker, embedding, created_at)
  SELECT id, conversation_id, tenant, -seq, new.user_id, maker, embedding, created_at FROM conversation_episodes
  WHERE conversation_id = new.conversation_id AND tenant = new.tenant AND seq < 0;
  DELETE FROM conversation_episodes WHERE conversation_id = new.conversation_id AND tenant = new.tenant AND seq < 0;
END

-- name: vectors_held
SELECT e.seq, e.id, e.user_id IS c.user_id AND length(e.embedding) = 2 * :dimension FROM conversation_episodes AS e
JOIN conversations AS c ON c.tenant = e.tenant AND c.conversation_id = e.conversation_id
WHERE e.conversation_id = :conversation AND e.tenant = :tenant AND e.maker = :maker AND e.seq > :after_seq AND e.seq <= :through
ORDER BY e.seq
