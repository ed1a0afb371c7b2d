-- Erasure. `:gone` is the JSON list of the conversations that go; `:user` is NULL unless a whole user goes.

-- fragment: gone
tenant = :tenant AND conversation_id IN (SELECT value FROM json_each(:gone))

-- name: erase_attachments
DELETE FROM attachments WHERE {gone}

-- name: erase_ai_message
DELETE FROM ai_message WHERE {gone}

-- name: erase_conversation_summaries
DELETE FROM conversation_summaries WHERE {gone}

-- name: erase_sessions
DELETE FROM sessions WHERE {gone}

-- name: erase_watermarks
DELETE FROM watermarks WHERE {gone}

-- name: erase_conversation_episodes
DELETE FROM conversation_episodes WHERE {gone}

-- name: erase_turn_terms
DELETE FROM turn_terms WHERE {gone}

-- name: erase_conversations
DELETE FROM conversations WHERE {gone}

-- name: erase_facts
DELETE FROM facts WHERE {gone} OR (tenant = :tenant AND user_id = :user)

-- name: erase_facts_of_tenant
DELETE FROM facts WHERE tenant = :tenant

-- name: erase_fact_revisions
DELETE FROM fact_revisions WHERE {gone} OR (tenant = :tenant AND user_id = :user)

-- name: erase_fact_revisions_of_tenant
DELETE FROM fact_revisions WHERE tenant = :tenant

-- name: erase_context_calls
DELETE FROM context_calls WHERE {gone} OR (tenant = :tenant AND user_id = :user)

-- name: erase_context_calls_of_tenant
DELETE FROM context_calls WHERE tenant = :tenant

-- name: erase_archive_passage
DELETE FROM archive_passage WHERE tenant = :tenant AND uuid IN (
  SELECT uuid FROM tool_result_archive WHERE {gone} OR (tenant = :tenant AND user_id = :user))

-- name: erase_archive_passage_of_tenant
DELETE FROM archive_passage WHERE tenant = :tenant

-- name: erase_tool_result_archive
DELETE FROM tool_result_archive WHERE {gone} OR (tenant = :tenant AND user_id = :user)

-- name: erase_tool_result_archive_of_tenant
DELETE FROM tool_result_archive WHERE tenant = :tenant

-- name: blobs_of_gone
SELECT blob FROM tool_result_archive WHERE blob IS NOT NULL AND ({gone} OR (tenant = :tenant AND user_id = :user))
UNION SELECT hash FROM attachments WHERE {gone}

-- name: blobs_of_tenant
SELECT blob FROM tool_result_archive WHERE blob IS NOT NULL AND tenant = :tenant
UNION SELECT hash FROM attachments WHERE tenant = :tenant

-- name: erase_blob
-- Equal bytes may belong to somebody who stays.
DELETE FROM blobs WHERE hash = :hash AND NOT EXISTS (SELECT 1 FROM tool_result_archive WHERE blob = :hash)
AND NOT EXISTS (SELECT 1 FROM attachments WHERE attachments.hash = :hash)
