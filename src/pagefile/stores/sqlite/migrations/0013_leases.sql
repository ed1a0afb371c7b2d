-- Requests that must be carried out once, by whichever process they reach, and their responses.
CREATE TABLE leases (
  id      TEXT NOT NULL PRIMARY KEY,  -- a hash of who asked, and of their Idempotency-Key
  tenant  TEXT NOT NULL,
  owner   TEXT,                       -- a hash of the user; NULL: the response may be about any user
  asked   TEXT NOT NULL,              -- a hash of the request
  leased  TEXT NOT NULL,              -- until then it counts as running
  expires TEXT NOT NULL,
  done    INTEGER NOT NULL,
  erased  INTEGER NOT NULL,           -- whether something was erased since that the response may contain
  head    TEXT,                       -- JSON: status and headers
  data    BLOB
) STRICT, WITHOUT ROWID;

CREATE INDEX leases_by_end ON leases (expires);
