-- A page can be found by its meaning. The full text stands last, so that reading a row without it stays as fast as it was.
ALTER TABLE tool_result_archive ADD COLUMN embedding BLOB;    -- 32-bit floats
ALTER TABLE tool_result_archive ADD COLUMN embedded_by TEXT;  -- the key of the model
ALTER TABLE tool_result_archive DROP COLUMN result_full;
ALTER TABLE tool_result_archive ADD COLUMN result_full TEXT;
