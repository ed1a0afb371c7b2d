-- The turn log: conversations, ai_message, conversation_summaries, and the session that goes with them.

-- fragment: owned
c.user_id IS NOT DISTINCT FROM :user

-- fragment: session_update
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
    :ended::integer, :counted::integer, :counted::integer, CASE WHEN :counted THEN :tokens ELSE 0 END,
    CASE WHEN :counted THEN :tokens ELSE 0 END)
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
    CASE WHEN :counted THEN told.done_tokens - :tokens END
  FROM told),
session AS ({session_update})

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

-- name: turn_found
-- A turn about to advance, and the version of its row.
SELECT m.xmin::text, c.user_id, {entry} FROM conversations AS c
LEFT JOIN ai_message AS m
  ON m.message_id = :id AND m.conversation_id = c.conversation_id AND m.tenant = c.tenant AND m.kind = 'turn'
WHERE {here}

-- name: turn_locked
-- The same after a concurrent write: the row of the conversation is locked first.
SELECT 1 FROM conversations AS c WHERE {here} FOR UPDATE

-- fragment: advanced
-- Advances an open turn, provided that it has not changed since it was read; else nothing is written.
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
    turns = c.turns + :counted::integer,
    live_turns = c.live_turns + :counted::integer,
    live_tokens = c.live_tokens + CASE WHEN :counted THEN :tokens ELSE 0 END,
    done_tokens = c.done_tokens + CASE WHEN :counted THEN :tokens ELSE 0 END
  FROM seen WHERE {here}
  RETURNING c.user_id, c.agent, c.last_seq, c.last_create_time, c.done_tokens),
moved AS (
  UPDATE ai_message AS m SET
    query = :query, user_tokens = :user_tokens, messages = :messages, digest = :digest,
    answer = :answer, steps = :steps, assistant_tokens = :assistant_tokens, tokens = :tokens, status = :status,
    create_time = CASE WHEN :ended THEN told.last_create_time ELSE m.create_time END,
    seq = CASE WHEN :ended THEN told.last_seq END,
    tokens_before = CASE WHEN :counted THEN told.done_tokens - :tokens END,
    update_time = :now, update_by = told.user_id
  FROM told WHERE m.message_id = :id AND m.conversation_id = :conversation AND m.tenant = :tenant
  RETURNING m.create_time),
session AS ({session_update})

-- name: advance
{advanced}
SELECT told.last_seq, moved.create_time FROM told, moved

-- name: advance_media
{advanced},
kept AS (
  INSERT INTO blobs (hash, codec, data) SELECT f.* FROM told, unnest(:hashes, :codecs, :files) AS f ON CONFLICT DO NOTHING),
attached AS ({attached}, told ON CONFLICT DO NOTHING)
SELECT told.last_seq, moved.create_time FROM told, moved

-- fragment: live
FROM ai_message AS m WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.tokens_before IS NOT NULL

-- fragment: running
FROM ai_message AS m WHERE m.conversation_id = :conversation AND m.tenant = :tenant AND m.seq IS NULL AND {not_reset}

-- fragment: reset_seq
(SELECT c.reset_seq FROM c)

-- fragment: long_ago
'-infinity'

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
    s.counter, s.anchors, s.archive_refs, s.fallback_reason, {session_profile}) AS top
  FROM c
  LEFT JOIN conversation_summaries AS s ON s.conversation_id = :conversation AND s.tenant = :tenant
  LEFT JOIN sessions AS v ON v.tenant = :tenant AND v.conversation_id = :conversation) AS t
FULL JOIN (
  SELECT m.* FROM f CROSS JOIN LATERAL (
    SELECT {entry} {live} AND (m.tokens_before, m.seq) >= (f.tokens_before, f.seq)
    ORDER BY m.tokens_before, m.seq LIMIT f.live_turns) AS m
  UNION ALL
  (SELECT {entry} {running} AND m.message_id = :open_turn)
  UNION ALL
  (SELECT {entry} {running} AND m.message_id IS DISTINCT FROM :open_turn ORDER BY m.place DESC LIMIT :limit)
) AS m ON FALSE

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

-- fragment: after_each
-- Of several conversations, each with what is known of it.
FROM unnest(:names, :seqs) WITH ORDINALITY AS n (name, seq, number)
CROSS JOIN LATERAL (
  SELECT m.* FROM ai_message AS m
  WHERE m.conversation_id = n.name AND m.tenant = :tenant AND m.seq > n.seq AND {counts}
  ORDER BY m.seq LIMIT :limit) AS m

-- name: turns_after_each
SELECT n.name, {entry} {after_each} ORDER BY n.number, m.seq LIMIT :limit

-- name: terms_after_each
SELECT n.name, m.seq, m.message_id, m."at", t.said, t.answered {after_each}
LEFT JOIN turn_terms AS t
  ON t.conversation_id = m.conversation_id AND t.tenant = m.tenant AND t.seq = m.seq AND t.analyzer = :analyzer
ORDER BY n.number, m.seq LIMIT :limit

-- fragment: visible
(c.user_id = :user OR (:user IS NULL AND (:conversation IS NULL OR c.user_id IS NULL)))

-- fragment: seen
c.tenant = :tenant AND (:conversation IS NULL OR c.conversation_id = :conversation) AND {visible}

-- fragment: near
m.conversation_id = c.conversation_id AND m.tenant = c.tenant AND {counts}

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
