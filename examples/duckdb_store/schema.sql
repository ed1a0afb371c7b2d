-- The tables of Pagefile in DuckDB. Times are UTC text of fixed width; JSON is text.
CREATE SEQUENCE IF NOT EXISTS place;
CREATE SEQUENCE IF NOT EXISTS fact_revision;

CREATE TABLE IF NOT EXISTS conversations (
  tenant TEXT NOT NULL, conversation_id TEXT NOT NULL, user_id TEXT, owner TEXT, agent TEXT, project TEXT, language TEXT, timezone TEXT,
  created TEXT NOT NULL, updated TEXT NOT NULL, last_create_time TEXT, last_seq BIGINT NOT NULL DEFAULT 0,
  reset_seq BIGINT NOT NULL DEFAULT 0, covered_through_seq BIGINT NOT NULL DEFAULT 0, turns BIGINT NOT NULL DEFAULT 0,
  live_turns BIGINT NOT NULL DEFAULT 0, live_tokens BIGINT NOT NULL DEFAULT 0, checkpoint_id TEXT,
  checkpoint_version BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (tenant, conversation_id));

CREATE TABLE IF NOT EXISTS ai_message (
  place BIGINT NOT NULL DEFAULT nextval('place'), message_id TEXT NOT NULL, conversation_id TEXT NOT NULL, query TEXT, answer TEXT,
  create_time TEXT NOT NULL, create_by TEXT, update_time TEXT NOT NULL, update_by TEXT, tenant TEXT NOT NULL, seq BIGINT,
  kind TEXT NOT NULL, status TEXT NOT NULL, "at" TEXT NOT NULL, steps TEXT, metadata TEXT, messages TEXT, digest TEXT,
  user_tokens BIGINT NOT NULL, assistant_tokens BIGINT NOT NULL, tokens BIGINT NOT NULL, counter TEXT NOT NULL,
  UNIQUE (message_id, conversation_id, tenant), UNIQUE (conversation_id, tenant, seq));

CREATE TABLE IF NOT EXISTS conversation_summaries (
  id TEXT NOT NULL, conversation_id TEXT NOT NULL, summary TEXT NOT NULL, covered_message_count BIGINT NOT NULL,
  created_at TEXT NOT NULL, tenant TEXT NOT NULL, seq BIGINT NOT NULL, version BIGINT NOT NULL,
  covered_through_seq BIGINT NOT NULL, covered_turns BIGINT NOT NULL, anchors TEXT, archive_refs TEXT, fallback_reason TEXT,
  tokens BIGINT NOT NULL, counter TEXT NOT NULL, PRIMARY KEY (conversation_id, tenant));

-- The value as it was put, and what turns and markers changed since.
CREATE TABLE IF NOT EXISTS sessions (
  tenant TEXT NOT NULL, conversation_id TEXT NOT NULL, value TEXT, snapshot TEXT, changed TEXT, turns BIGINT NOT NULL DEFAULT 0,
  anew BOOLEAN NOT NULL DEFAULT FALSE, user_id TEXT, agent TEXT, answer TEXT, checkpoint_id TEXT, summary TEXT,
  PRIMARY KEY (tenant, conversation_id));

CREATE TABLE IF NOT EXISTS watermarks (
  tenant TEXT NOT NULL, conversation_id TEXT NOT NULL, tier TEXT NOT NULL, seq BIGINT NOT NULL,
  PRIMARY KEY (tenant, conversation_id, tier));

CREATE TABLE IF NOT EXISTS turn_terms (
  conversation_id TEXT NOT NULL, tenant TEXT NOT NULL, seq BIGINT NOT NULL, analyzer TEXT NOT NULL, said TEXT NOT NULL,
  answered TEXT NOT NULL, PRIMARY KEY (conversation_id, tenant, seq));

CREATE TABLE IF NOT EXISTS blobs (hash TEXT PRIMARY KEY, codec TEXT NOT NULL, data BLOB NOT NULL);

CREATE TABLE IF NOT EXISTS attachments (
  conversation_id TEXT NOT NULL, tenant TEXT NOT NULL, message_id TEXT NOT NULL, hash TEXT NOT NULL, media_type TEXT NOT NULL,
  PRIMARY KEY (conversation_id, tenant, message_id, hash));

