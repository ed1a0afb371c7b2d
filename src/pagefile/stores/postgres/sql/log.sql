-- The turn log: conversations, ai_message, conversation_summaries, and the session that goes with them.

-- fragment: entry
m.kind, m.message_id, m.seq, m.status, m.query, m.answer, m.steps, m.at, m.create_time,
m.user_tokens, m.assistant_tokens, m.tokens, m.counter, m.metadata, m.messages

-- fragment: head
c.user_id, c.agent, c.created, c.updated, c.last_seq, c.reset_seq, c.covered_through_seq,
c.turns, c.live_turns, c.live_tokens, c.project, c.language, c.timezone,
(SELECT coalesce(max(epoch), 0) FROM scope_epochs)

-- fragment: here
c.tenant = :tenant AND c.conversation_id = :conversation

-- fragment: owned
c.user_id IS NOT DISTINCT FROM :user

-- fragment: session_told
-- A turn was done: only columns change, the value itself stays as it was put.
INSERT INTO sessions AS s (tenant, conversation_id, changed, turns, user_id, agent, answer)
SELECT :tenant, :conversation, told.last_create_time, 1, told.user_id, told.agent, :answer FROM told WHERE :done
ON CONFLICT (tenant, conversation_id) DO UPDATE SET
  changed = excluded.changed,
  turns = s.turns + 1,
  user_id = coalesce(excluded.user_id, s.user_id),
  agent = coalesce(excluded.agent, s.agent),
  answer = coalesce(excluded.answer, s.answer)

-- fragment: appended
-- A turn and all that goes with it, in one statement: the conversation's row is made or locked, gives the next place and
-- a later time, and only then is the turn written. Nothing comes back, and nothing is written, when another user owns
-- the conversation; an id that is taken fails the whole statement. `:created` is given for turns that are restored.
WITH told AS (
  INSERT INTO conversations AS c (
    tenant, conversation_id, user_id, owner, agent, project, language, timezone, created, updated, last_create_time, last_seq,
    turns, live_turns, live_tokens, done_tokens)
  VALUES (
    :tenant, :conversation, :user, coalesce(:user, ''), :agent, :project, :language, :timezone, :now, :now, CASE WHEN :ended THEN coalesce(:created, :now) END,
    :ended::integer, :done::integer, :done::integer, CASE WHEN :done THEN :tokens ELSE 0 END,
    CASE WHEN :done THEN :tokens ELSE 0 END)
  ON CONFLICT (tenant, conversation_id) DO UPDATE SET
    agent = coalesce(excluded.agent, c.agent),
    project = coalesce(excluded.project, c.project),
    language = coalesce(excluded.language, c.language),
    timezone = coalesce(excluded.timezone, c.timezone),
    updated = greatest(c.updated, excluded.updated),
    last_create_time = CASE WHEN :ended
      THEN coalesce(:created, greatest(excluded.updated, c.last_create_time + interval '1 microsecond'))
      ELSE c.last_create_time END,
    last_seq = c.last_seq + excluded.last_seq,
    turns = c.turns + excluded.turns,
    live_turns = c.live_turns + excluded.live_turns,
    live_tokens = c.live_tokens + excluded.live_tokens,
    done_tokens = c.done_tokens + excluded.done_tokens
  WHERE {owned}
  RETURNING c.user_id, c.agent, c.last_seq, c.last_create_time, c.done_tokens, CASE WHEN :ended
    THEN c.last_create_time
    ELSE coalesce(:created, greatest(:now, c.last_create_time + interval '1 microsecond')) END AS create_time),
written AS (
  INSERT INTO ai_message (
    message_id, conversation_id, query, answer, create_time, create_by, update_time, update_by, tenant, seq, kind, status,
    at, steps, metadata, messages, digest, user_tokens, assistant_tokens, tokens, counter, tokens_before)
  SELECT
    :id, :conversation, :query, :answer, told.create_time, told.user_id, :now, told.user_id, :tenant,
    CASE WHEN :ended THEN told.last_seq END, 'turn', :status,
    :at, :steps, :metadata, :messages, :digest, :user_tokens, :assistant_tokens, :tokens, :counter,
    CASE WHEN :done THEN told.done_tokens - :tokens END
  FROM told),
