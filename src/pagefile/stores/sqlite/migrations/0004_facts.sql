-- What a fact speaks of and what it took the place of; and every change of a user's facts, so that it can be undone.

ALTER TABLE facts ADD COLUMN subject TEXT;
ALTER TABLE facts ADD COLUMN attribute TEXT;
ALTER TABLE facts ADD COLUMN supersedes TEXT;

-- A row for each fact that a revision wrote.
CREATE TABLE fact_revisions (
  place           INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant          TEXT NOT NULL,
  user_id         TEXT NOT NULL,
  conversation_id TEXT,            -- the fact's
  revision        INTEGER NOT NULL,
  fact_id         TEXT NOT NULL,
  at              TEXT NOT NULL,
  action          TEXT NOT NULL,
  was             TEXT,            -- JSON; NULL for a new fact
  became          TEXT NOT NULL    -- JSON
) STRICT;

CREATE INDEX fact_revisions_by_user ON fact_revisions (tenant, user_id, revision);
CREATE INDEX fact_revisions_by_conversation ON fact_revisions (conversation_id, tenant) WHERE conversation_id IS NOT NULL;
