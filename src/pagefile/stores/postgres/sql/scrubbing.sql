-- Rewriting what an erasure leaves.

-- name: scrub_now
-- Everything that was erased so far was erased before this transaction.
SELECT pg_current_xact_id()::text

-- name: scrub_watched
-- Transactions that may still see rows deleted before the given one: VACUUM keeps those rows, FULL or not.
SELECT 1 FROM (
  SELECT backend_xmin FROM pg_stat_activity WHERE pid <> pg_backend_pid()
  UNION ALL SELECT backend_xid FROM pg_stat_activity WHERE pid <> pg_backend_pid()
  UNION ALL SELECT transaction FROM pg_prepared_xacts
  UNION ALL SELECT xmin FROM pg_replication_slots) AS other (seen)
WHERE age(other.seen) >= age(:id::xid8::xid) LIMIT 1

-- name: scrub_samples
DELETE FROM pg_catalog.pg_statistic WHERE starelid IN (
  SELECT oid FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()))
