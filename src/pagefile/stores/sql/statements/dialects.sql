-- What the dialects call differently.

-- fragment: for_update
-- SQLite has one writer.

-- fragment: for_update (postgres)
FOR UPDATE

-- fragment: for_share

-- fragment: for_share (postgres)
FOR SHARE

-- fragment: greatest
max

-- fragment: greatest (postgres)
greatest

-- fragment: bytewise
-- SQLite compares bytes anyway.

-- fragment: bytewise (postgres)
COLLATE "C"

-- fragment: in
-- One of a list; SQLite takes lists as JSON.
IN (SELECT value FROM json_each(:{}))

-- fragment: in (postgres)
= ANY(:{})

-- fragment: listed
-- A list as rows.
(SELECT value AS name FROM json_each(:{}))

-- fragment: listed (postgres)
(SELECT unnest(:{}) AS name)

-- fragment: position
instr

-- fragment: position (postgres)
strpos
