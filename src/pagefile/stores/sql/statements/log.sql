-- The turn log: conversations, ai_message, conversation_summaries.

-- fragment: entry
m.kind, m.message_id, m.seq, m.status, m.query, m.answer, m.steps, m."at", m.create_time,
m.user_tokens, m.assistant_tokens, m.tokens, m.counter, m.metadata, m.messages

-- fragment: counted
c.user_id, c.agent, c.created, c.updated, c.last_seq, c.reset_seq, c.covered_through_seq,
c.turns, c.live_turns, c.live_tokens, c.project, c.language, c.timezone

-- fragment: head
{counted}, (SELECT coalesce(max(epoch), 0) FROM scope_epochs)

-- fragment: counts
-- Turns that are part of windows, summaries and indexes. One that was given up has the tokens of what the user said;
-- it has none if it was erased, or given up before version 11 of the schema.
m.kind = 'turn' AND m.seq IS NOT NULL AND (m.status = 'done' OR m.tokens > 0)

-- fragment: here
c.tenant = :tenant AND c.conversation_id = :conversation

-- name: owner
SELECT c.user_id FROM conversations AS c WHERE {here}

-- name: state
-- What a write must know about its conversation, which stays locked; the current checkpoint's version is 0 after a reset.
SELECT {counted}, c.last_create_time, c.checkpoint_version, c.checkpoint_id IS NOT NULL
FROM conversations AS c WHERE {here} {for_update}

-- name: entry_by_id
SELECT {entry} FROM ai_message AS m
WHERE m.message_id = :id AND m.conversation_id = :conversation AND m.tenant = :tenant

-- name: entries_by_id
SELECT {entry} FROM ai_message AS m
WHERE m.message_id {in ids} AND m.conversation_id = :conversation AND m.tenant = :tenant

-- name: entry_any
SELECT 1 FROM ai_message WHERE conversation_id = :conversation AND tenant = :tenant LIMIT 1

-- name: coverage
-- What a checkpoint covers and what it leaves.
SELECT
  count(*) FILTER (WHERE seq <= :covered_through_seq),
  count(query) FILTER (WHERE seq <= :covered_through_seq) + count(answer) FILTER (WHERE seq <= :covered_through_seq),
  count(*) FILTER (WHERE seq > :covered_through_seq),
  CAST(coalesce(sum(tokens) FILTER (WHERE seq > :covered_through_seq), 0) AS bigint)
FROM ai_message AS m
WHERE conversation_id = :conversation AND tenant = :tenant AND seq > :reset_seq AND {counts}

-- name: turns_after
SELECT {entry} FROM ai_message AS m
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq > :after_seq AND {counts}
ORDER BY m.seq LIMIT :limit

-- fragment: said
-- Everything in a turn, to be searched: JSON columns as they are written.
lower(coalesce(m.query, '') || ' ' || coalesce(m.answer, '') || ' ' || coalesce(CAST(m.steps AS text), '')
  || ' ' || coalesce(CAST(m.messages AS text), ''))

-- name: turns_matching
SELECT m.conversation_id, m.seq FROM ai_message AS m
WHERE m.tenant = :tenant AND m.conversation_id {in names} AND m.seq > :after_seq AND m.seq < :before_seq AND {counts}
AND (:since IS NULL OR m."at" >= :since) AND (:before IS NULL OR m."at" < :before)
AND (:tool IS NULL OR {position}(CAST(m.steps AS text), :tool) > 0)
AND NOT EXISTS (SELECT 1 FROM {listed words} AS w WHERE {position}({said}, lower(w.name)) = 0)
ORDER BY m.conversation_id, m.seq DESC

-- name: turns_located
SELECT m.message_id, m.conversation_id, c.user_id, m.seq FROM ai_message AS m
JOIN conversations AS c ON c.tenant = m.tenant AND c.conversation_id = m.conversation_id
WHERE m.message_id {in ids} AND m.tenant = :tenant AND m.kind = 'turn'
ORDER BY c.created, c.conversation_id

-- fragment: not_reset
-- Of an open turn: it is the one that is asked for, or was begun after the last reset.
(m.message_id = :open_turn OR m.create_time > coalesce((
  SELECT r.create_time FROM ai_message AS r
  WHERE r.conversation_id = m.conversation_id AND r.tenant = m.tenant AND r.seq = {reset_seq}), {long_ago}))

-- fragment: reset_seq
:reset_seq

-- fragment: long_ago
''

-- fragment: asked_for
m.conversation_id = :conversation AND m.tenant = :tenant AND m.kind {in kinds}
AND (m.kind <> 'turn' OR m.status {in statuses})

