-- API keys. A caller that presents one has not named a tenant yet, so these statements search all of them.

-- fragment: api_key
k.id, k.name, k.tenant, k.user_id, k.digest, k.created, k.expires, k.revoked, k.last_used

-- name: key_add
INSERT INTO api_keys (id, name, tenant, user_id, digest, created, expires, revoked, last_used)
VALUES (:id, :name, :tenant, :user, :digest, :created, :expires, :revoked, :last_used)
ON CONFLICT DO NOTHING

-- name: key_get
SELECT {api_key} FROM api_keys AS k WHERE k.id = :id AND :tenants IS NULL

-- name: key_locked
SELECT {api_key} FROM api_keys AS k WHERE k.id = :id AND :tenants IS NULL {for_update}

-- name: key_expire
UPDATE api_keys SET expires = :expires WHERE id = :id AND :tenants IS NULL

-- name: keys_all
SELECT {api_key} FROM api_keys AS k WHERE :tenants IS NULL ORDER BY k.created, k.id

-- name: key_revoke
UPDATE api_keys SET revoked = coalesce(revoked, :at) WHERE id = :id AND :tenants IS NULL

-- name: key_used
UPDATE api_keys SET last_used = :at WHERE id = :id AND :tenants IS NULL AND (last_used IS NULL OR last_used < :at)
