"""What the file promises to whoever opens it with plain SQL."""

import random
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from pagefile import Memory
from pagefile.ports import PurgeRequest
from pagefile.records import Scope
from pagefile.stores import sql as common
from pagefile.stores import sqlite as room
from pagefile.stores.sqlite.player import sql, statements
from pagefile.testing.drafts import (
    AT,
    CHAT,
    aborted,
    call,
    checkpoint,
    completed,
    done,
    fact,
    opened,
    page,
    reset,
    step,
)
from tests.integration.schemas import CHECKPOINTS, COLUMNS, DOCUMENT, SEGMENT

FOLDERS = [Path(place.__file__).parent for place in (room, common)]


async def test_the_document_s_statements_run_verbatim(store, path, clock):
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
    connection = apsw.Connection(str(path))
    found = connection.execute(CHECKPOINTS).fetchall()
    assert [(row[0], row[2]) for row in found] == [
        ("first", "历史摘要: 高血压"),
        ("checkpoint-message-id", "历史摘要: 高血压与头晕"),
    ]
    segment = connection.execute(SEGMENT).fetchall()
    assert [row[:4] for row in segment] == [
        ("m5", "conv-123", "问5", "答5"),
        ("m4", "conv-123", "问4", "答4"),
    ]
    connection.close()


async def test_the_document_s_columns_are_there(store, path):
    """The design documents name them."""
    connection = apsw.Connection(str(path))
    for table, columns in COLUMNS.items():
        there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        assert set(columns.split()) <= there
    connection.close()


async def test_archived_results_have_the_document_s_key_and_indexes(store, path):
    """A uuid comes once; a conversation and a thread are found by an index, and there may be no thread."""
    draft = page("p")
    await store.pages.put(draft)
    await store.pages.put(replace(page("q"), page=replace(page("q").page, thread="th")))
    connection = apsw.Connection(str(path))
    with pytest.raises(apsw.ConstraintError, match="uuid"):
        connection.execute(
            "INSERT INTO tool_result_archive SELECT * FROM tool_result_archive WHERE uuid = 'p'"
        )
    rows = connection.execute("SELECT uuid, thread_id FROM tool_result_archive ORDER BY uuid").fetchall()
    assert rows == [("p", None), ("q", "th")]
    for column, index in (("conversation_id", "archive_by_conversation"), ("thread_id", "archive_by_thread")):
        plan = connection.execute(
            f"EXPLAIN QUERY PLAN SELECT * FROM tool_result_archive WHERE {column} = 'th'"
        ).fetchall()
        assert f"USING INDEX {index} ({column}=?)" in plan[0][3]
    connection.close()


@pytest.mark.parametrize("name", ["entries_ended", "entries_ended_back", "entries_open", "entries_open_back"])
async def test_entries_come_out_of_their_index_in_order(store, path, name):
    """Nothing is sorted or copied first: a page of a long log takes no longer than one of a short log."""
    connection = apsw.Connection(str(path))
    plan = connection.execute(f"EXPLAIN QUERY PLAN {sql(name)}", defaultdict(str)).fetchall()
    connection.close()
    told = "\n".join(row[3] for row in plan)
    assert "SEARCH m USING INDEX" in told
    assert not re.search("TEMP B-TREE FOR ORDER BY|MATERIALIZE|COMPOUND", told)


async def test_a_summary_counts_the_messages_it_covers(store, path):
    """Conversation history counts messages, not turns; a side that is missing is none."""
    await store.log.append(done("a"))
    await store.log.append(done("b", None))
    await store.log.append(done("c"))
    await store.log.mark(checkpoint("k", 2))
    connection = apsw.Connection(str(path))
    row = connection.execute("SELECT summary, covered_message_count FROM conversation_summaries").get
    connection.close()
    assert row == ("what was said", 3)