session AS ({session_told})

-- fragment: kept_blobs
INSERT INTO blobs (hash, codec, data) SELECT * FROM unnest(:hashes, :codecs, :files) ON CONFLICT DO NOTHING

-- fragment: attached
INSERT INTO attachments (conversation_id, tenant, message_id, hash, media_type)
SELECT :conversation, :tenant, :id, f.hash, f.media_type FROM unnest(:hashes, :media_types) AS f (hash, media_type)

-- name: append
{appended}
SELECT told.last_seq, told.create_time FROM told

-- name: append_media
-- The same with files, which are written where the turn is.
{appended},
kept AS (
  INSERT INTO blobs (hash, codec, data) SELECT f.* FROM told, unnest(:hashes, :codecs, :files) AS f ON CONFLICT DO NOTHING),
attached AS ({attached}, told ON CONFLICT DO NOTHING)
SELECT told.last_seq, told.create_time FROM told

-- name: media_put
-- Files of a turn that is there.
WITH kept AS ({kept_blobs}) {attached} ON CONFLICT DO NOTHING

-- name: turn_found
-- A turn about to move on, and the version of its row that was seen.
SELECT m.xmin::text, c.user_id, {entry} FROM conversations AS c
LEFT JOIN ai_message AS m
  ON m.message_id = :id AND m.conversation_id = c.conversation_id AND m.tenant = c.tenant AND m.kind = 'turn'
WHERE {here}

-- name: turn_locked
-- The same for a writer who met another one: the row of the conversation is locked first.
SELECT 1 FROM conversations AS c WHERE {here} FOR UPDATE

-- fragment: advanced
-- An open turn moves on, provided that nobody changed it since it was seen; else nothing is written.
WITH seen AS (
  SELECT m.message_id FROM conversations AS c
  JOIN ai_message AS m ON m.conversation_id = c.conversation_id AND m.tenant = c.tenant
  WHERE {here} AND {owned} AND m.message_id = :id AND m.status = 'open' AND m.xmin = :row_version::xid
  FOR UPDATE OF c, m),
told AS (
  UPDATE conversations AS c SET
    updated = greatest(c.updated, :now),
    last_create_time = CASE WHEN :ended
      THEN greatest(:now, c.last_create_time + interval '1 microsecond') ELSE c.last_create_time END,
    last_seq = c.last_seq + :ended::integer,
    turns = c.turns + :done::integer,
    live_turns = c.live_turns + :done::integer,
    live_tokens = c.live_tokens + CASE WHEN :done THEN :tokens ELSE 0 END,
    done_tokens = c.done_tokens + CASE WHEN :done THEN :tokens ELSE 0 END
  FROM seen WHERE {here}
  RETURNING c.user_id, c.agent, c.last_seq, c.last_create_time, c.done_tokens),
moved AS (
  UPDATE ai_message AS m SET
    query = :query, user_tokens = :user_tokens, messages = :messages, digest = :digest,
    answer = :answer, steps = :steps, assistant_tokens = :assistant_tokens, tokens = :tokens, status = :status,
    create_time = CASE WHEN :ended THEN told.last_create_time ELSE m.create_time END,
    seq = CASE WHEN :ended THEN told.last_seq END,
    tokens_before = CASE WHEN :done THEN told.done_tokens - :tokens END,
    update_time = :now, update_by = told.user_id
  FROM told WHERE m.message_id = :id AND m.conversation_id = :conversation AND m.tenant = :tenant
  RETURNING m.create_time),
session AS ({session_told})

-- name: advance
{advanced}
SELECT told.last_seq, moved.create_time FROM told, moved

