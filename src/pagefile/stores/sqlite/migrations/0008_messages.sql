-- Changes to existing rows: messages and their attachments, a digest of what must not change, erasures by number,
-- the owner and labels of a conversation, the project and the agent of a fact, the version of the model of a vector.

ALTER TABLE ai_message ADD COLUMN messages TEXT;      -- JSON, NULL when query, steps and answer tell all of it
ALTER TABLE ai_message ADD COLUMN digest TEXT;        -- of a turn: SHA-256 of what was said, NULL where it is not known

-- Images and files of turns; their bytes are in `blobs`, stored once however often they are sent.
CREATE TABLE attachments (
  conversation_id TEXT NOT NULL,
  tenant          TEXT NOT NULL,
  message_id      TEXT NOT NULL,
  hash            TEXT NOT NULL REFERENCES blobs (hash),
  media_type      TEXT NOT NULL,
  PRIMARY KEY (conversation_id, tenant, message_id, hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX attachments_by_hash ON attachments (hash);

ALTER TABLE conversations ADD COLUMN owner TEXT;      -- '' for a conversation that began without a user, NULL: not decided
ALTER TABLE conversations ADD COLUMN project TEXT;
ALTER TABLE conversations ADD COLUMN language TEXT;
ALTER TABLE conversations ADD COLUMN timezone TEXT;

UPDATE conversations SET owner = user_id;

ALTER TABLE facts ADD COLUMN project TEXT;
ALTER TABLE facts ADD COLUMN agent TEXT;
ALTER TABLE facts ADD COLUMN digest TEXT;

ALTER TABLE tool_result_archive ADD COLUMN digest TEXT;

ALTER TABLE episode_makers ADD COLUMN version TEXT NOT NULL DEFAULT '';

-- What was erased and when, in the order of erasures. It does not reveal whose data it was: `scope` is a hash.
CREATE TABLE scope_epochs (
  scope TEXT NOT NULL PRIMARY KEY,
  epoch INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX scope_epochs_by_epoch ON scope_epochs (epoch);
