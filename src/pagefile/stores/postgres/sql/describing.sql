-- The server and the role of the URL; the schema of the tables is wherever the search path found them.

-- fragment: our_schema
(SELECT v.relnamespace FROM pg_class AS v WHERE v.oid = to_regclass('alembic_version'))

-- name: describe
SELECT
  current_setting('server_version'),
  (SELECT version_num FROM alembic_version),
  current_setting('transaction_read_only')::boolean,
  (SELECT coalesce(sum(pg_total_relation_size(r.oid)), 0)::bigint
   FROM pg_class AS r WHERE r.relkind = 'r' AND r.relnamespace = {our_schema})

-- name: describe_walls
-- Whether row-level security holds the role of the URL; where it does not, the SQL that makes it hold.
SELECT
  current_user::text,
  CASE WHEN u.rolsuper THEN 'superuser' WHEN u.rolbypassrls THEN 'BYPASSRLS' END,
  o.tables,
  CASE WHEN u.rolsuper OR u.rolbypassrls
    THEN format('CREATE ROLE pagefile_service LOGIN PASSWORD ''…'' NOSUPERUSER NOBYPASSRLS;'
      ' GRANT USAGE ON SCHEMA %1$s TO pagefile_service;'
      ' GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %1$s TO pagefile_service;'
      ' GRANT USAGE ON ALL SEQUENCES IN SCHEMA %1$s TO pagefile_service;'
      ' ALTER DEFAULT PRIVILEGES IN SCHEMA %1$s GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO pagefile_service;'
      ' ALTER DEFAULT PRIVILEGES IN SCHEMA %1$s GRANT USAGE ON SEQUENCES TO pagefile_service;', {our_schema}::regnamespace)
    ELSE o.mended END
FROM pg_roles AS u, (
  SELECT coalesce(array_agg(r.relname::text ORDER BY r.relname), ARRAY[]::text[]) AS tables, string_agg(
    format('ALTER TABLE %s.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;', r.relnamespace::regnamespace, r.relname),
    ' ' ORDER BY r.relname) AS mended
  FROM pg_class AS r
  WHERE r.relkind = 'r' AND r.relnamespace = {our_schema} AND r.relname = ANY(:names)
  AND NOT (r.relrowsecurity AND r.relforcerowsecurity)) AS o
WHERE u.rolname = current_user
