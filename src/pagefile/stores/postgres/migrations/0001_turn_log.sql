-- The whole schema of revision 0001. Table and column names of the design documents are kept as they are.
-- Names and ids compare byte by byte (COLLATE "C"), so that lists have the same order on every server.
-- Keys are made after other indexes: while the planner has no statistics it takes the youngest index that fits, and
-- must not go through a whole tenant for the sake of one row.
-- JSON is kept as the text it was given (json, not jsonb): numbers, order and escapes come back as they were.

-- The revision, in the table of Alembic, which made the first databases.
CREATE TABLE alembic_version (version_num varchar(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY);
INSERT INTO alembic_version VALUES ('0001');

-- One row holds everything a window must know about a conversation before it reads a turn. Every write changes it: the
-- free space in its pages keeps those changes out of the indexes.
CREATE TABLE conversations (
  tenant              text COLLATE "C" NOT NULL,
  conversation_id     text COLLATE "C" NOT NULL,
  user_id             text COLLATE "C",
  agent               text,
  created             timestamptz NOT NULL,
  updated             timestamptz NOT NULL,
  last_create_time    timestamptz,                  -- create_time of the newest row with a seq
  last_seq            bigint NOT NULL DEFAULT 0,
  reset_seq           bigint NOT NULL DEFAULT 0,
  covered_through_seq bigint NOT NULL DEFAULT 0,
  turns               bigint NOT NULL DEFAULT 0,    -- done since the reset
  live_turns          bigint NOT NULL DEFAULT 0,    -- done and after both reset and checkpoint
  live_tokens         bigint NOT NULL DEFAULT 0,
  done_tokens         bigint NOT NULL DEFAULT 0,    -- of all done turns, whatever was reset or covered
  checkpoint_id       text COLLATE "C",             -- NULL after a reset
  checkpoint_version  bigint NOT NULL DEFAULT 0     -- counts on after a reset
) WITH (fillfactor = 70);

CREATE INDEX conversations_by_user ON conversations (user_id, tenant);
ALTER TABLE conversations ADD PRIMARY KEY (tenant, conversation_id);

-- The turn log. The keys begin with the columns that the design documents' own statements filter by.
CREATE TABLE ai_message (
  message_id       text COLLATE "C" NOT NULL,
  conversation_id  text COLLATE "C" NOT NULL,
  query            text,
  answer           text,
  create_time      timestamptz NOT NULL,  -- rises strictly with seq
  create_by        text,
  update_time      timestamptz NOT NULL,
  update_by        text,
  tenant           text COLLATE "C" NOT NULL,
  seq              bigint,                -- NULL while the turn is open
  kind             text COLLATE "C" NOT NULL CHECK (kind IN ('turn', 'checkpoint', 'reset')),
  status           text COLLATE "C" NOT NULL CHECK (status IN ('open', 'done', 'aborted')),
  at               timestamptz NOT NULL,
  steps            json,                  -- NULL when there are none
  metadata         json,                  -- NULL when there is none; of a checkpoint, all its fields
  user_tokens      bigint NOT NULL,
  assistant_tokens bigint NOT NULL,
  tokens           bigint NOT NULL,
  counter          text NOT NULL,
  tokens_before    bigint,                -- of the done turns before this one; NULL unless it is one itself
  place            bigint NOT NULL GENERATED ALWAYS AS IDENTITY,  -- the order in which rows were written
  UNIQUE (conversation_id, tenant, seq),
  UNIQUE (message_id, conversation_id, tenant),
  CHECK ((seq IS NULL) = (status = 'open'))
);

-- Where a budget ends: done turns by what came before them.
CREATE INDEX ai_message_by_tokens ON ai_message (conversation_id, tenant, tokens_before, seq)
WHERE tokens_before IS NOT NULL;

-- The current summary. Earlier ones are rows of ai_message.
CREATE TABLE conversation_summaries (
  id                    text COLLATE "C" NOT NULL,
  conversation_id       text COLLATE "C" NOT NULL,
  summary               text NOT NULL,
  covered_message_count bigint NOT NULL,
  created_at            timestamptz NOT NULL,
  tenant                text COLLATE "C" NOT NULL,
  seq                   bigint NOT NULL,
  version               bigint NOT NULL,
  covered_through_seq   bigint NOT NULL,
  covered_turns         bigint NOT NULL,
  anchors               json,
  archive_refs          json,
  tokens                bigint NOT NULL,
  counter               text NOT NULL,
  PRIMARY KEY (conversation_id, tenant)
);

-- Contents by the SHA-256 of their UTF-8: equal text is stored once. They come compressed.
CREATE TABLE blobs (
  hash  text COLLATE "C" NOT NULL PRIMARY KEY,
  codec text COLLATE "C" NOT NULL CHECK (codec IN ('raw', 'zlib')),
  data  bytea NOT NULL
);

ALTER TABLE blobs ALTER COLUMN data SET STORAGE EXTERNAL;

-- Archived tool results. The full text is in `blobs`, stored once for equal results; `result_full` stays
-- NULL and is kept for statements that name it. A purged page is a row without a text.
CREATE TABLE tool_result_archive (
  uuid            text COLLATE "C" NOT NULL,
  conversation_id text COLLATE "C",
  thread_id       text,
  tool_name       text NOT NULL,
  tool_input      json NOT NULL,
  query_summary   text NOT NULL,
  result_summary  text NOT NULL,
  result_full     text,
  result_length   bigint NOT NULL,
  sources         json NOT NULL,
  created_at      timestamptz NOT NULL,
  tenant          text COLLATE "C" NOT NULL,
  user_id         text COLLATE "C",
  content_hash    text NOT NULL,          -- as the caller gave it
  blob            text COLLATE "C" REFERENCES blobs (hash),
  tokens          bigint NOT NULL,
  counter         text NOT NULL,
  call_hash       text COLLATE "C" NOT NULL DEFAULT '',
  expires_at      timestamptz,
  pinned          boolean NOT NULL DEFAULT false,
  access_count    bigint NOT NULL DEFAULT 0,
  last_access     timestamptz,
  purged          timestamptz,            -- when the text went
  stored_bytes    bigint NOT NULL DEFAULT 0,  -- of the blob; of a tombstone, what its blob had
  CHECK ((blob IS NULL) = (purged IS NOT NULL)),
  CHECK (purged IS NULL OR NOT pinned)
);

CREATE INDEX archive_by_conversation ON tool_result_archive (conversation_id, tenant, created_at);
CREATE INDEX archive_by_user ON tool_result_archive (tenant, user_id, created_at);
CREATE INDEX archive_by_blob ON tool_result_archive (blob);
CREATE INDEX archive_by_call ON tool_result_archive (tenant, call_hash, created_at) WHERE call_hash <> '';
CREATE INDEX archive_pinned ON tool_result_archive (tenant, created_at) WHERE pinned;
ALTER TABLE tool_result_archive ADD PRIMARY KEY (uuid, tenant);

-- Where the passages of a page begin and end, and their terms after the first search.
CREATE TABLE archive_passage (
  tenant text COLLATE "C" NOT NULL,
  uuid   text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  start  bigint NOT NULL,
  "end"  bigint NOT NULL,
  terms  text,
  PRIMARY KEY (tenant, uuid, number),
  FOREIGN KEY (uuid, tenant) REFERENCES tool_result_archive (uuid, tenant)
);

CREATE TABLE facts (
  id              text COLLATE "C" NOT NULL,
  tenant          text COLLATE "C" NOT NULL,
  user_id         text COLLATE "C" NOT NULL,
  conversation_id text COLLATE "C",
  content         text NOT NULL,
  category        text,
  confidence      double precision NOT NULL,
  valid_from      timestamptz NOT NULL,
  valid_to        timestamptz,
  recorded        timestamptz NOT NULL,
  retracted       timestamptz,
  source_turn     text,
  source_quote    text,
  tokens          bigint NOT NULL,
  counter         text NOT NULL
);

CREATE INDEX facts_by_user ON facts (tenant, user_id, recorded);
CREATE INDEX facts_by_conversation ON facts (conversation_id, tenant) WHERE conversation_id IS NOT NULL;
ALTER TABLE facts ADD PRIMARY KEY (tenant, id);

-- Recorded windows; `place` is the order in which they were written.
CREATE TABLE context_calls (
  place           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id              text COLLATE "C" NOT NULL,
  tenant          text COLLATE "C" NOT NULL,
  user_id         text COLLATE "C",
  conversation_id text COLLATE "C",
  at              timestamptz NOT NULL,
  turn_id         text,
  query           text,
  options         json NOT NULL,
  tokens          bigint NOT NULL,
  ratio           double precision NOT NULL,
  mode            text NOT NULL,
  prefix_hash     text NOT NULL,
  receipt         json NOT NULL
);

CREATE INDEX calls_by_conversation ON context_calls (conversation_id, tenant, place);
CREATE INDEX calls_by_user ON context_calls (tenant, user_id, place);
ALTER TABLE context_calls ADD UNIQUE (id, tenant);

-- Session values: as last put, and what turns and markers changed since. A turn then writes a few
-- columns instead of the whole value; a read combines both.
CREATE TABLE sessions (
  tenant          text COLLATE "C" NOT NULL,
  conversation_id text COLLATE "C" NOT NULL,
  value           json,             -- NULL: never put, it began with a turn
  snapshot        json,             -- its user_snapshot, which every window wants; NULL when it has none
  changed         timestamptz,      -- NULL: not since it was put
  turns           bigint NOT NULL DEFAULT 0,
  anew            boolean NOT NULL DEFAULT false,  -- there was a reset, and `turns` counts from it
  user_id         text COLLATE "C",
  agent           text,
  answer          text,
  checkpoint_id   text COLLATE "C",
  summary         text,
  PRIMARY KEY (tenant, conversation_id)
) WITH (fillfactor = 70);

-- How far each tier has caught up with the log.
CREATE TABLE watermarks (
  tenant          text COLLATE "C" NOT NULL,
  conversation_id text COLLATE "C" NOT NULL,
  tier            text COLLATE "C" NOT NULL,
  seq             bigint NOT NULL,
  PRIMARY KEY (tenant, conversation_id, tier)
);
