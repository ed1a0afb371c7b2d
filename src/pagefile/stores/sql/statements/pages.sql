-- Archived pages, their passages, and what keeps them. The fragments `of_…` say whose pages a list shows (of a
-- conversation also those without an owner), `reached` says which may be used by a caller that knows their uuid.

-- fragment: page
p.uuid, p.user_id, p.conversation_id, p.tool_name, p.tool_input, p.query_summary, p.result_summary, p.result_length,
p.sources, p.created_at, p.tokens, p.counter, p.content_hash, p.call_hash, p.thread_id, p.pinned, p.access_count,
p.last_access, p.purged, p.stored_bytes

-- fragment: of_conversation
p.conversation_id = :conversation AND p.tenant = :tenant
AND (p.user_id IS NULL OR p.user_id = :user)

-- fragment: of_user
p.tenant = :tenant AND p.user_id = :user

-- fragment: of_tenant
p.tenant = :tenant

-- fragment: reached
p.tenant = :tenant AND CASE WHEN :user IS NULL
  THEN :conversation IS NULL OR (p.user_id IS NULL AND p.conversation_id = :conversation)
  ELSE p.user_id = :user OR (p.user_id IS NULL AND p.conversation_id = :conversation) END

-- name: blob_put
INSERT INTO blobs (hash, codec, data) VALUES (:hash, :codec, :data) ON CONFLICT DO NOTHING

-- name: page_put
-- Only a tombstone whose text has come back is replaced.
INSERT INTO tool_result_archive (
  uuid, conversation_id, thread_id, tool_name, tool_input, query_summary, result_summary, result_length, sources,
  created_at, tenant, user_id, content_hash, blob, tokens, counter, call_hash, pinned, access_count, last_access,
  purged, stored_bytes, digest, result_full)
VALUES (
  :uuid, :conversation, :thread, :tool, :input, :query_summary, :result_summary, :length, :sources,
  :created, :tenant, :user, :content_hash, :blob, :tokens, :counter, :call_hash, :pinned, :loads, :last_load,
  :purged, :stored_bytes, :digest, :full)
ON CONFLICT (uuid, tenant) DO UPDATE SET
  conversation_id = excluded.conversation_id, thread_id = excluded.thread_id, tool_name = excluded.tool_name,
  tool_input = excluded.tool_input, query_summary = excluded.query_summary, result_summary = excluded.result_summary,
  result_length = excluded.result_length, sources = excluded.sources, created_at = excluded.created_at,
  user_id = excluded.user_id, content_hash = excluded.content_hash, blob = excluded.blob, tokens = excluded.tokens,
  counter = excluded.counter, call_hash = excluded.call_hash, pinned = excluded.pinned,
  access_count = excluded.access_count, last_access = excluded.last_access, purged = excluded.purged,
  stored_bytes = excluded.stored_bytes, digest = excluded.digest, result_full = excluded.result_full

-- name: page_stored
SELECT p.blob, {page} FROM tool_result_archive AS p WHERE p.uuid = :uuid AND p.tenant = :tenant

-- name: page_locked
SELECT p.blob, {page} FROM tool_result_archive AS p WHERE p.uuid = :uuid AND p.tenant = :tenant {for_update}

-- name: page_load
SELECT b.codec, b.data, {page} FROM tool_result_archive AS p LEFT JOIN blobs AS b ON b.hash = p.blob
WHERE p.uuid = :uuid AND {reached}

-- fragment: pages_behind
(:after IS NULL OR (p.created_at, p.uuid) < (:created, :after)) ORDER BY p.created_at DESC, p.uuid DESC LIMIT :limit

-- name: pages_of_conversation
SELECT {page} FROM tool_result_archive AS p WHERE {of_conversation} AND {pages_behind}

-- name: pages_of_user
SELECT {page} FROM tool_result_archive AS p WHERE {of_user} AND {pages_behind}

-- name: pages_of_tenant
SELECT {page} FROM tool_result_archive AS p WHERE {of_tenant} AND {pages_behind}

-- name: page_reached
SELECT {page} FROM tool_result_archive AS p WHERE p.uuid = :uuid AND {reached}

-- name: pages_named
SELECT {page} FROM tool_result_archive AS p WHERE p.uuid {in uuids} AND {reached} ORDER BY p.created_at, p.uuid

-- name: pages_holding
-- A text is kept under the hash of its content.
SELECT {page} FROM tool_result_archive AS p WHERE p.blob {in hashes} AND {reached} ORDER BY p.created_at, p.uuid

-- name: pages_reached
SELECT p.uuid, p.blob FROM tool_result_archive AS p WHERE p.uuid {in uuids} AND {reached} {for_update}

-- name: pages_erase
DELETE FROM tool_result_archive WHERE uuid {in uuids} AND tenant = :tenant

-- name: page_pin
-- A tombstone is not pinned; the caller then reads it and says why.
UPDATE tool_result_archive AS p SET pinned = :pinned WHERE p.uuid = :uuid AND p.purged IS NULL AND {reached}

-- name: page_touch
UPDATE tool_result_archive AS p SET
  access_count = p.access_count + 1, last_access = {greatest}(coalesce(p.last_access, :at), :at)
WHERE p.uuid = :uuid AND p.purged IS NULL AND {reached}

-- name: page_tenants
SELECT DISTINCT tenant FROM tool_result_archive WHERE purged IS NULL AND :tenants IS NULL ORDER BY tenant

-- fragment: pinned
-- As SQLite's indexes on pinned pages say it.
p.pinned = 1

-- fragment: pinned (postgres)
p.pinned

-- name: pinned_of_conversation
SELECT {page} FROM tool_result_archive AS p WHERE {of_conversation} AND {pinned} ORDER BY p.created_at, p.uuid

