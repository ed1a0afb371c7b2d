-- Facts, and the journal of their changes.

-- name: fact_lock
-- Changes of one user's facts wait for each other.

-- name: fact_lock (postgres)
SELECT pg_advisory_xact_lock(hashtextextended(:tenant || chr(31) || :user, 7))

-- fragment: fact
id, user_id, conversation_id, content, category, confidence, valid_from, valid_to, recorded,
retracted, source_turn, source_quote, tokens, counter, subject, attribute, supersedes, project, agent

-- name: fact_put
INSERT INTO facts (
  id, tenant, user_id, conversation_id, content, category, confidence, valid_from, valid_to, recorded, retracted,
  source_turn, source_quote, tokens, counter, subject, attribute, supersedes, project, agent, digest)
VALUES (
  :id, :tenant, :user, :conversation, :text, :category, :confidence, :valid_from, :valid_to, :recorded, :retracted,
  :source_turn, :source_quote, :tokens, :counter, :subject, :attribute, :supersedes, :project,
  :agent, :digest)
ON CONFLICT (tenant, id) DO UPDATE SET
  conversation_id = excluded.conversation_id, content = excluded.content, category = excluded.category,
  confidence = excluded.confidence, valid_from = excluded.valid_from, valid_to = excluded.valid_to,
  recorded = excluded.recorded, retracted = excluded.retracted, source_turn = excluded.source_turn,
  source_quote = excluded.source_quote, tokens = excluded.tokens, counter = excluded.counter,
  subject = excluded.subject, attribute = excluded.attribute, supersedes = excluded.supersedes,
  project = excluded.project, agent = excluded.agent, digest = excluded.digest

-- name: fact_get
SELECT {fact} FROM facts WHERE tenant = :tenant AND id = :id

-- name: facts_of_user
SELECT {fact} FROM facts WHERE tenant = :tenant AND user_id = :user AND (:with_retracted OR retracted IS NULL)
ORDER BY recorded, id

-- name: facts_of_tenant
SELECT {fact} FROM facts WHERE tenant = :tenant AND (:with_retracted OR retracted IS NULL)
ORDER BY recorded, id

-- name: facts_changed
SELECT coalesce(max(revision), 0), count(*) FROM fact_revisions WHERE tenant = :tenant AND user_id = :user

-- name: fact_owners
SELECT DISTINCT user_id FROM facts WHERE tenant = :tenant ORDER BY user_id

-- name: fact_ids
SELECT id FROM facts WHERE tenant = :tenant AND user_id = :user

-- name: fact_revision_next
-- No number is given twice, even when rows were erased. A restored journal keeps the numbers it came with, and continues after
-- them. Here it is the place of the revision's first row, which AUTOINCREMENT never gives twice.
SELECT max(:newest, coalesce(max(seq), 0)) + 1 FROM sqlite_sequence WHERE name = 'fact_revisions'

-- name: fact_revision_next (postgres)
-- One sequence for all users.
SELECT greatest(nextval('fact_revision'), :newest + 1)

-- name: fact_revision_put
INSERT INTO fact_revisions (tenant, user_id, conversation_id, revision, fact_id, "at", action, was, became)
VALUES (:tenant, :user, :conversation, :seq, :id, :at, :action, :was, :became)

-- name: fact_revisions_after
SELECT revision, "at", action, was, became FROM fact_revisions
WHERE tenant = :tenant AND user_id = :user AND revision > :after_seq ORDER BY revision, place
