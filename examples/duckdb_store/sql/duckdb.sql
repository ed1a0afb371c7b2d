-- What DuckDB says in words of its own.

-- fragment: greatest
greatest

-- fragment: in
= ANY(:{})

-- fragment: listed
(SELECT unnest(:{}) AS name)

-- fragment: wanted_uuids
unnest(:uuids) WITH ORDINALITY AS w (uuid, number) JOIN tool_result_archive AS p ON p.uuid = w.uuid

-- fragment: place
m.place

-- fragment: pinned
p.pinned

-- name: fact_revision_next
SELECT greatest(nextval('fact_revision'), :newest + 1)

-- name: has_vectors
SELECT FALSE

-- fragment: session_profile
v.value IS NULL, v.snapshot, v.user_id, v.conversation_id

-- name: session_get
SELECT c.user_id, s.conversation_id IS NOT NULL, s.value, s.changed, s.turns, s.anew, s.user_id, s.agent, s.answer,
  s.checkpoint_id, s.summary
{session_beside}

-- name: session_put
INSERT INTO sessions (tenant, conversation_id, value, snapshot)
SELECT c.tenant, c.conversation_id, :value, :snapshot FROM conversations AS c
WHERE c.tenant = :tenant AND c.conversation_id = :conversation AND c.user_id IS NOT DISTINCT FROM :user
ON CONFLICT (tenant, conversation_id) DO UPDATE SET
  value = excluded.value, snapshot = excluded.snapshot, changed = NULL, turns = 0, anew = FALSE, user_id = NULL, agent = NULL,
  answer = NULL, checkpoint_id = NULL, summary = NULL
RETURNING 1

-- name: session_turn
INSERT INTO sessions AS s (tenant, conversation_id, changed, turns, user_id, agent, answer)
VALUES (:tenant, :conversation, :created, 1, :user, :agent, :answer)
ON CONFLICT (tenant, conversation_id) DO UPDATE SET
  changed = excluded.changed, turns = s.turns + 1, user_id = coalesce(excluded.user_id, s.user_id),
  agent = coalesce(excluded.agent, s.agent), answer = coalesce(excluded.answer, s.answer)

-- name: session_checkpoint
INSERT INTO sessions AS s (tenant, conversation_id, changed, user_id, checkpoint_id, summary)
VALUES (:tenant, :conversation, :created, :user, :id, :summary)
ON CONFLICT (tenant, conversation_id) DO UPDATE SET
  changed = excluded.changed, checkpoint_id = excluded.checkpoint_id, summary = excluded.summary

-- name: session_reset
INSERT INTO sessions AS s (tenant, conversation_id, changed, anew, user_id)
VALUES (:tenant, :conversation, :created, TRUE, :user)
ON CONFLICT (tenant, conversation_id) DO UPDATE SET
  changed = excluded.changed, turns = 0, anew = TRUE, checkpoint_id = NULL, summary = NULL
