-- Values that others keep here by namespace and key, as LangGraph's stores have them.

CREATE TABLE items (
  tenant    text COLLATE "C" NOT NULL,
  user_id   text COLLATE "C" NOT NULL,   -- '' for nobody's
  namespace text COLLATE "C" NOT NULL,   -- /label/label/
  key       text COLLATE "C" NOT NULL,
  content   text NOT NULL,               -- JSON
  created   timestamptz NOT NULL,
  updated   timestamptz NOT NULL,
  expires   timestamptz,
  ttl_s     double precision,
  maker     text,                        -- of the vectors
  dimension integer,
  data      bytea,                       -- little-endian floats, row after row
  PRIMARY KEY (tenant, user_id, namespace, key)
);

CREATE INDEX items_that_end ON items (tenant, user_id, expires) WHERE expires IS NOT NULL;
