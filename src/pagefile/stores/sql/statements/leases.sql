-- Claims on requests, and their responses. A caller knows the id of a claim, not its tenant.

-- name: leases_expired
DELETE FROM leases WHERE expires <= :now AND :tenants IS NULL

-- name: lease_claim
INSERT INTO leases (id, tenant, owner, asked, leased, expires, done, erased, head)
VALUES (:id, :tenant, :owner, :asked, :leased, :expires, FALSE, FALSE, :about)
ON CONFLICT DO NOTHING

-- name: lease_take
UPDATE leases SET leased = :leased, expires = :expires
WHERE id = :id AND NOT done AND leased <= :now AND :tenants IS NULL

-- name: lease_get
SELECT asked, leased, done, head, data FROM leases WHERE id = :id AND :tenants IS NULL

-- name: leases_renew
UPDATE leases SET leased = :leased WHERE id {in ids} AND NOT done AND :tenants IS NULL

-- name: lease_keep
UPDATE leases SET done = TRUE,
  head = CASE WHEN erased THEN NULL ELSE :head END,
  data = CASE WHEN erased THEN NULL ELSE :data END
WHERE id = :id AND :tenants IS NULL

-- name: lease_release
DELETE FROM leases WHERE id = :id AND :tenants IS NULL

-- name: leases_running
SELECT id FROM leases WHERE id {in ids} AND NOT done AND leased > :now AND :tenants IS NULL

-- name: leases_lapsed
SELECT id, head FROM leases
WHERE expires >= :expires AND NOT done AND head IS NOT NULL AND leased < :now AND :tenants IS NULL
ORDER BY leased LIMIT :limit

-- name: leases_ended
SELECT id FROM leases WHERE id {in ids} AND NOT done AND leased <= :now AND :tenants IS NULL

-- name: leases_erase
UPDATE leases SET erased = TRUE, head = NULL, data = NULL
WHERE tenant = :tenant AND NOT erased AND (owner IS NULL OR :owner IS NULL OR owner = :owner)
