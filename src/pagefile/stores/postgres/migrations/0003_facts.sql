-- What a fact speaks of and what it took the place of; and every change of a user's facts, so that it can be undone.

ALTER TABLE facts ADD COLUMN subject text;
ALTER TABLE facts ADD COLUMN attribute text;
ALTER TABLE facts ADD COLUMN supersedes text;

CREATE SEQUENCE fact_revision;

-- A row for each fact that a revision wrote.
CREATE TABLE fact_revisions (
  place           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant          text COLLATE "C" NOT NULL,
  user_id         text COLLATE "C" NOT NULL,
  conversation_id text COLLATE "C",   -- the fact's
  revision        bigint NOT NULL,
  fact_id         text NOT NULL,
  at              timestamptz NOT NULL,
  action          text NOT NULL,
  was             text,               -- JSON; NULL for a new fact
  became          text NOT NULL       -- JSON
);

CREATE INDEX fact_revisions_by_user ON fact_revisions (tenant, user_id, revision);
CREATE INDEX fact_revisions_by_conversation ON fact_revisions (conversation_id, tenant) WHERE conversation_id IS NOT NULL;
