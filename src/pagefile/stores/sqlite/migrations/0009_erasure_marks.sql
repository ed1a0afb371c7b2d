-- The number of the last erasure that a place outside the database (a Milvus) has carried out: what is younger is still owed to it.
CREATE TABLE erasure_marks (
  place TEXT NOT NULL PRIMARY KEY,
  epoch INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
