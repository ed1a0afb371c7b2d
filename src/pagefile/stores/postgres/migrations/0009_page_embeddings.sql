-- A page can be found by its meaning.
ALTER TABLE tool_result_archive
ADD COLUMN embedding bytea,                -- 32-bit floats
ADD COLUMN embedded_by text COLLATE "C";   -- the key of the model
