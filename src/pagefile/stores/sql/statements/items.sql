-- Items by namespace and key.

-- fragment: item
namespace, key, content, created, updated, expires, ttl_s

-- fragment: items_of_user
tenant = :tenant AND user_id = :user

-- fragment: items_living
(expires IS NULL OR expires > :now)

-- fragment: items_within
{items_of_user} AND namespace >= :prefix AND namespace < :beyond AND {items_living}

-- name: items_lock
-- Conditional writes of one user's items wait for each other.

-- name: items_lock (postgres)
SELECT pg_advisory_xact_lock(hashtextextended(:tenant || chr(31) || :user, 8))

-- name: item_put
INSERT INTO items (tenant, user_id, namespace, key, content, created, updated, expires, ttl_s, maker, dimension, data)
VALUES (:tenant, :user, :namespace, :key, :content, :now, :now, :expires, :ttl_s, :maker, :dimension, :data)
ON CONFLICT (tenant, user_id, namespace, key) DO UPDATE SET
  content = excluded.content, updated = excluded.updated, expires = excluded.expires, ttl_s = excluded.ttl_s,
  maker = excluded.maker, dimension = excluded.dimension, data = excluded.data

-- name: item_remove
DELETE FROM items WHERE {items_of_user} AND namespace = :namespace AND key = :key

-- name: item_get
SELECT {item} FROM items WHERE {items_of_user} AND namespace = :namespace AND key = :key AND {items_living}

-- name: items_under
SELECT {item} FROM items WHERE {items_within} ORDER BY updated DESC, namespace, key LIMIT :limit OFFSET :skip

-- name: items_vectors
SELECT namespace, key, data, dimension FROM items WHERE {items_within} AND maker = :maker
ORDER BY updated DESC, namespace, key

-- name: items_namespaces
SELECT DISTINCT namespace FROM items WHERE {items_within}

-- name: item_touch
UPDATE items SET expires = :expires
WHERE {items_of_user} AND namespace = :namespace AND key = :key AND ttl_s IS NOT NULL AND {items_living}

-- name: items_sweep
DELETE FROM items WHERE {items_of_user} AND expires <= :now

-- fragment: waiting_queries
-- Queries that wait for their answers, by conversation.
tenant = :tenant AND user_id = '' AND namespace = '/pagefile/asked/'

-- name: erase_items
DELETE FROM items WHERE {items_of_user} OR ({waiting_queries} AND key {in gone})

-- name: part_asked
DELETE FROM items WHERE {waiting_queries} AND key = :conversation

-- name: erase_items_of_tenant
DELETE FROM items WHERE tenant = :tenant

-- name: items_owners
SELECT tenant, user_id FROM items WHERE :tenants IS NULL OR tenant = :tenants
GROUP BY tenant, user_id ORDER BY tenant, user_id

-- name: items_kept
SELECT {item}, maker, dimension, data FROM items
WHERE {items_of_user} AND {items_living} AND (namespace, key) > (:namespace, :key)
ORDER BY namespace, key LIMIT :limit

-- name: item_restore
INSERT INTO items (tenant, user_id, namespace, key, content, created, updated, expires, ttl_s, maker, dimension, data)
VALUES (:tenant, :user, :namespace, :key, :content, :created, :updated, :expires, :ttl_s, :maker, :dimension, :data)
ON CONFLICT DO NOTHING
