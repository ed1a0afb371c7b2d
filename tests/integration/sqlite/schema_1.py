"""A database as the first version of the schema left it."""

import apsw

from pagefile.stores.encoding import packed
from pagefile.stores.sqlite.database import APPLICATION_ID, migrations

TIME = "2026-02-09 08:00:00.000000+00:00"
LONG = "头晕的三个原因。" * 500
STEPS = '[{"tool":"t","input":null,"result":"r","call_id":"1","call_tokens":2,"result_tokens":3,"page":null}]'

PAGE = """
INSERT INTO tool_result_archive (
  uuid, conversation_id, thread_id, tool_name, tool_input, query_summary, result_summary, result_length, sources,
  created_at, tenant, user_id, content_hash, blob, tokens, counter)
VALUES (
  :uuid, 'chat', 'chat', 'search', '{"q":"头晕"}', 'dizziness', 'three reasons', :length, '["a.pdf"]',
  :time, 'tenant', :user, 'hash', :blob, 9, 'test')
"""
TURN = """
INSERT INTO conversations (tenant, conversation_id, user_id, created, updated, last_create_time, last_seq, turns,
  live_turns, live_tokens)
VALUES ('tenant', 'chat', 'ada', :time, :time, :time, 1, 1, 1, 10);
INSERT INTO ai_message (message_id, conversation_id, query, answer, create_time, create_by, update_time, tenant, seq,
  kind, status, at, steps, user_tokens, assistant_tokens, tokens, counter)
VALUES ('old', 'chat', 'question', 'answer', :time, 'ada', :time, 'tenant', 1, 'turn', 'done', :time, :steps, 3, 4, 10,
  'test');
"""


def write_schema_1(path):
    """A file as the first version left it: a turn with a step, and three pages, two of them with equal text."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute(migrations()[0])
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", 1)
    for uuid, text, user in (("long", LONG, "ada"), ("same", LONG, None), ("short", "x", "ada")):
        blob = packed(text)
        values = {"hash": blob.hash, "codec": blob.codec, "data": blob.data}
        connection.execute("INSERT INTO blobs VALUES (:hash, :codec, :data) ON CONFLICT DO NOTHING", values)
        values = {"uuid": uuid, "user": user, "blob": blob.hash, "length": len(text), "time": TIME}
        connection.execute(PAGE, values)
    connection.execute(TURN, {"time": TIME, "steps": STEPS})
    connection.close()
