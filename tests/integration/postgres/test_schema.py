"""What the tables promise to whoever opens them with plain SQL, and to their own statements."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio
import asyncpg
import pytest

from pagefile.ports import AddStep
from pagefile.stores import postgres as room
from pagefile.stores import sql as common
from pagefile.stores.postgres.driver import statements
from pagefile.stores.sql.plays import count
from pagefile.stores.sql.rows import keys
from pagefile.testing.drafts import (
    CHAT,
    checkpoint,
    completed,
    done,
    opened,
    page,
    reset,
    step,
    view,
)
from tests.integration.schemas import CHECKPOINTS, COLUMNS, DOCUMENT, SEGMENT

from .rows_read import check_rows_read

FOLDERS = [Path(place.__file__).parent for place in (room, common)]


async def test_a_recount_moves_the_time_on_from_where_it_is(store, plain):
    """Not from where it was read: sessions are known by it, and it never goes back."""
    await store.log.append(done("a"))
    before = await plain.fetchval("SELECT updated FROM conversations")
    counted = {
        "covered_through_seq": 0,
        "turns": 1,
        "live_turns": 1,
        "live_tokens": 10,
        "checkpoint": None,
        "version": 0,
    }
    read_earlier = {**keys(CHAT), **counted, "updated": before - timedelta(days=1)}
    await store._player.write(lambda: count("part_recount", read_earlier))
    assert await plain.fetchval("SELECT updated FROM conversations") == before + timedelta(microseconds=1)


async def test_the_document_s_statements_run_verbatim(store, plain, clock):
    """Checkpoints in order, and the messages of the current segment in order, whatever the clock does."""
    for number in range(4):
        await store.log.append(done(f"m{number}", f"问{number}", f"答{number}", scope=DOCUMENT))
        clock.advance(-10)
    await store.log.mark(checkpoint("first", 2, scope=DOCUMENT, summary="高血压"))
    await store.log.mark(checkpoint("checkpoint-message-id", 3, 1, scope=DOCUMENT, summary="高血压与头晕"))
    await store.log.append(opened("m4", "问4", scope=DOCUMENT))
    await store.log.append(done("m5", "问5", "答5", scope=DOCUMENT))
    await store.log.advance(completed("m4", "答4", scope=DOCUMENT))
    await store.log.append(done("elsewhere"))
    found = await plain.fetch(CHECKPOINTS)
    assert [(row[0], row[2]) for row in found] == [
        ("first", "历史摘要: 高血压"),
        ("checkpoint-message-id", "历史摘要: 高血压与头晕"),
    ]
    segment = await plain.fetch(SEGMENT)
    assert [tuple(row)[:4] for row in segment] == [
        ("m5", "conv-123", "问5", "答5"),
        ("m4", "conv-123", "问4", "答4"),
    ]


async def test_the_document_s_columns_key_and_indexes_are_there(store, plain):
    """The design documents name them; a uuid comes once, and the columns to look by are indexed."""
    for table, columns in COLUMNS.items():
        found = await plain.fetch(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND table_name = $1",
            table,
        )
        assert set(columns.split()) <= {row[0] for row in found}
    await store.pages.put(page("p"))
    await store.pages.put(replace(page("q"), page=replace(page("q").page, thread="th")))
    with pytest.raises(asyncpg.UniqueViolationError):
        await plain.execute(
            "INSERT INTO tool_result_archive SELECT * FROM tool_result_archive WHERE uuid = 'p'"
        )
    rows = await plain.fetch("SELECT uuid, thread_id FROM tool_result_archive ORDER BY uuid")
    assert [tuple(row) for row in rows] == [("p", None), ("q", "th")]
    await plain.execute("SET enable_seqscan = off")
    for column, index in (("conversation_id", "archive_by_conversation"), ("thread_id", "archive_by_thread")):
        plan = await plain.fetch(f"EXPLAIN SELECT * FROM tool_result_archive WHERE {column} = 'th'")
        assert index in "\n".join(row[0] for row in plan)


async def test_markers_are_written_by_the_system(store, plain):
    """A turn's row names its user, the rows of checkpoints and resets the system."""
    await store.log.append(done("a"))
    await store.log.append(done("b"))
    await store.log.mark(checkpoint("k", 1))
    await store.log.mark(reset("r"))
    rows = await plain.fetch("SELECT kind, create_by, query, answer FROM ai_message ORDER BY seq")
    assert [(row[0], row[1]) for row in rows] == [("turn", "ada")] * 2 + [
        ("checkpoint", "system"),
        ("reset", "system"),
    ]
    assert tuple(rows[2])[2:] == ("[MEMORY_CHECKPOINT]", "历史摘要: what was said")


