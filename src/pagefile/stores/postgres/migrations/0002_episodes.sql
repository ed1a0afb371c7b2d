-- What recall derives from the log. Vectors have their own tables, made when they are first needed: they want an extension.

CREATE TABLE turn_terms (
  conversation_id text COLLATE "C" NOT NULL,
  tenant          text COLLATE "C" NOT NULL,
  seq             bigint NOT NULL,
  analyzer        text NOT NULL,   -- how they were worked out
  said            text NOT NULL,
  answered        text NOT NULL,
  PRIMARY KEY (conversation_id, tenant, seq)
);