async def test_erased_text_is_gone_from_the_files(store, path):
    """Not a word of it is left in the database or its write-ahead log, though much was rewritten and much stays."""
    secret, stays = "SECRETsecretSECRET", "staysSTAYSstays"
    dice = random.Random(7)
    for number in range(150):
        for word, scope in ((secret, CHAT), (stays, Scope("tenant", "bob", "his"))):
            text = f"{word}-{number} " * dice.choice((1, 20, 400))
            await store.log.append(done(f"t{number}", text, text, scope=scope, steps=[step(result=text)]))
        if number % 30 == 10:
            await store.log.mark(
                checkpoint(f"k{number}", number, 0 if number == 10 else number // 30, summary=secret)
            )
    await store.log.append(opened("open", secret))
    await store.log.append(opened("stopped", secret))
    await store.log.advance(aborted("stopped"))
    await store.facts.put(fact("f", secret))
    await store.facts.put(fact("f", secret * 2))
    # A text too short to be compressed is in the file as it is.
    await store.pages.put(page("p", secret))
    await store.calls.add([call(f"{secret}{number}") for number in range(40)], keep=5)
    files = [path, path.with_name(path.name + "-wal")]
    assert any(secret.encode() in file.read_bytes() for file in files)
    await store.erase(Scope("tenant", "ada"))
    for file in files:
        content = file.read_bytes()
        assert secret.encode() not in content
        assert file is not path or stays.encode() in content
    assert files[1].stat().st_size == 0


async def test_purged_text_is_gone_from_the_files(store, path):
    """Text and terms; the summary stays."""
    secret = "SECRETsecretSECRET"
    await store.pages.put(page("p", secret, spans=((0, 6),)))
    await store.page_index.write(CHAT, "p", [secret])
    assert any(secret.encode() in file.read_bytes() for file in path.parent.iterdir())
    await store.page_keeper.purge(PurgeRequest(CHAT, AT, frozenset({"p"})))
    for file in (path, path.with_name(path.name + "-wal")):
        assert secret.encode() not in file.read_bytes()
    assert b"three reasons" in path.read_bytes()


async def test_passages_are_beside_their_page(store, path):
    """In a table of their own, and nothing is left of them when the page goes."""
    await store.pages.put(page("p", spans=((0, 4), (4, 16))))
    await store.pages.put(page("q", spans=((0, 3),)))
    await store.page_index.write(CHAT, "p", ["a", "b c"])
    await store.page_keeper.purge(PurgeRequest(CHAT, AT, frozenset({"q"})))
    connection = apsw.Connection(str(path))
    rows = connection.execute("SELECT * FROM archive_passage").fetchall()
    broken = connection.execute("PRAGMA foreign_key_check").fetchall()
    connection.close()
    assert rows == [("tenant", "p", 0, 0, 4, "a"), ("tenant", "p", 1, 4, 16, "b c")]
    assert broken == []


async def test_counters_match_a_recount(store, path):
    """The head's counters are what counting the rows gives."""
    for number in range(9):
        await store.log.append(done(f"t{number}", tokens=number))
    await store.log.mark(reset("r"))
    for number in range(9, 20):
        await store.log.append(done(f"t{number}", tokens=number))
    await store.log.mark(checkpoint("k", 14))
    await store.log.append(done("last", tokens=100))
    connection = apsw.Connection(str(path))
    kept = connection.execute("SELECT turns, live_turns, live_tokens, last_seq FROM conversations").get
    counted = connection.execute(
        "SELECT count(*) FILTER (WHERE seq > 10), count(*) FILTER (WHERE seq > 14),"
        " sum(tokens) FILTER (WHERE seq > 14) FROM ai_message WHERE kind = 'turn' AND status = 'done'"
    ).get
    connection.close()
    assert kept == (*counted, 23)


def test_every_statement_is_used_and_every_used_one_is_there():
    """A name in the code that no file has would fail only when it is called."""
    code = "\n".join(file.read_text() for folder in FOLDERS for file in folder.glob("*.py"))
    words = set(re.findall(r'"([a-z_]+)"', code))
    built = {
        name
        for name in statements()
        if re.match(
            r"(erase|gone|conversations_of|heads_of|pages_of|pinned_of|uuids_of|embeddings_of|due_of|calls_of|call_sizes_of|episodes_of|episodes_number_of|calls_trim|orphans|orphan_drop)_|(turn|page|fact)(s_without)?_digest",
            name,
        )
    }
    assert statements().keys() - built <= words
    assert set(re.findall(r'sql\("([a-z_]+)"\)', code)) <= statements().keys()
    assert not [name for name, text in statements().items() if "{" in text]


async def test_markers_are_written_by_the_system(tmp_path):
    """A turn's row names its user, the rows of checkpoints and resets the system."""
    async with Memory.open(f"sqlite:///{tmp_path}/a.db") as memory:
        chat = memory.conversation("c", user_id="u")
        for n in range(3):
            await chat.record(user=str(n))
        await chat.checkpoint("摘要", recent_turns=1)
        await chat.reset()
    rows = (
        apsw.Connection(str(tmp_path / "a.db"))
        .execute("SELECT kind, create_by FROM ai_message ORDER BY seq")
        .fetchall()
    )
    assert rows == [("turn", "u")] * 3 + [("checkpoint", "system"), ("reset", "system")]
