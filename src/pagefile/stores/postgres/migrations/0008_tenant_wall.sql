-- A second wall between tenants (decision 0034): a row is visible only to a transaction that named its tenant, even for
-- the owner of the tables. Only superusers and roles with BYPASSRLS see past it.

-- The types of the parameters that name a tenant. A value is checked when it is bound, before the statement runs: that is
-- when the transaction is told its tenant, in the same round trip.
CREATE DOMAIN pagefile_tenant AS text NOT NULL
CHECK (set_config('pagefile.tenant', VALUE, true) = VALUE AND set_config('pagefile.tenants', '', true) = '');

-- One tenant, or all of them where it is NULL.
CREATE DOMAIN pagefile_tenants AS text
CHECK (
  set_config('pagefile.tenant', coalesce(VALUE, ''), true) IS NOT NULL
  AND set_config('pagefile.tenants', CASE WHEN VALUE IS NULL THEN 'all' ELSE '' END, true) IS NOT NULL);

-- Conversations first, in the order in which writers lock them.
DO $$
DECLARE
  walled text;
BEGIN
  FOREACH walled IN ARRAY ARRAY[
    'conversations', 'ai_message', 'conversation_summaries', 'sessions', 'watermarks', 'turn_terms', 'attachments',
    'tool_result_archive', 'archive_passage', 'facts', 'fact_revisions', 'context_calls', 'items', 'api_keys',
    'conversation_episodes']
  LOOP
    -- Tables of vectors exist only where vectors were ever used.
    CONTINUE WHEN to_regclass(walled) IS NULL;
    EXECUTE 'ALTER TABLE ' || walled || ' ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY';
    EXECUTE 'CREATE POLICY one_tenant ON ' || walled || ' USING (
      tenant = current_setting(''pagefile.tenant'', true) OR current_setting(''pagefile.tenants'', true) = ''all'')';
  END LOOP;
END $$;

-- The number of the last erasure that a place outside the database (a Milvus) has carried out: later ones are still pending there.
CREATE TABLE erasure_marks (
  place text COLLATE "C" NOT NULL PRIMARY KEY,
  epoch bigint NOT NULL
);