async def test_counters_match_a_recount(store, plain):
    """The head's counters are what counting the rows gives, and so is what each turn knows of those before it."""
    for number in range(9):
        await store.log.append(done(f"t{number}", tokens=number))
    await store.log.mark(reset("r"))
    await store.log.append(opened("late", tokens=2))
    for number in range(9, 20):
        await store.log.append(done(f"t{number}", tokens=number))
    await store.log.mark(checkpoint("k", 14))
    await store.log.advance(completed("late"))
    kept = await plain.fetchrow(
        "SELECT turns, live_turns, live_tokens, done_tokens, last_seq FROM conversations"
    )
    counted = await plain.fetchrow(
        "SELECT count(*) FILTER (WHERE seq > 10), count(*) FILTER (WHERE seq > 14),"
        " sum(tokens) FILTER (WHERE seq > 14), sum(tokens) FROM ai_message WHERE kind = 'turn' AND status = 'done'"
    )
    assert tuple(kept) == (*counted, 23)
    wrong = await plain.fetch(
        "SELECT * FROM (SELECT tokens_before, sum(tokens) OVER (ORDER BY seq) - tokens AS sum FROM ai_message"
        " WHERE kind = 'turn' AND status = 'done') AS m WHERE tokens_before <> sum OR tokens_before IS NULL"
    )
    assert wrong == []


async def test_statements_read_what_they_return(store, plain):
    """A window its turns and a few rows of heads, a lookup one row, in a log of a thousand turns, analyzed or not."""
    await check_rows_read(store, plain)


async def test_json_comes_back_as_it_was_given(store):
    """Order, large and tiny numbers, escapes: nothing is made prettier."""
    odd = {"z": 1, "a": [1e308, -0.0, 5e-324, 10**30, "\u0000", "\u2028"], "": {"b": 1, "a": 2}}
    await store.log.append(done("a", metadata=odd, steps=[step(given=odd)]))
    await store.sessions.put(CHAT, odd)
    turn = (await store.reader.view(view())).turns[0]
    for found in (turn.metadata, turn.steps[0].input, await store.sessions.get(CHAT)):
        assert json.dumps(odd) == json.dumps(found)


async def test_steps_added_at_once_are_all_there(store):
    """Whoever meets another writer at the same turn tries again behind it."""
    await store.log.append(opened("a"))
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(store.log.advance, AddStep(CHAT, "a", step(f"call-{number}"), 1))
    turn = await store.log.advance(completed("a"))
    assert {found.call_id for found in turn.steps} == {f"call-{number}" for number in range(20)}
    assert len(turn.steps) == 20


def test_every_statement_is_used_and_every_used_one_is_there():
    """A name in the code that no file has would fail only when it is called."""
    code = "\n".join(file.read_text() for folder in FOLDERS for file in folder.glob("*.py"))
    words = set(re.findall(r'"([a-z_]+)"', code))
    built = {
        name
        for name in statements()
        if re.match(
            r"(erase|gone|conversations_of|heads_of|pages_of|pinned_of|uuids_of|embeddings_of|due_of|calls_of|call_sizes_of|episodes_of|episodes_number_of|calls_trim|episodes_near|orphans|orphan_drop)_|(turn|page|fact)(s_without)?_digest",
            name,
        )
    }
    assert statements().keys() - built <= words
    # Where pgvector lives is known when a store is open.
    assert not [
        name for name, statement in statements().items() if "{" in statement.text.replace("{extension}", "")
    ]