-- name: advance_media
{advanced},
kept AS (
  INSERT INTO blobs (hash, codec, data) SELECT f.* FROM told, unnest(:hashes, :codecs, :files) AS f ON CONFLICT DO NOTHING),
attached AS ({attached}, told ON CONFLICT DO NOTHING)
SELECT told.last_seq, moved.create_time FROM told, moved

-- name: conversation_begun
-- A row that is there is locked, though nothing of it changes: DO NOTHING would be content with one that is being erased.
INSERT INTO conversations AS c (tenant, conversation_id, user_id, owner, created, updated)
VALUES (:tenant, :conversation, :user, coalesce(:user, ''), :now, :now)
ON CONFLICT (tenant, conversation_id) DO UPDATE SET updated = c.updated

-- name: state
-- What a marker must know about its conversation, which stays locked; the current checkpoint's version is 0 after a reset.
SELECT {head}, c.last_create_time, c.checkpoint_version, c.checkpoint_id IS NOT NULL
FROM conversations AS c WHERE {here} FOR UPDATE

-- name: entry_by_id
SELECT {entry} FROM ai_message AS m
WHERE m.message_id = :id AND m.conversation_id = :conversation AND m.tenant = :tenant

-- name: entries_by_id
SELECT {entry} FROM ai_message AS m
WHERE m.message_id = ANY(:ids) AND m.conversation_id = :conversation AND m.tenant = :tenant

-- name: entry_any
SELECT 1 FROM ai_message WHERE conversation_id = :conversation AND tenant = :tenant LIMIT 1

-- name: coverage
-- What a checkpoint speaks for and what it leaves.
SELECT
  count(*) FILTER (WHERE seq <= :covered),
  coalesce(sum(num_nonnulls(query, answer)) FILTER (WHERE seq <= :covered), 0)::bigint,
  count(*) FILTER (WHERE seq > :covered),
  coalesce(sum(tokens) FILTER (WHERE seq > :covered), 0)::bigint
FROM ai_message
WHERE conversation_id = :conversation AND tenant = :tenant AND seq > :reset_seq AND kind = 'turn' AND status = 'done'

-- fragment: marker
INSERT INTO ai_message (
  message_id, conversation_id, query, answer, create_time, create_by, update_time, update_by, tenant, seq, kind, status,
  at, metadata, user_tokens, assistant_tokens, tokens, counter)
VALUES (
  :id, :conversation, :query, :answer, :created, 'system', :now, 'system', :tenant, :seq, :kind, 'done',
  :created, :metadata, 0, 0, :tokens, :counter)

-- name: checkpoint
WITH written AS ({marker}),
summarized AS (
  INSERT INTO conversation_summaries AS s (
    id, conversation_id, summary, covered_message_count, created_at, tenant, seq, version, covered_through_seq,
    covered_turns, anchors, archive_refs, tokens, counter)
  VALUES (
    :id, :conversation, :summary, :covered_messages, :created, :tenant, :seq, :version, :covered,
    :covered_turns, :anchors, :archive_refs, :tokens, :counter)
  ON CONFLICT (conversation_id, tenant) DO UPDATE SET
    id = excluded.id, summary = excluded.summary, covered_message_count = excluded.covered_message_count,
    created_at = excluded.created_at, seq = excluded.seq, version = excluded.version,
    covered_through_seq = excluded.covered_through_seq, covered_turns = excluded.covered_turns,
    anchors = excluded.anchors, archive_refs = excluded.archive_refs, tokens = excluded.tokens, counter = excluded.counter),
session AS (
  INSERT INTO sessions AS s (tenant, conversation_id, changed, user_id, checkpoint_id, summary)
  VALUES (:tenant, :conversation, :created, :user, :id, :summary)
  ON CONFLICT (tenant, conversation_id) DO UPDATE SET
    changed = excluded.changed, checkpoint_id = excluded.checkpoint_id, summary = excluded.summary)
UPDATE conversations AS c SET
  updated = greatest(c.updated, :now), last_create_time = :created, last_seq = :seq,
  covered_through_seq = :covered, live_turns = :live_turns, live_tokens = :live_tokens,
  checkpoint_id = :id, checkpoint_version = :version
