-- Who may use the service. Of a key's secret only a hash is here.

CREATE TABLE api_keys (
  id        text COLLATE "C" PRIMARY KEY,
  name      text NOT NULL,
  tenant    text COLLATE "C" NOT NULL,
  user_id   text COLLATE "C",   -- NULL: every user of the tenant
  digest    text NOT NULL,
  created   timestamptz NOT NULL,
  expires   timestamptz,
  revoked   timestamptz,
  last_used timestamptz
);
