-- Replaces the label of a session value by one of its own, so that the value is not taken for ours until another is put, and what
-- was read before is not put afterwards.
-- KEYS: the label. ARGV: something that was never used before, the TTL in milliseconds.
--
-- The label of a value that was erased goes on telling so. MGET answers false for a key of another type.
local label = redis.call('MGET', KEYS[1])[1]
local erased = label and string.match(label, '^(%d+ erased)')
redis.call('SET', KEYS[1], (erased or 'invalid') .. ' ' .. ARGV[1], 'PX', ARGV[2])
return 1
