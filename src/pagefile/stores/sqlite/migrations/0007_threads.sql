-- Pages by the thread that document 000 gives them. Most have none, and cost nothing here.
CREATE INDEX archive_by_thread ON tool_result_archive (thread_id, tenant, created_at) WHERE thread_id IS NOT NULL;
