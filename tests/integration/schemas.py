"""The tables of the design documents."""

from pagefile.records import Scope

# The SQL of short-term memory's design, word for word.
CHECKPOINTS = """
SELECT message_id, conversation_id, answer, create_time 
FROM ai_message 
WHERE conversation_id = 'conv-123' 
  AND query = '[MEMORY_CHECKPOINT]'
ORDER BY create_time ASC;
"""  # noqa: W291 - verbatim
SEGMENT = """
SELECT message_id, conversation_id, query, answer, create_time 
FROM ai_message 
WHERE conversation_id = 'conv-123' 
  AND create_time > (
    SELECT create_time FROM ai_message 
    WHERE message_id = 'checkpoint-message-id'
  )
ORDER BY create_time ASC;
"""  # noqa: W291 - verbatim
DOCUMENT = Scope("default", "user-456", "conv-123")
#: The columns that the design documents name.
COLUMNS = {
    "ai_message": "message_id conversation_id query answer create_time create_by update_time update_by",
    "conversation_summaries": "id conversation_id summary covered_message_count created_at",
    "tool_result_archive": "uuid conversation_id thread_id tool_name tool_input query_summary result_summary "
    "result_full result_length sources created_at",
}
