-- Changes to existing rows: messages and their attachments, a digest of what must not change, erasures by number,
-- the owner and labels of a conversation, the project and the agent of a fact, the version of the model of a vector.

ALTER TABLE ai_message ADD COLUMN messages json;       -- NULL when query, steps and answer tell all of it
ALTER TABLE ai_message ADD COLUMN digest text;         -- of a turn: SHA-256 of what was said, NULL where it is not known

-- Images and files of turns; their bytes are in `blobs`, stored once however often they are sent.
CREATE TABLE attachments (
  conversation_id text COLLATE "C" NOT NULL,
  tenant          text COLLATE "C" NOT NULL,
  message_id      text COLLATE "C" NOT NULL,
  hash            text COLLATE "C" NOT NULL REFERENCES blobs (hash),
  media_type      text NOT NULL
);

CREATE INDEX attachments_by_hash ON attachments (hash);
ALTER TABLE attachments ADD PRIMARY KEY (conversation_id, tenant, message_id, hash);

ALTER TABLE conversations ADD COLUMN owner text;       -- '' for a conversation that began without a user, NULL: not decided
ALTER TABLE conversations ADD COLUMN project text;
ALTER TABLE conversations ADD COLUMN language text;
ALTER TABLE conversations ADD COLUMN timezone text;

UPDATE conversations SET owner = user_id WHERE user_id IS NOT NULL;

ALTER TABLE facts ADD COLUMN project text;
ALTER TABLE facts ADD COLUMN agent text;
ALTER TABLE facts ADD COLUMN digest text;

ALTER TABLE tool_result_archive ADD COLUMN digest text;

-- Tables of vectors exist only where vectors were ever used.
ALTER TABLE IF EXISTS episode_makers ADD COLUMN version text NOT NULL DEFAULT '';

-- What was erased and when, in the order of erasures. It does not reveal whose data it was: `scope` is a hash.
CREATE TABLE scope_epochs (
  scope text COLLATE "C" NOT NULL PRIMARY KEY,
  epoch bigint NOT NULL
);

CREATE INDEX scope_epochs_by_epoch ON scope_epochs (epoch);
