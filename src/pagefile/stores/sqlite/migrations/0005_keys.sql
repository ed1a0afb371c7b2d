-- Who may use the service. Of a key's secret only a hash is here.

CREATE TABLE api_keys (
  id        TEXT PRIMARY KEY,
  name      TEXT NOT NULL,
  tenant    TEXT NOT NULL,
  user_id   TEXT,            -- NULL: every user of the tenant
  digest    TEXT NOT NULL,
  created   TEXT NOT NULL,
  expires   TEXT,
  revoked   TEXT,
  last_used TEXT
) STRICT, WITHOUT ROWID;