-- fragment: asked_for (sqlite)
-- A list is a JSON text here, and no kind or status is part of another one: this is cheaper than a lookup for each row.
m.conversation_id = :conversation AND m.tenant = :tenant AND instr(:kinds, m.kind)
AND (m.kind <> 'turn' OR instr(:statuses, m.status))

-- fragment: place
-- The order in which rows were written.
m.rowid

-- fragment: place (postgres)
m.place

-- name: head_of_conversation
SELECT c.conversation_id, {head} FROM conversations AS c WHERE {here}

-- fragment: heads_behind
(:after IS NULL OR c.updated < :updated OR (c.updated = :updated AND c.conversation_id > :after))
ORDER BY c.updated DESC, c.conversation_id LIMIT :limit

-- name: heads_of_user
SELECT c.conversation_id, {head} FROM conversations AS c WHERE c.tenant = :tenant AND c.user_id = :user AND {heads_behind}

-- name: heads_of_tenant
SELECT c.conversation_id, {head} FROM conversations AS c WHERE c.tenant = :tenant AND {heads_behind}

-- fragment: how_far
SELECT c.conversation_id, c.user_id, c.last_seq FROM conversations AS c

-- name: conversations_of_conversation
{how_far} WHERE {here}

-- name: conversations_of_user
{how_far} WHERE c.tenant = :tenant AND c.user_id = :user ORDER BY c.conversation_id

-- name: conversations_of_tenant
{how_far} WHERE c.tenant = :tenant ORDER BY c.conversation_id

-- name: conversation_begun
-- An existing row is locked, though it does not change: DO NOTHING would accept one that is being erased.
INSERT INTO conversations AS c (tenant, conversation_id, user_id, owner, created, updated)
VALUES (:tenant, :conversation, :user, coalesce(:user, ''), :now, :now)
ON CONFLICT (tenant, conversation_id) DO UPDATE SET updated = c.updated

-- name: marker_put
INSERT INTO ai_message (
  message_id, conversation_id, query, answer, create_time, create_by, update_time, update_by, tenant, seq, kind, status,
  "at", metadata, user_tokens, assistant_tokens, tokens, counter)
VALUES (
  :id, :conversation, :query, :answer, :created, 'system', :now, 'system', :tenant, :seq, :kind, 'done',
  :created, :metadata, 0, 0, :tokens, :counter)

-- name: summary_put
INSERT INTO conversation_summaries (
  id, conversation_id, summary, covered_message_count, created_at, tenant, seq, version, covered_through_seq,
  covered_turns, anchors, archive_refs, tokens, counter, fallback_reason)
VALUES (
  :id, :conversation, :summary, :covered_messages, :created, :tenant, :seq, :version, :covered_through_seq,
  :covered_turns, :anchors, :archive_refs, :tokens, :counter, :fallback_reason)
ON CONFLICT (conversation_id, tenant) DO UPDATE SET
  id = excluded.id, summary = excluded.summary, covered_message_count = excluded.covered_message_count,
  created_at = excluded.created_at, seq = excluded.seq, version = excluded.version,
  covered_through_seq = excluded.covered_through_seq, covered_turns = excluded.covered_turns,
  anchors = excluded.anchors, archive_refs = excluded.archive_refs, tokens = excluded.tokens, counter = excluded.counter,
  fallback_reason = excluded.fallback_reason

-- name: summary_drop
DELETE FROM conversation_summaries WHERE conversation_id = :conversation AND tenant = :tenant

-- name: conversation_checkpoint
UPDATE conversations SET
  updated = {greatest}(updated, :now), last_create_time = :created, last_seq = :seq,
  covered_through_seq = :covered_through_seq, live_turns = :live_turns, live_tokens = :live_tokens,
  checkpoint_id = :id, checkpoint_version = :version
WHERE tenant = :tenant AND conversation_id = :conversation

-- name: conversation_reset
UPDATE conversations SET
  updated = {greatest}(updated, :now), last_create_time = :created, last_seq = :seq, reset_seq = :seq, covered_through_seq = 0,
  turns = 0, live_turns = 0, live_tokens = 0, checkpoint_id = NULL
WHERE tenant = :tenant AND conversation_id = :conversation

-- name: conversation_times
-- A restored conversation has the times of its entries.
UPDATE conversations SET
  created = :created, updated = :updated, agent = coalesce(:agent, agent), project = coalesce(:project, project),
  language = coalesce(:language, language), timezone = coalesce(:timezone, timezone)
WHERE tenant = :tenant AND conversation_id = :conversation
