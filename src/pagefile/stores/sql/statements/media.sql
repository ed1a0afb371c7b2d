-- Images and files of turns, and the numbers of erasures.

-- name: attach
INSERT INTO attachments (conversation_id, tenant, message_id, hash, media_type)
VALUES (:conversation, :tenant, :id, :hash, :media_type) ON CONFLICT DO NOTHING

-- name: media_load
SELECT b.codec, b.data FROM blobs AS b WHERE b.hash = :hash AND EXISTS (
  SELECT 1 FROM attachments AS a
  JOIN conversations AS c ON c.tenant = a.tenant AND c.conversation_id = a.conversation_id
  WHERE a.hash = b.hash AND a.tenant = :tenant AND (:conversation IS NULL OR a.conversation_id = :conversation)
  AND (c.user_id = :user OR (:user IS NULL AND (:conversation IS NULL OR c.user_id IS NULL))))

-- name: epoch_shared
-- A write that depends on an earlier read blocks erasures of the tenant until it ends.

-- name: epoch_shared (postgres)
SELECT pg_advisory_xact_lock_shared(hashtextextended(t.name, 8)) FROM unnest(:names) AS t (name)

-- name: epoch_alone
-- An erasure waits for such writes, and they wait for it.

-- name: epoch_alone (postgres)
SELECT pg_advisory_xact_lock(hashtextextended(:tenant, 8))

-- name: epoch_next
-- Erasures get their numbers one after the other, each when the one before it is committed.

-- name: epoch_next (postgres)
SELECT pg_advisory_xact_lock(8, 0)

-- name: epoch_now
SELECT coalesce(max(epoch), 0) FROM scope_epochs

-- name: epoch_newest
SELECT max(epoch) FROM scope_epochs WHERE scope {in names}

-- name: epoch_raise
INSERT INTO scope_epochs (scope, epoch) VALUES (:scope, :epoch)
ON CONFLICT (scope) DO UPDATE SET epoch = excluded.epoch
