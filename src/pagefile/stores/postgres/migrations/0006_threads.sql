-- Pages by their thread. Most have none, and cost nothing here.
CREATE INDEX archive_by_thread ON tool_result_archive (thread_id, tenant, created_at) WHERE thread_id IS NOT NULL;
