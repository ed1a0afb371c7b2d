-- Values that others keep here by namespace and key, as LangGraph's stores have them.

CREATE TABLE items (
  tenant    TEXT NOT NULL,
  user_id   TEXT NOT NULL,     -- '' for nobody's
  namespace TEXT NOT NULL,     -- /label/label/
  key       TEXT NOT NULL,
  content   TEXT NOT NULL,     -- JSON
  created   TEXT NOT NULL,
  updated   TEXT NOT NULL,
  expires   TEXT,
  ttl_s     REAL,
  maker     TEXT,              -- of the vectors
  dimension INTEGER,
  data      BLOB,              -- little-endian floats, row after row
  PRIMARY KEY (tenant, user_id, namespace, key)
) STRICT;

CREATE INDEX items_that_end ON items (tenant, user_id, expires) WHERE expires IS NOT NULL;
