-- What is derived from the log.

-- name: watermarks_known_of_user
SELECT w.conversation_id, w.seq FROM conversations AS c
JOIN watermarks AS w ON w.tenant = c.tenant AND w.conversation_id = c.conversation_id AND w.tier = :tier
WHERE c.tenant = :tenant AND c.user_id = :user AND (:conversation IS NULL OR c.conversation_id = :conversation)
ORDER BY w.conversation_id

-- name: watermarks_known
SELECT w.conversation_id, w.seq FROM watermarks AS w
JOIN conversations AS c ON c.tenant = w.tenant AND c.conversation_id = w.conversation_id
WHERE w.tenant = :tenant AND w.tier = :tier
AND (:conversation IS NULL OR (c.conversation_id = :conversation AND c.user_id IS NULL))
ORDER BY w.conversation_id

-- name: watermark_advance
INSERT INTO watermarks (tenant, conversation_id, tier, seq)
SELECT tenant, conversation_id, :tier, :seq FROM conversations
WHERE tenant = :tenant AND conversation_id = :conversation
ON CONFLICT (tenant, conversation_id, tier) DO UPDATE SET seq = {greatest}(watermarks.seq, excluded.seq)

-- name: watermarks_behind
SELECT c.tenant, c.user_id, c.conversation_id, coalesce(w.seq, 0), c.last_seq FROM conversations AS c
LEFT JOIN watermarks AS w ON w.tenant = c.tenant AND w.conversation_id = c.conversation_id AND w.tier = :tier
WHERE c.last_seq > coalesce(w.seq, 0) AND (:tenants IS NULL OR c.tenant = :tenants)
ORDER BY c.tenant, c.conversation_id LIMIT :limit

-- name: watermarks_tiers
SELECT DISTINCT tier {bytewise} AS tier FROM watermarks WHERE :tenants IS NULL ORDER BY tier

-- name: watermarks_drop
DELETE FROM watermarks WHERE tier = :tier AND :tenants IS NULL

-- name: terms_after
SELECT m.seq, m.message_id, m."at", t.said, t.answered FROM ai_message AS m
LEFT JOIN turn_terms AS t
  ON t.conversation_id = m.conversation_id AND t.tenant = m.tenant AND t.seq = m.seq AND t.analyzer = :analyzer
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq > :after_seq
AND {counts}
ORDER BY m.seq LIMIT :limit

-- fragment: terms_replaced
ON CONFLICT (conversation_id, tenant, seq) DO UPDATE
SET analyzer = excluded.analyzer, said = excluded.said, answered = excluded.answered

-- name: terms_write
INSERT INTO turn_terms (conversation_id, tenant, seq, analyzer, said, answered)
SELECT conversation_id, tenant, seq, :analyzer, :said, :answered FROM ai_message
WHERE conversation_id = :conversation AND tenant = :tenant AND seq = :seq
{terms_replaced}

-- name: terms_write (postgres)
INSERT INTO turn_terms (conversation_id, tenant, seq, analyzer, said, answered)
SELECT m.conversation_id, m.tenant, m.seq, :analyzer, n.said, n.answered
FROM unnest(:all_conversation, :all_seq, :all_said, :all_answered) AS n (conversation_id, seq, said, answered)
JOIN ai_message AS m ON m.conversation_id = n.conversation_id AND m.tenant = :tenant AND m.seq = n.seq
{terms_replaced}
