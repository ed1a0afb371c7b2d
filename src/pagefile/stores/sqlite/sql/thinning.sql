-- Erasing piece by piece where the disk has no room for all of it at once. After each statement the remaining rows are consistent
-- and show nothing of what was erased.

-- fragment: going
tenant = :tenant AND (:everything OR user_id = :user OR conversation_id {in gone})

-- fragment: in_gone
tenant = :tenant AND conversation_id {in gone}

-- name: thin_calls
DELETE FROM context_calls WHERE place IN (SELECT place FROM context_calls WHERE {going} LIMIT :limit)

-- name: thin_terms
DELETE FROM turn_terms WHERE (conversation_id, tenant, seq) IN (
  SELECT conversation_id, tenant, seq FROM turn_terms WHERE {in_gone} LIMIT :limit)

-- name: thin_vectors
DELETE FROM conversation_episodes WHERE place IN (
  SELECT place FROM conversation_episodes WHERE {in_gone} LIMIT :limit)

-- name: thin_revisions
DELETE FROM fact_revisions WHERE place IN (SELECT place FROM fact_revisions WHERE {going} LIMIT :limit)

-- name: thin_facts
DELETE FROM facts WHERE (tenant, id) IN (SELECT tenant, id FROM facts WHERE {going} LIMIT :limit)

-- name: thin_pages
SELECT uuid, coalesce(blob, '') FROM tool_result_archive WHERE {going} LIMIT :limit

-- name: thin_attachments
SELECT conversation_id, message_id, hash FROM attachments WHERE {in_gone} LIMIT :limit

-- name: thin_attachment
DELETE FROM attachments
WHERE conversation_id = :conversation AND tenant = :tenant AND message_id = :id AND hash = :hash

-- name: thin_open
DELETE FROM ai_message WHERE rowid IN (SELECT rowid FROM ai_message WHERE {in_gone} AND seq IS NULL LIMIT :limit)

-- name: thin_log
-- From its end: what is left is the conversation as it was earlier.
DELETE FROM ai_message WHERE conversation_id = :conversation AND tenant = :tenant AND seq > :cut

-- name: thin_conversation
UPDATE conversations SET
  last_seq = :cut,
  last_create_time = (SELECT create_time FROM ai_message
                      WHERE conversation_id = :conversation AND tenant = :tenant AND seq = :cut),
  reset_seq = (SELECT coalesce(max(seq), 0) FROM ai_message
               WHERE conversation_id = :conversation AND tenant = :tenant AND kind = 'reset')
WHERE tenant = :tenant AND conversation_id = :conversation

-- name: thin_watermarks
UPDATE watermarks SET seq = :cut WHERE tenant = :tenant AND conversation_id = :conversation AND seq > :cut

-- name: thin_longest
SELECT conversation_id, user_id, last_seq FROM conversations WHERE {in_gone} AND last_seq > 0 LIMIT 1

-- name: thin_sessions
DELETE FROM sessions WHERE (tenant, conversation_id) IN (
  SELECT tenant, conversation_id FROM sessions WHERE {in_gone} LIMIT :limit)
