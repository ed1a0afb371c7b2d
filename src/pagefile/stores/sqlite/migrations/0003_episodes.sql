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

-- Episodes: a vector for each turn. Both messages are those of the turn in ai_message. A row never changes:
-- a new version gets a new `place`, and places increase, so that a cache of vectors can ask for what is new.
CREATE TABLE conversation_episodes (
  place           INTEGER PRIMARY KEY AUTOINCREMENT,
  id              TEXT NOT NULL,   -- the turn's
  conversation_id TEXT NOT NULL,
  tenant          TEXT NOT NULL,
  seq             INTEGER NOT NULL,
  user_id         TEXT,            -- the conversation's owner
  maker           TEXT NOT NULL,
  embedding       BLOB NOT NULL,   -- float16, little-endian, of unit length
  created_at      INTEGER NOT NULL,
  UNIQUE (conversation_id, tenant, maker, seq),
  FOREIGN KEY (tenant, conversation_id) REFERENCES conversations (tenant, conversation_id) ON DELETE CASCADE
) STRICT;

CREATE INDEX episodes_by_user ON conversation_episodes (maker, tenant, user_id);

-- A conversation that gets its owner late: its vectors become that user's, as new rows. The old ones step aside first,
-- below zero: a REPLACE in a trigger gives way to whatever the statement outside of it says about conflicts.
CREATE TRIGGER episodes_claimed AFTER UPDATE OF user_id ON conversations WHEN new.user_id IS NOT old.user_id
BEGIN
  UPDATE conversation_episodes SET seq = -seq WHERE conversation_id = new.conversation_id AND tenant = new.tenant;
  INSERT INTO conversation_episodes (id, conversation_id, tenant, seq, user_id, maker, embedding, created_at)
  SELECT id, conversation_id, tenant, -seq, new.user_id, maker, embedding, created_at FROM conversation_episodes
  WHERE conversation_id = new.conversation_id AND tenant = new.tenant AND seq < 0;
  DELETE FROM conversation_episodes WHERE conversation_id = new.conversation_id AND tenant = new.tenant AND seq < 0;
END;
