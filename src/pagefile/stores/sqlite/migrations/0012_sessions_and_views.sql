-- What the messages of a conversation are to other programs, whatever a user typed, stopped or left open: the marks of the log
-- (kind, status), not the words, say what a row is.

-- Every checkpoint.
CREATE VIEW memory_checkpoints AS
SELECT message_id, conversation_id, query, answer, create_time, create_by, tenant, seq
FROM ai_message WHERE kind = 'checkpoint';

-- Every turn that counts: completed, or given up with what the user said.
CREATE VIEW memory_messages AS
SELECT message_id, conversation_id, query, answer, create_time, create_by, update_time, update_by, tenant, seq
FROM ai_message WHERE kind = 'turn' AND (status = 'done' OR status = 'aborted' AND tokens > 0);

-- A summary goes with its conversation.
CREATE TABLE summaries_rebuilt (
  id                    TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))),
  conversation_id       TEXT NOT NULL,
  summary               TEXT NOT NULL,
  covered_message_count INTEGER NOT NULL,
  created_at            TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')),
  tenant                TEXT NOT NULL,
  seq                   INTEGER NOT NULL,
  version               INTEGER NOT NULL,
  covered_through_seq   INTEGER NOT NULL,
  covered_turns         INTEGER NOT NULL,
  anchors               TEXT,      -- JSON
  archive_refs          TEXT,      -- JSON
  tokens                INTEGER NOT NULL,
  counter               TEXT NOT NULL,
  fallback_reason       TEXT,
  PRIMARY KEY (conversation_id, tenant),
  FOREIGN KEY (tenant, conversation_id) REFERENCES conversations (tenant, conversation_id)
    ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
) STRICT, WITHOUT ROWID;

INSERT INTO summaries_rebuilt (id, conversation_id, summary, covered_message_count, created_at, tenant, seq, version,
  covered_through_seq, covered_turns, anchors, archive_refs, tokens, counter, fallback_reason)
SELECT s.id, s.conversation_id, s.summary, s.covered_message_count, s.created_at, s.tenant, s.seq, s.version,
  s.covered_through_seq, s.covered_turns, s.anchors, s.archive_refs, s.tokens, s.counter, s.fallback_reason
FROM conversation_summaries AS s
JOIN conversations AS c ON c.tenant = s.tenant AND c.conversation_id = s.conversation_id;

DROP TABLE conversation_summaries;
ALTER TABLE summaries_rebuilt RENAME TO conversation_summaries;

-- The turns since the checkpoint in force, or since the last reset.
CREATE VIEW memory_segment AS
SELECT m.*
FROM memory_messages AS m
JOIN conversations AS c ON c.tenant = m.tenant AND c.conversation_id = m.conversation_id
LEFT JOIN conversation_summaries AS s
  ON s.tenant = c.tenant AND s.conversation_id = c.conversation_id AND s.id = c.checkpoint_id
WHERE m.seq > max(c.reset_seq, coalesce(s.seq, 0));

-- What a session cache seals its values with.
CREATE TABLE secrets (name TEXT NOT NULL PRIMARY KEY, secret TEXT NOT NULL) STRICT, WITHOUT ROWID;
