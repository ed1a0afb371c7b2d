-- Requests that must be carried out once, by whichever process they reach, and their responses.
CREATE TABLE leases (
  id      text COLLATE "C" NOT NULL PRIMARY KEY,  -- a hash of who asked, and of their Idempotency-Key
  tenant  text COLLATE "C" NOT NULL,
  owner   text COLLATE "C",                       -- a hash of the user; NULL: the response may be about any user
  asked   text NOT NULL,                          -- a hash of the request
  leased  timestamptz NOT NULL,                   -- until then it counts as running
  expires timestamptz NOT NULL,
  done    boolean NOT NULL,
  erased  boolean NOT NULL,                       -- whether something was erased since that the response may contain
  head    text,                                   -- JSON: status and headers
  data    bytea
);

CREATE INDEX leases_by_end ON leases (expires);

ALTER TABLE leases ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON leases USING (
  tenant = current_setting('pagefile.tenant', true) OR current_setting('pagefile.tenants', true) = 'all');
