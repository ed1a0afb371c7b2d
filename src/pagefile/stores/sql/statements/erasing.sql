-- Erasure. `:gone` are the conversations to erase; `:user` is NULL unless a whole user is erased.

-- fragment: gone
tenant = :tenant AND conversation_id {in gone}

-- fragment: of_owner
(({gone}) OR (tenant = :tenant AND user_id = :user))

-- name: gone_conversation
-- Locked, so that nothing is written during the erasure.
SELECT conversation_id, user_id FROM conversations
WHERE tenant = :tenant AND conversation_id = :conversation {for_update}

-- name: gone_user
SELECT conversation_id, user_id FROM conversations
WHERE tenant = :tenant AND user_id = :user ORDER BY conversation_id {for_update}

-- name: gone_tenant
SELECT conversation_id, user_id FROM conversations WHERE tenant = :tenant ORDER BY conversation_id {for_update}

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

-- name: has_vectors
-- A database without the extension has no table of them.
SELECT TRUE

-- name: has_vectors (postgres)
SELECT to_regclass('conversation_episodes') IS NOT NULL

-- name: erase_conversation_episodes
DELETE FROM conversation_episodes WHERE {gone}

-- name: erase_turn_terms
DELETE FROM turn_terms WHERE {gone}

-- name: erase_conversations
DELETE FROM conversations WHERE {gone}

-- name: erase_facts
DELETE FROM facts WHERE {of_owner}

-- name: erase_facts_of_tenant
DELETE FROM facts WHERE tenant = :tenant

-- name: erase_fact_revisions
DELETE FROM fact_revisions WHERE {of_owner}

-- name: erase_fact_revisions_of_tenant
DELETE FROM fact_revisions WHERE tenant = :tenant

-- name: erase_context_calls
DELETE FROM context_calls WHERE {of_owner}

-- name: erase_context_calls_of_tenant
DELETE FROM context_calls WHERE tenant = :tenant

-- name: erase_archive_passage
DELETE FROM archive_passage WHERE tenant = :tenant AND uuid IN (SELECT uuid FROM tool_result_archive WHERE {of_owner})

-- name: erase_archive_passage_of_tenant
DELETE FROM archive_passage WHERE tenant = :tenant

-- name: erase_tool_result_archive
DELETE FROM tool_result_archive WHERE {of_owner}

-- name: erase_tool_result_archive_of_tenant
DELETE FROM tool_result_archive WHERE tenant = :tenant

-- name: blobs_of_gone
SELECT blob FROM tool_result_archive WHERE blob IS NOT NULL AND {of_owner}
UNION SELECT hash FROM attachments WHERE {gone}

-- name: blobs_of_tenant
SELECT blob FROM tool_result_archive WHERE blob IS NOT NULL AND tenant = :tenant
UNION SELECT hash FROM attachments WHERE tenant = :tenant

-- name: erase_blobs
-- Equal bytes may still be in use elsewhere, in any tenant.
DELETE FROM blobs AS b WHERE b.hash {in hashes} AND :tenants IS NULL
AND NOT EXISTS (SELECT 1 FROM tool_result_archive AS p WHERE p.blob = b.hash)
AND NOT EXISTS (SELECT 1 FROM attachments AS a WHERE a.hash = b.hash)
