-- A summary says why it was extracted although a model should have written it.
ALTER TABLE conversation_summaries ADD COLUMN fallback_reason TEXT;

-- What the user said counts although no answer came: from now on a turn that was given up has the tokens of its user's words
-- and is counted. Those given up before stay out, as the checkpoints written since then count the turns they cover.
UPDATE ai_message SET tokens = 0 WHERE status = 'aborted' AND tokens > 0;
