-- What recall derives from the log: the terms of turns, and vectors where the database itself is their home.

CREATE TABLE turn_terms (
  conversation_id TEXT NOT NULL,
  tenant          TEXT NOT NULL,
  seq             INTEGER NOT NULL,
  analyzer        TEXT NOT NULL,   -- how they were worked out
  said            TEXT NOT NULL,
  answered        TEXT NOT NULL,
  PRIMARY KEY (conversation_id, tenant, seq)
) STRICT, WITHOUT ROWID;

-- Which embedders made vectors here.
CREATE TABLE episode_makers (
  maker     TEXT NOT NULL PRIMARY KEY,
  name      TEXT NOT NULL,
  dimension INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Document 002's episodes: a vector for each turn. Both messages are those of the turn in ai_message; `place` rises with
-- every write, so that whoever holds vectors in memory can ask for what is new.
CREATE TABLE conversation_episodes (
  place           INTEGER PRIMARY KEY AUTOINCREMENT,
  id              TEXT NOT NULL,   -- the turn's
  conversation_id TEXT NOT NULL,
  tenant          TEXT NOT NULL,
  seq             INTEGER NOT NULL,
  maker           TEXT NOT NULL,
  embedding       BLOB NOT NULL,   -- float16, of unit length
  created_at      INTEGER NOT NULL,
  UNIQUE (conversation_id, tenant, maker, seq)
) STRICT;

CREATE INDEX episodes_by_maker ON conversation_episodes (maker);
