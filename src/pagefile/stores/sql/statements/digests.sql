-- Rows that have no digest yet, by their key.

-- name: turns_without_digest
SELECT m.tenant, m.conversation_id, {entry} FROM ai_message AS m
WHERE m.kind = 'turn' AND m.digest IS NULL AND (m.message_id, m.conversation_id, m.tenant) > (:id, :conversation, :after_tenant)
AND :tenants IS NULL
ORDER BY m.message_id, m.conversation_id, m.tenant LIMIT :limit

-- name: turn_digest
UPDATE ai_message SET digest = :digest WHERE message_id = :id AND conversation_id = :conversation AND tenant = :tenant

-- name: pages_without_digest
SELECT p.tenant, {page} FROM tool_result_archive AS p
WHERE p.digest IS NULL AND (p.uuid, p.tenant) > (:uuid, :after_tenant) AND :tenants IS NULL
ORDER BY p.uuid, p.tenant LIMIT :limit

-- name: page_digest
UPDATE tool_result_archive SET digest = :digest WHERE uuid = :uuid AND tenant = :tenant

-- name: facts_without_digest
SELECT tenant, {fact} FROM facts
WHERE digest IS NULL AND (tenant, id) > (:after_tenant, :id) AND :tenants IS NULL ORDER BY tenant, id LIMIT :limit

-- name: fact_digest
UPDATE facts SET digest = :digest WHERE tenant = :tenant AND id = :id
