-- The number of the last erasure that a place outside the database (a Milvus) has carried out: later ones are still pending there.
CREATE TABLE erasure_marks (
  place TEXT NOT NULL PRIMARY KEY,
  epoch INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