-- name: pinned_of_user
SELECT {page} FROM tool_result_archive AS p WHERE {of_user} AND {pinned} ORDER BY p.created_at, p.uuid

-- name: pinned_of_tenant
SELECT {page} FROM tool_result_archive AS p WHERE {of_tenant} AND {pinned} ORDER BY p.created_at, p.uuid

-- name: page_of_call
SELECT {page} FROM tool_result_archive AS p
WHERE p.call_hash = :call_hash AND p.call_hash <> '' AND p.created_at >= :since AND p.purged IS NULL AND {reached}
ORDER BY p.created_at DESC, p.uuid DESC LIMIT 1

-- fragment: held
p.uuid, p.created_at, p.stored_bytes, (p.pinned OR p.uuid {in spared}) AS pinned,
NOT p.pinned AND (p.uuid {in uuids} OR (coalesce(p.created_at < :before, FALSE) AND NOT p.uuid {in spared})) AS named
FROM tool_result_archive AS p

-- fragment: due
-- A page goes when it is named, or when it and those after it are still too large together with the pinned ones.
, rest AS (
  SELECT uuid, pinned,
    sum(stored_bytes) OVER () - coalesce(sum(CASE WHEN pinned THEN 0 ELSE stored_bytes END) OVER (
      ORDER BY created_at, uuid ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS size
  FROM held WHERE NOT named)
SELECT p.blob, {page} FROM tool_result_archive AS p
WHERE p.tenant = :tenant AND p.uuid IN (
  SELECT uuid FROM held WHERE named
  UNION ALL SELECT uuid FROM rest WHERE NOT pinned AND size > :max_bytes)
ORDER BY p.created_at, p.uuid

-- name: due_of_conversation
WITH held AS (SELECT {held} WHERE {of_conversation} AND p.purged IS NULL)
{due}

-- name: due_of_user
WITH held AS (SELECT {held} WHERE {of_user} AND p.purged IS NULL)
{due}

-- name: due_of_tenant
WITH held AS (SELECT {held} WHERE {of_tenant} AND p.purged IS NULL)
{due}

-- name: pages_bury
-- Those that were pinned or purged meanwhile stay as they are.
UPDATE tool_result_archive SET blob = NULL, result_full = NULL, embedding = NULL, purged = :at
WHERE uuid {in uuids} AND tenant = :tenant AND purged IS NULL AND NOT pinned
RETURNING uuid

-- name: passages_drop
DELETE FROM archive_passage WHERE tenant = :tenant AND uuid {in uuids}

-- name: passage_put
INSERT INTO archive_passage (tenant, uuid, number, start, "end") VALUES (:tenant, :uuid, :number, :start, :end)

-- name: passage_put (postgres)
INSERT INTO archive_passage (tenant, uuid, number, start, "end")
SELECT :tenant, :uuid, s.* FROM unnest(:all_number, :all_start, :all_end) AS s

-- fragment: embedded
p.embedded_by = :maker AND p.embedding IS NOT NULL

-- name: uuids_of_conversation
SELECT p.uuid FROM tool_result_archive AS p WHERE {of_conversation} AND p.purged IS NULL ORDER BY p.created_at, p.uuid

-- name: uuids_of_user
SELECT p.uuid FROM tool_result_archive AS p WHERE {of_user} AND p.purged IS NULL ORDER BY p.created_at, p.uuid

-- name: uuids_of_tenant
SELECT p.uuid FROM tool_result_archive AS p WHERE {of_tenant} AND p.purged IS NULL ORDER BY p.created_at, p.uuid

-- name: embeddings_of_conversation
SELECT p.uuid, p.embedding FROM tool_result_archive AS p WHERE {of_conversation} AND {embedded}

-- name: embeddings_of_user
SELECT p.uuid, p.embedding FROM tool_result_archive AS p WHERE {of_user} AND {embedded}

-- name: embeddings_of_tenant
SELECT p.uuid, p.embedding FROM tool_result_archive AS p WHERE {of_tenant} AND {embedded}

-- name: page_embed
UPDATE tool_result_archive AS p SET embedding = :data, embedded_by = :maker
WHERE p.uuid = :uuid AND p.purged IS NULL AND {reached}

-- fragment: wanted_uuids
-- The list first, each with its number in it: its rows are found by their key.
(SELECT key AS number, value AS uuid FROM json_each(:uuids)) AS w CROSS JOIN tool_result_archive AS p ON p.uuid = w.uuid

-- fragment: wanted_uuids (postgres)
unnest(:uuids) WITH ORDINALITY AS w (uuid, number) JOIN tool_result_archive AS p ON p.uuid = w.uuid

-- name: passages_read
SELECT w.number, p.uuid, a.number, a.start, a."end", a.terms
FROM {wanted_uuids}
LEFT JOIN archive_passage AS a ON a.tenant = p.tenant AND a.uuid = p.uuid
WHERE p.purged IS NULL AND {reached}
ORDER BY w.number, a.number

-- name: passages_count
-- The page stays as it is until its terms are written.
SELECT (SELECT count(*) FROM archive_passage AS a WHERE a.tenant = p.tenant AND a.uuid = p.uuid)
FROM tool_result_archive AS p WHERE p.uuid = :uuid AND p.purged IS NULL AND {reached} {for_share}

-- name: passage_terms
UPDATE archive_passage SET terms = :terms WHERE tenant = :tenant AND uuid = :uuid AND number = :number

-- name: passage_terms (postgres)
UPDATE archive_passage AS a SET terms = t.terms FROM unnest(:all_number, :all_terms) AS t (number, terms)
WHERE a.tenant = :tenant AND a.uuid = :uuid AND a.number = t.number
