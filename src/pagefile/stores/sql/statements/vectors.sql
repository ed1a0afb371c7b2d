-- Vectors of turns, in databases that have them.

-- name: maker_write
INSERT INTO episode_makers (maker, name, dimension, version) VALUES (:maker, :name, :dimension, :made_by)
ON CONFLICT DO NOTHING

-- name: maker_known
SELECT 1 FROM episode_makers WHERE maker = :maker

-- name: maker_drop
DELETE FROM episode_makers WHERE maker = :maker

-- name: episode_drop
DELETE FROM conversation_episodes
WHERE conversation_id = :conversation AND tenant = :tenant AND maker = :maker AND seq = :seq
