-- name: describe
-- Where the tables are, and what they and their indexes take.
SELECT
  current_setting('server_version'),
  (SELECT version_num FROM alembic_version),
  current_setting('transaction_read_only')::boolean,
  (SELECT coalesce(sum(pg_total_relation_size(r.oid)), 0)::bigint
   FROM pg_class AS r JOIN pg_namespace AS n ON n.oid = r.relnamespace
   WHERE r.relkind = 'r' AND n.nspname = (
     SELECT o.nspname FROM pg_class AS v JOIN pg_namespace AS o ON o.oid = v.relnamespace
     WHERE v.oid = to_regclass('alembic_version')))
