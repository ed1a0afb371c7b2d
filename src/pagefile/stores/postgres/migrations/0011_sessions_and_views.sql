-- What the messages of a conversation are to other programs, whatever a user typed, stopped or left open: the marks of the log
-- (kind, status), not the words, say what a row is. The views show what the reader may see of the tables.

-- Every checkpoint.
CREATE VIEW memory_checkpoints WITH (security_invoker = true) AS
SELECT message_id, conversation_id, query, answer, create_time, create_by, tenant, seq
FROM ai_message WHERE kind = 'checkpoint';

-- Every turn that counts: completed, or given up with what the user said.
CREATE VIEW memory_messages WITH (security_invoker = true) AS
SELECT message_id, conversation_id, query, answer, create_time, create_by, update_time, update_by, tenant, seq
FROM ai_message WHERE kind = 'turn' AND (status = 'done' OR status = 'aborted' AND tokens > 0);

-- Those since the checkpoint in force, or since the last reset.
CREATE VIEW memory_segment WITH (security_invoker = true) AS
SELECT m.*
FROM memory_messages AS m
JOIN conversations AS c ON c.tenant = m.tenant AND c.conversation_id = m.conversation_id
LEFT JOIN conversation_summaries AS s
  ON s.tenant = c.tenant AND s.conversation_id = c.conversation_id AND s.id = c.checkpoint_id
WHERE m.seq > greatest(c.reset_seq, coalesce(s.seq, 0));

-- A summary goes with its conversation.
DELETE FROM conversation_summaries AS s WHERE NOT EXISTS (
  SELECT FROM conversations AS c WHERE c.tenant = s.tenant AND c.conversation_id = s.conversation_id);
ALTER TABLE conversation_summaries
ALTER COLUMN id SET DEFAULT gen_random_uuid()::text,
ALTER COLUMN created_at SET DEFAULT now(),
ADD FOREIGN KEY (tenant, conversation_id) REFERENCES conversations (tenant, conversation_id)
  ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;

-- What a session cache seals its values with.
CREATE TABLE secrets (name text COLLATE "C" NOT NULL PRIMARY KEY, secret text NOT NULL);
