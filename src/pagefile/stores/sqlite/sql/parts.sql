-- Erasing one turn or one page. `:gone` is the JSON list of the conversations in which it stood.

-- fragment: one_of
c.user_id, m.conversation_id, {entry} FROM ai_message AS m
JOIN conversations AS c ON c.tenant = m.tenant AND c.conversation_id = m.conversation_id

-- name: part_copies
SELECT {one_of} WHERE m.message_id = :turn AND m.tenant = :tenant AND m.kind = 'turn'

-- name: part_markers
SELECT {one_of}
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.kind IN ('checkpoint', 'reset') ORDER BY m.seq

-- name: part_naming
-- Turns whose tools named one of the pages, and checkpoints that refer to one.
SELECT {one_of} WHERE m.tenant = :tenant AND EXISTS (
  SELECT 1 FROM json_each(:uuids) AS u
  WHERE instr(m.steps, u.value) OR (m.kind = 'checkpoint' AND instr(m.metadata, u.value)))
ORDER BY m.conversation_id, m.seq

-- name: part_bury
-- A place in the log without its words.
UPDATE ai_message SET
  kind = 'turn', status = :status, query = :query, answer = NULL, steps = NULL, metadata = NULL, messages = NULL,
  digest = :digest, create_by = :user, update_by = :user, user_tokens = 0, assistant_tokens = 0, tokens = 0, counter = ''
WHERE message_id = :id AND conversation_id = :conversation AND tenant = :tenant

-- name: part_drop
DELETE FROM ai_message WHERE message_id = :id AND conversation_id = :conversation AND tenant = :tenant

-- name: part_steps
UPDATE ai_message SET steps = :steps, tokens = :tokens, digest = :digest
WHERE message_id = :id AND conversation_id = :conversation AND tenant = :tenant

-- name: part_refs
UPDATE ai_message SET metadata = :metadata
WHERE message_id = :id AND conversation_id = :conversation AND tenant = :tenant

-- name: part_attachments
DELETE FROM attachments WHERE conversation_id = :conversation AND tenant = :tenant AND message_id = :id

-- name: part_hashes
SELECT hash FROM attachments WHERE conversation_id = :conversation AND tenant = :tenant AND message_id = :id

-- name: part_terms
DELETE FROM turn_terms WHERE conversation_id = :conversation AND tenant = :tenant AND seq = :seq

-- name: part_vectors
DELETE FROM conversation_episodes WHERE conversation_id = :conversation AND tenant = :tenant AND seq = :seq

-- name: part_last_answer
SELECT answer FROM ai_message
WHERE conversation_id = :conversation AND tenant = :tenant AND kind = 'turn' AND status = 'done' AND answer > ''
ORDER BY seq DESC LIMIT 1

-- name: part_reset_seq
SELECT reset_seq FROM conversations WHERE tenant = :tenant AND conversation_id = :conversation

-- name: part_counted
SELECT reset_seq, updated FROM conversations WHERE tenant = :tenant AND conversation_id = :conversation

-- name: part_recount
UPDATE conversations SET
  updated = :updated,
  covered_through_seq = :covered, turns = :turns, live_turns = :live_turns, live_tokens = :live_tokens,
  checkpoint_id = :checkpoint, checkpoint_version = :version
WHERE tenant = :tenant AND conversation_id = :conversation

-- name: part_facts
SELECT id FROM facts WHERE tenant = :tenant AND source_turn = :turn AND (
  conversation_id IN (SELECT value FROM json_each(:gone)) OR (conversation_id IS NULL AND user_id = :user))

-- name: part_facts_drop
DELETE FROM facts WHERE tenant = :tenant AND id IN (SELECT value FROM json_each(:facts))

-- name: part_fact_revisions_drop
DELETE FROM fact_revisions WHERE tenant = :tenant AND fact_id IN (SELECT value FROM json_each(:facts))

-- name: part_calls
DELETE FROM context_calls
WHERE tenant = :tenant AND (conversation_id IN (SELECT value FROM json_each(:gone)) OR user_id = :user) AND (
  (conversation_id IN (SELECT value FROM json_each(:gone))
   AND (turn_id = :turn OR query IN (SELECT value FROM json_each(:words))))
  OR EXISTS (SELECT 1 FROM json_each(:names) AS n WHERE instr(options, n.value) OR instr(receipt, n.value)))

-- name: part_page_copies
SELECT {page} FROM tool_result_archive AS p
WHERE p.tenant = :tenant AND p.user_id IS :owner AND p.created_at = :created AND p.content_hash = :content_hash

-- name: part_pages
SELECT p.uuid, p.conversation_id, p.blob FROM json_each(:uuids) AS u
CROSS JOIN tool_result_archive AS p ON p.uuid = u.value AND p.tenant = :tenant

-- name: part_marks_erase
DELETE FROM watermarks WHERE tenant = :tenant AND conversation_id = :conversation AND instr(tier, ':' || :place || ':')