CREATE TABLE IF NOT EXISTS tool_result_archive (
  uuid TEXT NOT NULL, conversation_id TEXT, thread_id TEXT, tool_name TEXT NOT NULL, tool_input TEXT NOT NULL,
  query_summary TEXT NOT NULL, result_summary TEXT NOT NULL, result_length BIGINT NOT NULL, sources TEXT NOT NULL,
  created_at TEXT NOT NULL, tenant TEXT NOT NULL, user_id TEXT, content_hash TEXT NOT NULL, blob TEXT, tokens BIGINT NOT NULL,
  counter TEXT NOT NULL, call_hash TEXT NOT NULL, pinned BOOLEAN NOT NULL, access_count BIGINT NOT NULL, last_access TEXT,
  purged TEXT, stored_bytes BIGINT NOT NULL, digest TEXT, embedding BLOB, embedded_by TEXT, result_full TEXT,
  PRIMARY KEY (uuid, tenant));

CREATE TABLE IF NOT EXISTS archive_passage (
  tenant TEXT NOT NULL, uuid TEXT NOT NULL, number BIGINT NOT NULL, start BIGINT NOT NULL, "end" BIGINT NOT NULL, terms TEXT,
  PRIMARY KEY (tenant, uuid, number));

CREATE TABLE IF NOT EXISTS facts (
  id TEXT NOT NULL, tenant TEXT NOT NULL, user_id TEXT NOT NULL, conversation_id TEXT, content TEXT NOT NULL, category TEXT,
  confidence DOUBLE NOT NULL, valid_from TEXT NOT NULL, valid_to TEXT, recorded TEXT NOT NULL, retracted TEXT, source_turn TEXT,
  source_quote TEXT, tokens BIGINT NOT NULL, counter TEXT NOT NULL, subject TEXT, attribute TEXT, supersedes TEXT, project TEXT,
  agent TEXT, digest TEXT, PRIMARY KEY (tenant, id));

CREATE TABLE IF NOT EXISTS fact_revisions (
  place BIGINT NOT NULL DEFAULT nextval('place'), tenant TEXT NOT NULL, user_id TEXT NOT NULL, conversation_id TEXT,
  revision BIGINT NOT NULL, fact_id TEXT NOT NULL, "at" TEXT NOT NULL, action TEXT NOT NULL, was TEXT, became TEXT NOT NULL);

CREATE TABLE IF NOT EXISTS context_calls (
  place BIGINT NOT NULL DEFAULT nextval('place'), id TEXT NOT NULL, tenant TEXT NOT NULL, user_id TEXT, conversation_id TEXT,
  "at" TEXT NOT NULL, turn_id TEXT, query TEXT, options TEXT NOT NULL, tokens BIGINT NOT NULL, ratio DOUBLE NOT NULL,
  mode TEXT NOT NULL, prefix_hash TEXT NOT NULL, receipt TEXT NOT NULL, UNIQUE (id, tenant));

CREATE TABLE IF NOT EXISTS api_keys (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, tenant TEXT NOT NULL, user_id TEXT, digest TEXT NOT NULL, created TEXT NOT NULL,
  expires TEXT, revoked TEXT, last_used TEXT);

CREATE TABLE IF NOT EXISTS items (
  tenant TEXT NOT NULL, user_id TEXT NOT NULL, namespace TEXT NOT NULL, key TEXT NOT NULL, content TEXT NOT NULL,
  created TEXT NOT NULL, updated TEXT NOT NULL, expires TEXT, ttl_s DOUBLE, maker TEXT, dimension INTEGER, data BLOB,
  PRIMARY KEY (tenant, user_id, namespace, key));

CREATE TABLE IF NOT EXISTS scope_epochs (scope TEXT PRIMARY KEY, epoch BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS erasure_marks (place TEXT PRIMARY KEY, epoch BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, secret TEXT NOT NULL);

CREATE TABLE IF NOT EXISTS leases (
  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, owner TEXT, asked TEXT NOT NULL, leased TEXT NOT NULL, expires TEXT NOT NULL,
  done BOOLEAN NOT NULL, erased BOOLEAN NOT NULL, head TEXT, data BLOB);
