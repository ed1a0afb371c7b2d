-- Pages can be purged: what is left is a row without a text. They know their size and the call that made them,
-- and they have passages.

CREATE TABLE archive_rebuilt (
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
  PRIMARY KEY (uuid, tenant),
  CHECK ((blob IS NULL) = (purged IS NOT NULL)),
  CHECK (purged IS NULL OR NOT pinned)
) STRICT, WITHOUT ROWID;

-- Before, `thread_id` repeated the conversation.
INSERT INTO archive_rebuilt (
  uuid, conversation_id, tool_name, tool_input, query_summary, result_summary, result_full, result_length, sources,
  created_at, tenant, user_id, content_hash, blob, tokens, counter, expires_at, pinned, access_count, last_access,
  stored_bytes)
SELECT
  p.uuid, p.conversation_id, p.tool_name, p.tool_input, p.query_summary, p.result_summary, p.result_full,
  p.result_length, p.sources, p.created_at, p.tenant, p.user_id, p.content_hash, p.blob, p.tokens, p.counter,
  p.expires_at, p.pinned, p.access_count, p.last_access, length(b.data)
FROM tool_result_archive AS p JOIN blobs AS b ON b.hash = p.blob;

DROP TABLE tool_result_archive;
ALTER TABLE archive_rebuilt RENAME TO tool_result_archive;

CREATE INDEX archive_by_conversation ON tool_result_archive (conversation_id, tenant, created_at);
CREATE INDEX archive_by_user ON tool_result_archive (tenant, user_id, created_at);
CREATE INDEX archive_by_blob ON tool_result_archive (blob);
CREATE INDEX archive_by_call ON tool_result_archive (tenant, call_hash, created_at) WHERE call_hash <> '';
CREATE INDEX archive_pinned ON tool_result_archive (conversation_id, tenant, created_at) WHERE pinned = 1;
CREATE INDEX archive_pinned_by_user ON tool_result_archive (tenant, user_id, created_at) WHERE pinned = 1;

-- Where the passages of a page begin and end, and their terms after the first search.
CREATE TABLE archive_passage (
  tenant TEXT NOT NULL,
  uuid   TEXT NOT NULL,
  number INTEGER NOT NULL,
  start  INTEGER NOT NULL,
  "end"  INTEGER NOT NULL,
  terms  TEXT,
  PRIMARY KEY (tenant, uuid, number),
  FOREIGN KEY (uuid, tenant) REFERENCES tool_result_archive (uuid, tenant)
) STRICT, WITHOUT ROWID;

-- An older page is one passage, so that it can be found.
INSERT INTO archive_passage (tenant, uuid, number, start, "end")
SELECT tenant, uuid, 0, 0, result_length FROM tool_result_archive;
