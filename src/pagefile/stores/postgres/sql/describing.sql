-- The server and the role of the URL; the schema of the tables is wherever the search path found them.

-- fragment: our_schema
(SELECT v.relnamespace FROM pg_class AS v WHERE v.oid = to_regclass('alembic_version'))

-- name: describe
SELECT
  current_setting('server_version'),
  (SELECT version_num FROM alembic_version),
  current_setting('transaction_read_only')::boolean,
  (SELECT coalesce(sum(pg_total_relation_size(r.oid)), 0)::bigint
   FROM pg_class AS r WHERE r.relkind = 'r' AND r.relnamespace = {our_schema}),
  current_user::text,
  {our_schema}::regnamespace::text,
  CASE WHEN u.rolsuper THEN 'superuser' WHEN u.rolbypassrls THEN 'BYPASSRLS' END,
  (SELECT coalesce(array_agg(r.relname::text ORDER BY r.relname), ARRAY[]::text[]) FROM pg_class AS r
   WHERE r.relkind = 'r' AND r.relnamespace = {our_schema} AND r.relname = ANY(:names)
   AND NOT (r.relrowsecurity AND r.relforcerowsecurity))
FROM pg_roles AS u WHERE u.rolname = current_user
