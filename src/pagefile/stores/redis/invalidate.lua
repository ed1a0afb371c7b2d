-- Removes the label of a session value, so that the value is not taken for ours until another is put.
-- KEYS: the label. The label of a value that was erased stays. MGET answers false for a key of another type.
local label = redis.call('MGET', KEYS[1])[1]
if label and string.match(label, ' erased$') then
  return 0
end
return redis.call('DEL', KEYS[1])
