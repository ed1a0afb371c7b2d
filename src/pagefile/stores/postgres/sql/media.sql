-- Images and files of turns, and the numbers of erasures.

-- name: media_load
SELECT b.codec, b.data FROM blobs AS b WHERE b.hash = :hash AND EXISTS (
  SELECT 1 FROM attachments AS a
  JOIN conversations AS c ON c.tenant = a.tenant AND c.conversation_id = a.conversation_id
  WHERE a.hash = b.hash AND a.tenant = :tenant AND (:conversation IS NULL OR a.conversation_id = :conversation)
  AND (c.user_id = :user OR (:user IS NULL AND (:conversation IS NULL OR c.user_id IS NULL))))

-- name: epoch_shared
-- Whoever writes on the strength of what they read keeps erasures of the tenant away until they are done.
SELECT pg_advisory_xact_lock_shared(hashtextextended(t.name, 8)) FROM unnest(:names) AS t (name)

-- name: epoch_alone
SELECT pg_advisory_xact_lock(hashtextextended(:tenant, 8))

-- name: epoch_next
-- Erasures get their numbers one after the other, each when the one before it is committed.
SELECT pg_advisory_xact_lock(8, 0)

-- name: epoch_now
SELECT coalesce(max(epoch), 0) FROM scope_epochs

-- name: epoch_newest
SELECT max(epoch) FROM scope_epochs WHERE scope = ANY(:names)

-- name: epoch_raise
INSERT INTO scope_epochs (scope, epoch) SELECT k.scope, :epoch FROM unnest(:names) AS k (scope)
ON CONFLICT (scope) DO UPDATE SET epoch = excluded.epoch
