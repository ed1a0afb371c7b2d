-- Vectors of turns, in databases that have them.

-- name: maker_write
INSERT INTO episode_makers (maker, name, dimension, version) VALUES (:maker, :name, :dimension, :made_by)
ON CONFLICT DO NOTHING

-- name: maker_known
SELECT 1 FROM episode_makers WHERE maker = :maker

-- name: makers_used
-- Ends at the first vector of each.
SELECT m.name, m.dimension, m.version FROM episode_makers AS m
WHERE (SELECT 1 FROM conversation_episodes AS e WHERE e.maker = m.maker LIMIT 1) IS NOT NULL AND :tenants IS NULL
ORDER BY m.maker

-- name: maker_drop
DELETE FROM episode_makers WHERE maker = :maker

-- name: episode_drop
DELETE FROM conversation_episodes
WHERE conversation_id = :conversation AND tenant = :tenant AND maker = :maker AND seq = :seq
