-- Erasing one turn or one page. `:gone` are the conversations in which it was.

-- fragment: one_of
c.user_id, m.conversation_id, {entry} FROM ai_message AS m
JOIN conversations AS c ON c.tenant = m.tenant AND c.conversation_id = m.conversation_id

-- name: part_copies_locked
-- What is read is what is changed: these turns do not move on meanwhile.

-- name: part_copies_locked (postgres)
SELECT 1 FROM conversations AS c WHERE c.tenant = :tenant AND EXISTS (
  SELECT 1 FROM ai_message AS m
  WHERE m.message_id = :turn AND m.conversation_id = c.conversation_id AND m.tenant = c.tenant)
ORDER BY c.conversation_id {for_update}

-- name: part_copies
SELECT {one_of} WHERE m.message_id = :turn AND m.tenant = :tenant AND m.kind = 'turn'

-- name: part_markers
SELECT {one_of}
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.kind IN ('checkpoint', 'reset') ORDER BY m.seq

-- fragment: naming
m.tenant = :tenant AND EXISTS (
  SELECT 1 FROM {listed uuids} AS u
  WHERE {position}(CAST(m.steps AS text), u.name) > 0
  OR (m.kind = 'checkpoint' AND {position}(CAST(m.metadata AS text), u.name) > 0))

-- name: part_naming_locked
-- The same.

-- name: part_naming_locked (postgres)
SELECT 1 FROM conversations AS c WHERE c.tenant = :tenant AND c.conversation_id IN (
  SELECT m.conversation_id FROM ai_message AS m WHERE {naming})
ORDER BY c.conversation_id {for_update}

-- name: part_naming
-- Turns whose tools named one of the pages, and checkpoints that refer to one.
SELECT {one_of} WHERE {naming}
ORDER BY m.conversation_id, m.seq

-- fragment: no_sum

-- fragment: no_sum (postgres)
, tokens_before = NULL

-- name: part_bury
-- A place in the log without its words.
UPDATE ai_message SET
  kind = 'turn', status = :status, query = :query, answer = NULL, steps = NULL, metadata = NULL, messages = NULL,
  digest = :digest, create_by = :user, update_by = :user, user_tokens = 0, assistant_tokens = 0, tokens = 0, counter = ''{no_sum}
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

-- name: part_counted
SELECT reset_seq, updated FROM conversations WHERE tenant = :tenant AND conversation_id = :conversation

-- fragment: sum_of_done

-- fragment: sum_of_done (postgres)
, done_tokens = (
    SELECT coalesce(sum(m.tokens), 0)::bigint FROM ai_message AS m
    WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND {counts})

-- fragment: moved_on
-- The time a little later. SQLite has it as text, and one writer: what was read is what is there.
:updated

-- fragment: moved_on (postgres)
updated + interval '1 microsecond'

-- name: part_recount
UPDATE conversations SET
  updated = {moved_on},
  covered_through_seq = :covered_through_seq, turns = :turns, live_turns = :live_turns, live_tokens = :live_tokens,
  checkpoint_id = :checkpoint, checkpoint_version = :version{sum_of_done}
WHERE tenant = :tenant AND conversation_id = :conversation

-- name: part_facts
SELECT id FROM facts WHERE tenant = :tenant AND source_turn = :turn AND (
  conversation_id {in gone} OR (conversation_id IS NULL AND user_id = :user))

-- name: part_facts_drop
DELETE FROM facts WHERE tenant = :tenant AND id {in fact_ids}

-- name: part_fact_revisions_drop
DELETE FROM fact_revisions WHERE tenant = :tenant AND fact_id {in fact_ids}

-- name: part_calls
DELETE FROM context_calls
WHERE tenant = :tenant AND (conversation_id {in gone} OR user_id = :user) AND (
  (conversation_id {in gone}
   AND (turn_id = :turn OR query {in words}))
  OR EXISTS (SELECT 1 FROM {listed names} AS n
    WHERE {position}(CAST(options AS text), n.name) > 0 OR {position}(CAST(receipt AS text), n.name) > 0))

-- name: part_page_copies
SELECT {page} FROM tool_result_archive AS p
WHERE p.tenant = :tenant AND p.user_id IS NOT DISTINCT FROM :owner AND p.created_at = :created AND p.content_hash = :content_hash

-- name: part_pages
SELECT p.uuid, p.conversation_id, p.blob FROM tool_result_archive AS p
WHERE p.uuid {in uuids} AND p.tenant = :tenant ORDER BY p.uuid {for_update}

-- name: part_marks_erase
DELETE FROM watermarks WHERE tenant = :tenant AND conversation_id = :conversation AND {position}(tier, ':' || :home || ':') > 0
