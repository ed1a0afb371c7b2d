-- Rows exactly as stored, to prove that nothing is lost; and the repair of derived data.

-- fragment: done_tokens
-- PostgreSQL knows of each done turn what was said before it, and of each conversation the sum.
NULL

-- fragment: done_tokens (postgres)
c.done_tokens

-- fragment: done_set

-- fragment: done_set (postgres)
, done_tokens = :done_tokens

-- fragment: done_column

-- fragment: done_column (postgres)
, done_tokens

-- fragment: done_value

-- fragment: done_value (postgres)
, :done_tokens

-- fragment: sum_before
NULL

-- fragment: sum_before (postgres)
m.tokens_before

-- fragment: json_object
json_group_object

-- fragment: json_object (postgres)
json_object_agg

-- fragment: kept
c.tenant, c.conversation_id, c.user_id, c.last_seq, c.reset_seq, c.covered_through_seq, c.turns, c.live_turns,
c.live_tokens, c.checkpoint_id, c.checkpoint_version, c.last_create_time, {done_tokens},
(SELECT {json_object}(w.tier, w.seq) FROM watermarks AS w
 WHERE w.tenant = c.tenant AND w.conversation_id = c.conversation_id),
s.id, s.seq, s.version, s.summary, s.covered_through_seq, s.covered_turns, s.created_at, s.tokens, s.counter,
s.anchors, s.archive_refs, s.fallback_reason
FROM conversations AS c
LEFT JOIN conversation_summaries AS s ON s.conversation_id = c.conversation_id AND s.tenant = c.tenant

-- name: audit_conversations
SELECT {kept} WHERE (c.tenant, c.conversation_id) > (:after_tenant, :name) AND (:tenants IS NULL OR c.tenant = :tenants)
ORDER BY c.tenant, c.conversation_id LIMIT :limit

-- name: audit_conversation
SELECT {kept} WHERE c.tenant = :tenant AND c.conversation_id = :conversation

-- name: audit_size
SELECT (SELECT count(*) FROM ai_message WHERE :tenants IS NULL OR tenant = :tenants)
+ (SELECT count(*) FROM tool_result_archive WHERE :tenants IS NULL OR tenant = :tenants)

-- name: audit_lost
SELECT m.tenant, m.conversation_id, max(m.create_by) FILTER (WHERE m.kind = 'turn') FROM ai_message AS m
WHERE (:tenants IS NULL OR m.tenant = :tenants) AND NOT EXISTS (
  SELECT 1 FROM conversations AS c WHERE c.tenant = m.tenant AND c.conversation_id = m.conversation_id)
GROUP BY m.tenant, m.conversation_id ORDER BY m.tenant, m.conversation_id

-- name: audit_entries
SELECT {entry}, m.create_by, m.digest, {sum_before} FROM ai_message AS m
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq > :after_seq ORDER BY m.seq LIMIT :limit

-- name: audit_open
SELECT {entry}, m.create_by, m.digest, {sum_before} FROM ai_message AS m
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq IS NULL ORDER BY {place}

-- name: audit_entry
SELECT {entry}, m.create_by, m.digest, {sum_before} FROM ai_message AS m
WHERE m.message_id = :id AND m.conversation_id = :conversation AND m.tenant = :tenant

-- name: audit_pages
SELECT p.tenant, p.blob, (SELECT octet_length(b.data) FROM blobs AS b WHERE b.hash = p.blob), p.digest, {page}
FROM tool_result_archive AS p
WHERE (p.tenant, p.uuid) > (:after_tenant, :name) AND (:tenants IS NULL OR p.tenant = :tenants) ORDER BY p.tenant, p.uuid LIMIT :limit

-- name: audit_lengths
SELECT p.uuid, p.result_length, p.purged FROM tool_result_archive AS p
WHERE p.uuid {in uuids} AND p.tenant = :tenant

-- name: audit_users
SELECT tenant, user_id FROM facts
WHERE (tenant, user_id) > (:after_tenant, :name) AND (:tenants IS NULL OR tenant = :tenants)
GROUP BY tenant, user_id ORDER BY tenant, user_id LIMIT :limit

-- name: audit_facts
SELECT digest, {fact} FROM facts WHERE tenant = :tenant AND user_id = :user AND digest IS NOT NULL ORDER BY id

-- fragment: no_turn
NOT EXISTS (
  SELECT 1 FROM ai_message AS m WHERE m.conversation_id = x.conversation_id AND m.tenant = x.tenant AND m.seq = x.seq
  AND {counts})

-- fragment: no_conversation
NOT EXISTS (SELECT 1 FROM conversations AS c WHERE c.tenant = x.tenant AND c.conversation_id = x.conversation_id)

-- fragment: no_page
NOT EXISTS (
  SELECT 1 FROM tool_result_archive AS p WHERE p.uuid = x.uuid AND p.tenant = x.tenant AND p.purged IS NULL)

