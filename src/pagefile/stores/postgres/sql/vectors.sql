-- Vectors of turns. `{extension}` is the schema that pgvector was made in, which need not be on the search path.

-- name: extension_found
SELECT n.nspname, x.extversion, to_regclass('conversation_episodes') IS NOT NULL
FROM pg_extension AS x JOIN pg_namespace AS n ON n.oid = x.extnamespace WHERE x.extname = 'vector'

-- name: extension_available
SELECT default_version FROM pg_available_extensions WHERE name = 'vector'

-- name: public_is_ours
SELECT coalesce(has_schema_privilege(to_regnamespace('public')::oid, 'CREATE'), false)

-- name: episodes_make
-- A conversation's vectors are erased with it. There is no index by distance: one over everyone's vectors finds a user's own only
-- by luck, and a user's own are read by key.
CREATE TABLE IF NOT EXISTS episode_makers (
  maker     text COLLATE "C" PRIMARY KEY,
  name      text NOT NULL,
  dimension integer NOT NULL,
  version   text NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS conversation_episodes (
  id              text COLLATE "C" NOT NULL,
  conversation_id text COLLATE "C" NOT NULL,
  tenant          text COLLATE "C" NOT NULL,
  seq             bigint NOT NULL,
  maker           text COLLATE "C" NOT NULL,
  embedding       {extension}.halfvec NOT NULL,
  created_at      bigint NOT NULL,
  PRIMARY KEY (conversation_id, tenant, maker, seq),
  FOREIGN KEY (tenant, conversation_id) REFERENCES conversations (tenant, conversation_id) ON DELETE CASCADE
);
ALTER TABLE conversation_episodes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS one_tenant ON conversation_episodes;
CREATE POLICY one_tenant ON conversation_episodes USING (
  tenant = current_setting('pagefile.tenant', true) OR current_setting('pagefile.tenants', true) = 'all');

-- name: maker_again
-- A caller that puts vectors has already prepared the model, which saves a round trip.

-- name: makers
SELECT m.name, m.dimension, m.version, count(e.maker) FROM episode_makers AS m
LEFT JOIN conversation_episodes AS e ON e.maker = m.maker WHERE :tenants IS NULL
GROUP BY m.maker, m.name, m.dimension, m.version ORDER BY m.maker

-- name: episode_write
-- A turn that no longer exists is skipped.
INSERT INTO conversation_episodes (id, conversation_id, tenant, seq, maker, embedding, created_at)
SELECT m.message_id, m.conversation_id, m.tenant, m.seq, :maker, CAST(:vector AS {extension}.halfvec), :seconds
FROM ai_message AS m
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq = :seq AND m.message_id = :id
ON CONFLICT (conversation_id, tenant, maker, seq) DO UPDATE
SET id = excluded.id, embedding = excluded.embedding, created_at = excluded.created_at

-- fragment: by_distance
SELECT e.conversation_id, e.seq, e.id, e.embedding OPERATOR({extension}.<=>) CAST(:vector AS {extension}.halfvec) AS distance
FROM conversations AS c
JOIN conversation_episodes AS e ON e.conversation_id = c.conversation_id AND e.tenant = c.tenant AND e.maker = :maker

-- name: episodes_near_user
{by_distance}
WHERE c.tenant = :tenant AND c.user_id = :user
ORDER BY distance, e.conversation_id, e.seq LIMIT :limit

-- name: episodes_near_conversation
{by_distance}
WHERE c.tenant = :tenant AND c.conversation_id = :conversation AND c.user_id IS NOT DISTINCT FROM :user
ORDER BY distance, e.conversation_id, e.seq LIMIT :limit

-- name: episodes_near_tenant
{by_distance}
WHERE c.tenant = :tenant
ORDER BY distance, e.conversation_id, e.seq LIMIT :limit

-- name: episodes_drop
DELETE FROM conversation_episodes WHERE maker = :maker AND :tenants IS NULL

-- fragment: of_conversations
DELETE FROM conversation_episodes AS e USING conversations AS c
WHERE e.conversation_id = c.conversation_id AND e.tenant = c.tenant AND c.tenant = :tenant

-- name: erase_episodes_of_conversation
{of_conversations} AND c.conversation_id = :conversation AND (:user IS NULL OR c.user_id = :user)

-- name: erase_episodes_of_user
{of_conversations} AND c.user_id = :user

-- name: erase_episodes_of_tenant
{of_conversations}

-- name: vectors_held
SELECT e.seq, e.id, {extension}.vector_dims(e.embedding) = :dimension FROM conversation_episodes AS e
WHERE e.conversation_id = :conversation AND e.tenant = :tenant AND e.maker = :maker
AND e.seq > :after_seq AND e.seq <= :through
ORDER BY e.seq
