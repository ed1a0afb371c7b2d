-- Stores a session value unless one of the same or a newer version is stored.
-- KEYS: the value, its label. ARGV: the JSON, its version, its TTL in milliseconds, its seal, and unless anything goes: the label as it was
-- before the value was read.
--
-- The label is "<version> <SHA-1 of the value's key and the value> <seal>". A value with another digest was not written here
-- (or is damaged), so nothing is known about its version and it gives way. MGET answers false for a key of another type.
--
-- "<version> erased" is the label of a value that was erased: a client that read it before that may not put it back.
-- "invalid …" and "<version> erased …" are those of conversations that were written to since.
local value, label = unpack(redis.call('MGET', KEYS[1], KEYS[2]))
if ARGV[5] and ARGV[5] ~= (label or '') then
  return 0
end
local erased = label and string.match(label, '^(%d+) erased')
if erased and tonumber(erased) >= tonumber(ARGV[2]) then
  return 0
end
if value and label then
  local version, digest = string.match(label, '^(%d+) (%x+) %x+$')
  if digest == redis.sha1hex(KEYS[1] .. value) and tonumber(version) >= tonumber(ARGV[2]) then
    return 0
  end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
redis.call('SET', KEYS[2], ARGV[2] .. ' ' .. redis.sha1hex(KEYS[1] .. ARGV[1]) .. ' ' .. ARGV[4], 'PX', ARGV[3])
return 1
