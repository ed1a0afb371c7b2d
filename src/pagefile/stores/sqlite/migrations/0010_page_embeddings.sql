-- A page can be found by its meaning, and its row has the full text. It is the last column, so that reading a row without it stays
-- as fast as it was; and the table has row ids, since a lookup by key in one without reads whole rows.

CREATE TABLE archive_rebuilt (
  uuid            TEXT NOT NULL,
  conversation_id TEXT,
  thread_id       TEXT,
  tool_name       TEXT NOT NULL,
  tool_input      TEXT NOT NULL,   -- JSON
  query_summary   TEXT NOT NULL,
  result_summary  TEXT NOT NULL,
  result_length   INTEGER NOT NULL,
  sources         TEXT NOT NULL,   -- JSON
  created_at      TEXT NOT NULL,
  tenant          TEXT NOT NULL,
  user_id         TEXT,
  content_hash    TEXT NOT NULL,   -- as the caller gave it
  blob            TEXT REFERENCES blobs (hash),
  tokens          INTEGER NOT NULL,
  counter         TEXT NOT NULL,
  call_hash       TEXT NOT NULL DEFAULT '',
  expires_at      TEXT,
  pinned          INTEGER NOT NULL DEFAULT 0,
  access_count    INTEGER NOT NULL DEFAULT 0,
  last_access     TEXT,
  purged          TEXT,            -- when the text went
  stored_bytes    INTEGER NOT NULL DEFAULT 0,  -- of the blob; of a tombstone, what its blob had
  digest          TEXT,
  embedding       BLOB,            -- 32-bit floats
  embedded_by     TEXT,            -- the key of the model
  result_full     TEXT,
  PRIMARY KEY (uuid, tenant),
  CHECK ((blob IS NULL) = (purged IS NOT NULL)),
  CHECK (purged IS NULL OR NOT pinned)
) STRICT;

INSERT INTO archive_rebuilt (
  uuid, conversation_id, thread_id, tool_name, tool_input, query_summary, result_summary, result_length, sources,
  created_at, tenant, user_id, content_hash, blob, tokens, counter, call_hash, expires_at, pinned, access_count,
  last_access, purged, stored_bytes, digest)
SELECT
  uuid, conversation_id, thread_id, tool_name, tool_input, query_summary, result_summary, result_length, sources,
  created_at, tenant, user_id, content_hash, blob, tokens, counter, call_hash, expires_at, pinned, access_count,
  last_access, purged, stored_bytes, digest
FROM tool_result_archive;

CREATE TABLE passage_rebuilt (
  tenant TEXT NOT NULL,
  uuid   TEXT NOT NULL,
  number INTEGER NOT NULL,
  start  INTEGER NOT NULL,
  "end"  INTEGER NOT NULL,
  terms  TEXT,
  PRIMARY KEY (tenant, uuid, number),
  FOREIGN KEY (uuid, tenant) REFERENCES archive_rebuilt (uuid, tenant)
) STRICT, WITHOUT ROWID;

INSERT INTO passage_rebuilt (tenant, uuid, number, start, "end", terms)
SELECT tenant, uuid, number, start, "end", terms FROM archive_passage;

DROP TABLE archive_passage;
DROP TABLE tool_result_archive;
ALTER TABLE archive_rebuilt RENAME TO tool_result_archive;
ALTER TABLE passage_rebuilt RENAME TO archive_passage;

CREATE INDEX archive_by_conversation ON tool_result_archive (conversation_id, tenant, created_at);
CREATE INDEX archive_by_user ON tool_result_archive (tenant, user_id, created_at);
CREATE INDEX archive_by_blob ON tool_result_archive (blob);
CREATE INDEX archive_by_call ON tool_result_archive (tenant, call_hash, created_at) WHERE call_hash <> '';
CREATE INDEX archive_pinned ON tool_result_archive (conversation_id, tenant, created_at) WHERE pinned = 1;
CREATE INDEX archive_pinned_by_user ON tool_result_archive (tenant, user_id, created_at) WHERE pinned = 1;
CREATE INDEX archive_by_thread ON tool_result_archive (thread_id, tenant, created_at) WHERE thread_id IS NOT NULL;
