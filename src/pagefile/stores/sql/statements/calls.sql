-- Recorded windows.

-- name: call_put
INSERT INTO context_calls (
  id, tenant, user_id, conversation_id, "at", turn_id, query, options, tokens, ratio, mode, prefix_hash, receipt)
VALUES (
  :id, :tenant, :user, :conversation, :at, :turn_id, :query, :options, :tokens, :ratio, :mode, :prefix_hash, :receipt)
ON CONFLICT DO NOTHING

-- name: calls_trim_conversation
DELETE FROM context_calls WHERE conversation_id = :conversation AND tenant = :tenant AND place <= (
  SELECT place FROM context_calls WHERE conversation_id = :conversation AND tenant = :tenant
  ORDER BY place DESC LIMIT 1 OFFSET :keep)

-- name: calls_trim_tenant
-- Windows that belong to no conversation.
DELETE FROM context_calls WHERE conversation_id IS NULL AND tenant = :tenant AND place <= (
  SELECT place FROM context_calls WHERE conversation_id IS NULL AND tenant = :tenant
  ORDER BY place DESC LIMIT 1 OFFSET :keep)

-- name: calls_any
SELECT 1 FROM context_calls WHERE conversation_id IS NOT DISTINCT FROM :conversation AND tenant = :tenant LIMIT 1

-- name: calls_loose
SELECT DISTINCT k.tenant, k.user_id, k.conversation_id FROM context_calls AS k
WHERE (:tenants IS NULL OR k.tenant = :tenants) AND k.conversation_id IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM conversations AS c WHERE c.tenant = k.tenant AND c.conversation_id = k.conversation_id)
ORDER BY k.tenant, k.conversation_id, k.user_id NULLS FIRST

-- fragment: call
k.id, k.user_id, k.conversation_id, k."at", k.turn_id, k.query, k.options, k.tokens, k.ratio, k.mode, k.prefix_hash,
k.receipt

-- fragment: made_for
-- A handle without a user used to act for the owner of the conversation, which the call names.
coalesce(k.user_id, k.options -> 'moment' ->> 'owner')

-- name: call_get
SELECT {call} FROM context_calls AS k WHERE k.id = :id AND k.tenant = :tenant

-- name: call_place
SELECT k.place, {made_for}, k.conversation_id FROM context_calls AS k WHERE k.id = :after AND k.tenant = :tenant

-- fragment: calls_behind
(:place IS NULL OR k.place < :place) ORDER BY k.place DESC LIMIT :limit

-- name: calls_of_conversation
SELECT {call} FROM context_calls AS k WHERE k.conversation_id = :conversation AND k.tenant = :tenant
AND {made_for} IS NOT DISTINCT FROM :user AND {calls_behind}

-- name: calls_of_user
SELECT {call} FROM context_calls AS k WHERE k.tenant = :tenant AND k.user_id = :user AND {calls_behind}

-- name: calls_of_tenant
SELECT {call} FROM context_calls AS k WHERE k.tenant = :tenant AND {calls_behind}

-- fragment: call_size
k.id, {made_for}, k.conversation_id, k."at", k.tokens, k.ratio

-- fragment: newest_calls
ORDER BY k.place DESC LIMIT :limit

-- name: call_sizes_of_conversation
SELECT {call_size} FROM context_calls AS k WHERE k.conversation_id = :conversation AND k.tenant = :tenant
AND {made_for} IS NOT DISTINCT FROM :user {newest_calls}

-- name: call_sizes_of_user
SELECT {call_size} FROM context_calls AS k WHERE k.tenant = :tenant AND k.user_id = :user {newest_calls}

-- name: call_sizes_of_tenant
SELECT {call_size} FROM context_calls AS k WHERE k.tenant = :tenant {newest_calls}
