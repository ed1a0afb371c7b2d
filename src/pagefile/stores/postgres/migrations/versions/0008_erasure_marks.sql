-- The number of the last erasure that a place outside the database (a Milvus) has carried out: what is younger is still owed to it.
CREATE TABLE erasure_marks (
  place text COLLATE "C" NOT NULL PRIMARY KEY,
  epoch bigint NOT NULL
);