WHERE {here}

-- name: reset
WITH written AS ({marker}),
dropped AS (DELETE FROM conversation_summaries WHERE conversation_id = :conversation AND tenant = :tenant),
session AS (
  INSERT INTO sessions AS s (tenant, conversation_id, changed, anew, user_id)
  VALUES (:tenant, :conversation, :created, TRUE, :user)
  ON CONFLICT (tenant, conversation_id) DO UPDATE SET
    changed = excluded.changed, turns = 0, anew = TRUE, checkpoint_id = NULL, summary = NULL)
UPDATE conversations AS c SET
  updated = greatest(c.updated, :now), last_create_time = :created, last_seq = :seq,
  reset_seq = :seq, covered_through_seq = 0, turns = 0, live_turns = 0, live_tokens = 0, checkpoint_id = NULL
WHERE {here}

-- name: conversation_times
-- A restored conversation has the times of its entries.
UPDATE conversations AS c SET
  created = :created, updated = :updated, project = coalesce(:project, c.project),
  language = coalesce(:language, c.language), timezone = coalesce(:timezone, c.timezone)
WHERE {here}

-- fragment: live
FROM ai_message AS m WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.tokens_before IS NOT NULL

-- name: view
-- One snapshot: a row with the head, the summary in force and the session's part, then the turns, in no order. Where the
-- turns begin is found in an index, so none is read that is not wanted: the first after which no more than the budget
-- was said, or the one that makes up the least number, whichever is older. (The last LIMIT cuts nothing off: it tells the
-- planner to expect few rows.)
WITH c AS MATERIALIZED (
  SELECT {head}, greatest(c.reset_seq, c.covered_through_seq) AS after, c.done_tokens FROM conversations AS c WHERE {here}),
f AS MATERIALIZED (
  SELECT f.tokens_before, f.seq, c.live_turns FROM c CROSS JOIN LATERAL (
    SELECT c.done_tokens - least(:budget, c.live_tokens) AS tokens_before, c.after + 1 AS seq
    UNION ALL
    SELECT c.done_tokens - c.live_tokens, c.after + 1 WHERE c.live_turns <= :least
    UNION ALL
    (SELECT m.tokens_before, m.seq {live} AND c.live_turns > :least AND :least > 0
     ORDER BY m.tokens_before DESC, m.seq DESC LIMIT 1 OFFSET greatest(:least - 1, 0))
  ) AS f ORDER BY f.tokens_before, f.seq LIMIT 1)
SELECT t.top, {entry}
FROM (
  SELECT ROW({head}, s.id, s.seq, s.version, s.summary, s.covered_through_seq, s.covered_turns, s.created_at, s.tokens,
    s.counter, s.anchors, s.archive_refs, v.value IS NULL, v.snapshot, v.user_id, v.conversation_id) AS top
  FROM c
  LEFT JOIN conversation_summaries AS s ON s.conversation_id = :conversation AND s.tenant = :tenant
  LEFT JOIN sessions AS v ON v.tenant = :tenant AND v.conversation_id = :conversation) AS t
FULL JOIN (
  SELECT m.* FROM f CROSS JOIN LATERAL (
    SELECT {entry} {live} AND (m.tokens_before, m.seq) >= (f.tokens_before, f.seq)
    ORDER BY m.tokens_before, m.seq LIMIT f.live_turns) AS m
  UNION ALL
  SELECT {entry} FROM ai_message AS m
  WHERE m.message_id = :open_turn AND m.conversation_id = :conversation AND m.tenant = :tenant AND m.status = 'open'
) AS m ON FALSE

-- fragment: asked_for
m.conversation_id = :conversation AND m.tenant = :tenant AND m.kind = ANY(:kinds)
AND (m.kind <> 'turn' OR m.status = ANY(:statuses))