-- fragment: asked
(:tenants IS NULL OR x.tenant = :tenants)

-- name: orphans_terms
SELECT x.tenant, x.conversation_id, x.seq, '' FROM turn_terms AS x WHERE {asked} AND {no_turn} LIMIT :limit

-- name: orphans_vector
SELECT x.tenant, x.conversation_id, x.seq, x.maker FROM conversation_episodes AS x WHERE {asked} AND {no_turn} LIMIT :limit

-- name: orphans_watermark
SELECT x.tenant, x.conversation_id, NULL, x.tier FROM watermarks AS x WHERE {asked} AND {no_conversation} LIMIT :limit

-- name: orphans_summary
SELECT x.tenant, x.conversation_id, NULL, '' FROM conversation_summaries AS x
WHERE {asked} AND {no_conversation} LIMIT :limit

-- name: orphans_session
SELECT x.tenant, x.conversation_id, NULL, '' FROM sessions AS x WHERE {asked} AND {no_conversation} LIMIT :limit

-- name: orphans_passage
SELECT DISTINCT x.tenant, NULL, NULL, x.uuid FROM archive_passage AS x WHERE {asked} AND {no_page} LIMIT :limit

-- name: orphans_text
SELECT NULL, NULL, NULL, b.hash FROM blobs AS b
WHERE :tenants IS NULL AND NOT EXISTS (SELECT 1 FROM tool_result_archive AS p WHERE p.blob = b.hash)
AND NOT EXISTS (SELECT 1 FROM attachments AS a WHERE a.hash = b.hash) LIMIT :limit

-- name: orphan_drop_terms
DELETE FROM turn_terms AS x
WHERE x.tenant = :tenant AND x.conversation_id = :conversation AND x.seq = :seq AND {no_turn}

-- name: orphan_drop_vector
DELETE FROM conversation_episodes AS x
WHERE x.tenant = :tenant AND x.conversation_id = :conversation AND x.seq = :seq AND x.maker = :name AND {no_turn}

-- name: orphan_drop_watermark
DELETE FROM watermarks AS x
WHERE x.tenant = :tenant AND x.conversation_id = :conversation AND x.tier = :name AND {no_conversation}

-- name: orphan_drop_summary
DELETE FROM conversation_summaries AS x WHERE x.tenant = :tenant AND x.conversation_id = :conversation AND {no_conversation}

-- name: orphan_drop_passage
DELETE FROM archive_passage AS x WHERE x.tenant = :tenant AND x.uuid = :name AND {no_page}

-- name: audit_recount
UPDATE conversations SET
  last_seq = :last_seq, reset_seq = :reset_seq, covered_through_seq = :covered_through_seq, turns = :turns, live_turns = :live_turns,
  live_tokens = :live_tokens, checkpoint_id = :checkpoint_id, checkpoint_version = :checkpoint_version, last_create_time = :last_created{done_set}
WHERE tenant = :tenant AND conversation_id = :conversation AND last_seq = :seen_seq AND last_create_time IS NOT DISTINCT FROM :seen_created

-- name: audit_remake
INSERT INTO conversations (
  tenant, conversation_id, user_id, owner, created, updated, last_create_time, last_seq, reset_seq, covered_through_seq,
  turns, live_turns, live_tokens, checkpoint_id, checkpoint_version{done_column})
VALUES (
  :tenant, :conversation, :owner, :owner, :first, :last, :last_created, :last_seq, :reset_seq, :covered_through_seq, :turns, :live_turns,
  :live_tokens, :checkpoint_id, :checkpoint_version{done_value})
ON CONFLICT DO NOTHING

-- name: audit_mark
UPDATE watermarks SET seq = :seq WHERE tenant = :tenant AND conversation_id = :conversation AND tier = :tier

-- name: audit_living
SELECT 1 FROM tool_result_archive WHERE tenant = :tenant AND uuid = :uuid AND purged IS NULL

-- name: audit_copy
SELECT result_full FROM tool_result_archive WHERE tenant = :tenant AND uuid = :uuid

-- name: audit_copy_put
UPDATE tool_result_archive SET result_full = :content
WHERE tenant = :tenant AND uuid = :uuid AND result_full IS NOT NULL

-- name: audit_bytes
UPDATE tool_result_archive SET stored_bytes = (SELECT octet_length(data) FROM blobs WHERE hash = blob)
WHERE tenant = :tenant AND uuid = :uuid AND purged IS NULL

-- name: audit_sums
-- What came before each turn that counts.

-- name: audit_sums (postgres)
UPDATE ai_message AS m SET tokens_before = s.before FROM (
  SELECT m.message_id, (sum(m.tokens) OVER (ORDER BY m.seq) - m.tokens)::bigint AS before FROM ai_message AS m
  WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND {counts}) AS s
WHERE m.message_id = s.message_id AND m.conversation_id = :conversation AND m.tenant = :tenant
AND m.tokens_before IS DISTINCT FROM s.before
