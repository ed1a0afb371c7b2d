-- The whole schema of version 1. Table and column names of the design documents are kept as they are.
-- Times are UTC text of fixed width, so that comparing the texts compares the times.

-- One row holds everything a window must know about a conversation before it reads a turn.
CREATE TABLE conversations (
  tenant              TEXT NOT NULL,
  conversation_id     TEXT NOT NULL,
  user_id             TEXT,
  agent               TEXT,
  created             TEXT NOT NULL,
  updated             TEXT NOT NULL,
  last_create_time    TEXT,                        -- create_time of the newest row with a seq
  last_seq            INTEGER NOT NULL DEFAULT 0,
  reset_seq           INTEGER NOT NULL DEFAULT 0,
  covered_through_seq INTEGER NOT NULL DEFAULT 0,
  turns               INTEGER NOT NULL DEFAULT 0,  -- done since the reset
  live_turns          INTEGER NOT NULL DEFAULT 0,  -- done and after both reset and checkpoint
  live_tokens         INTEGER NOT NULL DEFAULT 0,
  checkpoint_id       TEXT,                        -- NULL after a reset
  checkpoint_version  INTEGER NOT NULL DEFAULT 0,  -- counts on after a reset
  PRIMARY KEY (tenant, conversation_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX conversations_by_user ON conversations (tenant, user_id);

-- The turn log. The keys begin with the columns that the design documents' own statements filter by.
CREATE TABLE ai_message (
  message_id       TEXT NOT NULL,
  conversation_id  TEXT NOT NULL,
  query            TEXT,
  answer           TEXT,
  create_time      TEXT NOT NULL,  -- rises strictly with seq
  create_by        TEXT,
  update_time      TEXT NOT NULL,
  update_by        TEXT,
  tenant           TEXT NOT NULL,
  seq              INTEGER,        -- NULL while the turn is open
  kind             TEXT NOT NULL CHECK (kind IN ('turn', 'checkpoint', 'reset')),
  status           TEXT NOT NULL CHECK (status IN ('open', 'done', 'aborted')),
  at               TEXT NOT NULL,
  steps            TEXT,           -- JSON, NULL when there are none
  metadata         TEXT,           -- JSON, NULL when there is none; of a checkpoint, all its fields
  user_tokens      INTEGER NOT NULL,
  assistant_tokens INTEGER NOT NULL,
  tokens           INTEGER NOT NULL,
  counter          TEXT NOT NULL,
  UNIQUE (conversation_id, tenant, seq),
  UNIQUE (message_id, conversation_id, tenant),
  CHECK ((seq IS NULL) = (status = 'open'))
) STRICT;

-- The current summary. Earlier ones are rows of ai_message.
CREATE TABLE conversation_summaries (
  id                    TEXT NOT NULL,
  conversation_id       TEXT NOT NULL,
  summary               TEXT NOT NULL,
  covered_message_count INTEGER NOT NULL,
  created_at            TEXT NOT NULL,
  tenant                TEXT NOT NULL,
  seq                   INTEGER NOT NULL,
  version               INTEGER NOT NULL,
  covered_through_seq   INTEGER NOT NULL,
  covered_turns         INTEGER NOT NULL,
  anchors               TEXT,      -- JSON
  archive_refs          TEXT,      -- JSON
  tokens                INTEGER NOT NULL,
  counter               TEXT NOT NULL,
  PRIMARY KEY (conversation_id, tenant)
) STRICT, WITHOUT ROWID;

-- Contents by the SHA-256 of their UTF-8: equal text is stored once.
CREATE TABLE blobs (
  hash  TEXT NOT NULL PRIMARY KEY,
  codec TEXT NOT NULL CHECK (codec IN ('raw', 'zlib')),
  data  BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Archived tool results. The full text is in `blobs`, compressed and stored once for equal results;
-- `result_full` stays NULL: a view or a generated column cannot decompress, and a second copy in plain text would undo
-- both savings. The column is kept for statements that name it.
CREATE TABLE tool_result_archive (
  uuid            TEXT NOT NULL,
  conversation_id TEXT,
  thread_id       TEXT,
  tool_name       TEXT NOT NULL,
  tool_input      TEXT NOT NULL,   -- JSON
  query_summary   TEXT NOT NULL,
  result_summary  TEXT NOT NULL,
  result_full     TEXT,
  result_length   INTEGER NOT NULL,
  sources         TEXT NOT NULL,   -- JSON
  created_at      TEXT NOT NULL,
  tenant          TEXT NOT NULL,
  user_id         TEXT,
  content_hash    TEXT NOT NULL,   -- as the caller gave it
  blob            TEXT NOT NULL REFERENCES blobs (hash),
  tokens          INTEGER NOT NULL,
  counter         TEXT NOT NULL,
  expires_at      TEXT,
  pinned          INTEGER NOT NULL DEFAULT 0,
  access_count    INTEGER NOT NULL DEFAULT 0,
  last_access     TEXT,
  PRIMARY KEY (uuid, tenant)
) STRICT, WITHOUT ROWID;

CREATE INDEX archive_by_conversation ON tool_result_archive (conversation_id, tenant, created_at);
CREATE INDEX archive_by_user ON tool_result_archive (tenant, user_id, created_at);
CREATE INDEX archive_by_blob ON tool_result_archive (blob);

CREATE TABLE facts (
  id              TEXT NOT NULL,
  tenant          TEXT NOT NULL,
  user_id         TEXT NOT NULL,
  conversation_id TEXT,
  content         TEXT NOT NULL,
  category        TEXT,
  confidence      REAL NOT NULL,
  valid_from      TEXT NOT NULL,
  valid_to        TEXT,
  recorded        TEXT NOT NULL,
  retracted       TEXT,
  source_turn     TEXT,
  source_quote    TEXT,
  tokens          INTEGER NOT NULL,
  counter         TEXT NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX facts_by_user ON facts (tenant, user_id, recorded);
CREATE INDEX facts_by_conversation ON facts (conversation_id, tenant) WHERE conversation_id IS NOT NULL;

-- Recorded windows; `place` is the order in which they were written.
CREATE TABLE context_calls (
  place           INTEGER PRIMARY KEY AUTOINCREMENT,
  id              TEXT NOT NULL,
  tenant          TEXT NOT NULL,
  user_id         TEXT,
  conversation_id TEXT,
  at              TEXT NOT NULL,
  turn_id         TEXT,
  query           TEXT,
  options         TEXT NOT NULL,   -- JSON
  tokens          INTEGER NOT NULL,
  ratio           REAL NOT NULL,
  mode            TEXT NOT NULL,
  prefix_hash     TEXT NOT NULL,
  receipt         TEXT NOT NULL,   -- JSON
  UNIQUE (id, tenant)
) STRICT;

CREATE INDEX calls_by_conversation ON context_calls (conversation_id, tenant);
CREATE INDEX calls_by_user ON context_calls (tenant, user_id);

-- Session values, written in the transaction of the turn that changes them.
CREATE TABLE sessions (
  tenant          TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  value           TEXT NOT NULL,   -- JSON
  PRIMARY KEY (tenant, conversation_id)
) STRICT, WITHOUT ROWID;

-- How far each tier has caught up with the log.
CREATE TABLE watermarks (
  tenant          TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  tier            TEXT NOT NULL,
  seq             INTEGER NOT NULL,
  PRIMARY KEY (tenant, conversation_id, tier)
) STRICT, WITHOUT ROWID;