-- name: entries
-- Ended ones first; a conversation without any gives a row that has only its owner.
SELECT c.user_id, {entry} FROM conversations AS c LEFT JOIN (
  (SELECT {entry}, m.place FROM ai_message AS m WHERE {asked_for} AND m.seq > :after_seq ORDER BY m.seq LIMIT :limit)
  UNION ALL
  (SELECT {entry}, m.place FROM ai_message AS m WHERE {asked_for} AND m.seq IS NULL ORDER BY m.place LIMIT :limit)
) AS m ON TRUE WHERE {here} ORDER BY m.seq NULLS LAST, m.place LIMIT greatest(:limit, 1)

-- name: entries_back
SELECT c.user_id, {entry} FROM conversations AS c LEFT JOIN (
  (SELECT {entry}, m.place FROM ai_message AS m WHERE {asked_for} AND m.seq > :after_seq ORDER BY m.seq DESC LIMIT :limit)
  UNION ALL
  (SELECT {entry}, m.place FROM ai_message AS m WHERE {asked_for} AND m.seq IS NULL ORDER BY m.place DESC LIMIT :limit)
) AS m ON TRUE WHERE {here} ORDER BY m.seq DESC NULLS FIRST, m.place DESC LIMIT greatest(:limit, 1)

-- name: owner
SELECT c.user_id FROM conversations AS c WHERE {here}

-- fragment: visible
(c.user_id = :user OR (:user IS NULL AND (:conversation IS NULL OR c.user_id IS NULL)))

-- name: head_of_conversation
SELECT c.conversation_id, {head} FROM conversations AS c WHERE {here}

-- fragment: heads_behind
(:after IS NULL OR c.updated < :updated OR (c.updated = :updated AND c.conversation_id > :after))
ORDER BY c.updated DESC, c.conversation_id LIMIT :limit

-- name: heads_of_user
SELECT c.conversation_id, {head} FROM conversations AS c WHERE c.tenant = :tenant AND c.user_id = :user AND {heads_behind}

-- name: heads_of_tenant
SELECT c.conversation_id, {head} FROM conversations AS c WHERE c.tenant = :tenant AND {heads_behind}

-- fragment: seen
c.tenant = :tenant AND (:conversation IS NULL OR c.conversation_id = :conversation) AND {visible}

-- name: conversations_seen
-- `:names` and `:seqs` say how far each conversation is known; what has nothing new is left out.
SELECT c.conversation_id, c.user_id, coalesce(k.seq, 0) AS after FROM conversations AS c
LEFT JOIN unnest(:names, :seqs) AS k (name, seq) ON k.name = c.conversation_id
WHERE {seen} AND c.last_seq > coalesce(k.seq, 0) ORDER BY c.conversation_id

-- name: turns_after
SELECT {entry} FROM ai_message AS m
WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq > :after_seq AND m.kind = 'turn' AND m.status = 'done'
ORDER BY m.seq LIMIT :limit

-- fragment: near
m.conversation_id = c.conversation_id AND m.tenant = c.tenant AND m.kind = 'turn' AND m.status = 'done'

-- name: around
-- For each place asked for: the turn (0), the done turn before it (1) and the one after it (2).
SELECT r.number, near.which, c.conversation_id, c.user_id, {entry}
FROM unnest(:names, :seqs) WITH ORDINALITY AS r (name, seq, number)
JOIN conversations AS c ON c.conversation_id = r.name AND {seen}
CROSS JOIN LATERAL (
  (SELECT 0 AS which, {entry} FROM ai_message AS m WHERE {near} AND m.seq = r.seq)
  UNION ALL
  (SELECT 1 AS which, {entry} FROM ai_message AS m WHERE {near} AND m.seq < r.seq ORDER BY m.seq DESC LIMIT 1)
  UNION ALL
  (SELECT 2 AS which, {entry} FROM ai_message AS m WHERE {near} AND m.seq > r.seq ORDER BY m.seq LIMIT 1)
) AS near
CROSS JOIN LATERAL (SELECT near.*) AS m
ORDER BY r.number, near.which
