-- PostgreSQL's own check of its indexes.

-- name: audit_amcheck
-- The schema of the extension that checks indexes, where it is installed.
SELECT n.nspname FROM pg_extension AS x JOIN pg_namespace AS n ON n.oid = x.extnamespace WHERE x.extname = 'amcheck'

-- name: audit_indexes
SELECT format('%I.%I', n.nspname, r.relname) FROM pg_class AS r
JOIN pg_namespace AS n ON n.oid = r.relnamespace
JOIN pg_am AS a ON a.oid = r.relam AND a.amname = 'btree'
WHERE r.relkind = 'i' AND n.nspname = (
  SELECT o.nspname FROM pg_class AS v JOIN pg_namespace AS o ON o.oid = v.relnamespace
  WHERE v.oid = to_regclass('alembic_version'))
ORDER BY 1

-- name: audit_index
SELECT {extension}.bt_index_check(:name::regclass, true)::text
