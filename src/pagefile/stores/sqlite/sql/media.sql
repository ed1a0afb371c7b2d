-- Images and files of turns, and the numbers of erasures.

-- name: attach
INSERT INTO attachments (conversation_id, tenant, message_id, hash, media_type)
VALUES (:conversation, :tenant, :id, :hash, :media_type) ON CONFLICT DO NOTHING

-- name: media_load
SELECT b.codec, b.data FROM blobs AS b WHERE b.hash = :hash AND EXISTS (
  SELECT 1 FROM attachments AS a
  JOIN conversations AS c ON c.tenant = a.tenant AND c.conversation_id = a.conversation_id
  WHERE a.hash = b.hash AND a.tenant = :tenant AND (:conversation IS NULL OR a.conversation_id = :conversation)
  AND (c.user_id IS :user OR (:user IS NULL AND :conversation IS NULL)))

-- name: epoch_now
SELECT coalesce(max(epoch), 0) FROM scope_epochs

-- name: epoch_newest
SELECT max(epoch) FROM scope_epochs WHERE scope IN (SELECT value FROM json_each(:scopes))

-- name: epoch_raise
INSERT INTO scope_epochs (scope, epoch) VALUES (:scope, :epoch) ON CONFLICT DO UPDATE SET epoch = excluded.epoch
