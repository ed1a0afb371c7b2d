"""Every kind of damage to a SQLite file is named, what is derived is mended, and the rest is left alone."""

import shutil
import sqlite3

import anyio
import pytest

from tests.acceptance.cli_calling import pagefile

from .damage import LASTING, PASSING, filled, packed_otherwise, told, verified


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A database in which all is well, made once."""
    file = tmp_path_factory.mktemp("whole") / "a.db"
    page = anyio.run(filled, f"sqlite:///{file}")
    return file, page


@pytest.fixture
def copy(whole, tmp_path):
    file = tmp_path / "a.db"
    shutil.copy(whole[0], file)
    return file


def looked(file, *arguments):
    """A command, with no embedder: the one of these tests is not the command line's."""
    settings = file.with_suffix(".toml")
    settings.write_text('[embedder]\nname = "none"\n')
    return pagefile("--db", str(file), "--config", str(settings), *arguments)


def names(file, page):
    """What the placeholders of the damages stand for here."""
    with sqlite3.connect(file) as connection:
        rows = connection.execute(
            "SELECT conversation_id, message_id FROM ai_message WHERE kind = 'checkpoint' ORDER BY seq"
        ).fetchall()
    long = [key for name, key in rows if name == "long"]
    tools = [key for name, key in rows if name == "tools"]
    return {
        "page": page,
        "json": "text",
        "other_page": f"x'{packed_otherwise()}'",
        "rubbish": "x'00'",
        "first": long[0],
        "second": long[1],
        "checkpoint": tools[0],
    }


def harm(file, statements, known):
    with sqlite3.connect(file) as connection:
        if not any("DELETE FROM conversations" in statement for statement in statements):
            connection.execute("PRAGMA foreign_keys = OFF")
        for statement in statements:
            assert connection.execute(statement.format_map(known)).rowcount > 0, statement
    connection.close()


def expected(one, known):
    filled_in = [
        tuple(part.format_map(known) if isinstance(part, str) else part for part in row) for row in one.found
    ]
    return sorted(filled_in, key=str)


def everything(file):
    """Every row of every table."""
    with sqlite3.connect(file) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables}


async def test_a_whole_database_is_whole(whole):
    """In part and in full; nothing is found, and a great deal was looked at."""
    for full in (False, True):
        report = await verified(f"sqlite:///{whole[0]}", full=full)
        assert report.whole
        assert report.findings == ()
    assert report.checked["entries"] == 18
    assert report.checked["turns"] == report.checked["terms"] == report.checked["vectors"] == 15
    assert report.checked["calls"] == report.checked["pages"] == report.checked["facts"] == 1


@pytest.mark.parametrize(
    "one",
    [one for one in LASTING if one.only != "postgres"],
    ids=[one.name for one in LASTING if one.only != "postgres"],
)
async def test_what_was_recorded_and_is_damaged_is_named_and_left_alone(one, copy, whole):
    """Exactly that is found; a repair changes nothing in the file."""
    known = names(copy, whole[1])
    harm(copy, one.statements, known)
    before = everything(copy)
    for repair in (False, True):
        report = await verified(f"sqlite:///{copy}", repair=repair)
        assert sorted(told(report), key=str) == expected(one, known)
        assert not report.whole
        assert report.mended == 0
        assert everything(copy) == before


@pytest.mark.parametrize(
    "one",
    [one for one in PASSING if one.only != "postgres"],
    ids=[one.name for one in PASSING if one.only != "postgres"],
)
async def test_what_is_derived_and_wrong_is_named_and_made_again(one, copy, whole):
    """Looking changes nothing; a repair mends all of it, and the log stays as it was, byte for byte."""
    known = names(copy, whole[1])
    harm(copy, one.statements, known)
    before = everything(copy)
    report = await verified(f"sqlite:///{copy}")
    assert sorted(told(report), key=str) == expected(one, known)
    assert not report.whole
    assert everything(copy) == before
    mended = await verified(f"sqlite:///{copy}", repair=True)
    assert mended.whole
    assert mended.mended >= len(one.found)
    again = await verified(f"sqlite:///{copy}", full=True)
    assert again.findings == ()
    for table in ("ai_message", "tool_result_archive", "blobs", "facts", "fact_revisions", "sessions"):
        if one.name != "the size of a page is another":
            assert everything(copy)[table] == before[table]


def test_a_damaged_file_is_told_by_the_database_itself(copy, whole):
    """A page of an index is overwritten on disk: what SQLite finds is reported, and the rest is still read."""
    with sqlite3.connect(copy) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'conversations_by_user'"
        ).fetchone()
    connection.close()
    with copy.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\x00" * size)
    said = looked(copy, "verify", "--full", "--json")
    assert said.code == 1
    assert "database" in {finding["kind"] for finding in said.json["findings"]}
    assert said.json["checked"]["entries"] == 18


def test_the_command_line_tells_what_and_what_to_do(copy, whole):
    """Where it is, what is wrong, what to do; 1 until it is whole again, as JSON for scripts too."""
    said = looked(copy, "verify")
    assert said.code == 0
    assert "Everything recorded is there." in said.words
    assert "18 entries" in said.words
    with sqlite3.connect(copy) as connection:
        connection.execute("DELETE FROM turn_terms WHERE conversation_id = 'plain' AND seq = 2")
    connection.close()
    said = looked(copy, "verify")
    assert said.code == 1
    assert "1 derived thing wrong: run it with --repair." in said.words
    assert "conversation plain" in said.words
    assert "turn d1" in said.words
    said = looked(copy, "verify", "--json")
    assert said.code == 1
    (finding,) = said.json["findings"]
    assert (finding["kind"], finding["tenant"], finding["user"], finding["turn"], finding["seq"]) == (
        "terms",
        "default",
        "u",
        "d1",
        2,
    )
    assert "--repair" in finding["advice"]
    said = looked(copy, "verify", "--repair")
    assert said.code == 0
    assert "1 derived thing mended. Everything recorded is there." in said.words
    with sqlite3.connect(copy) as connection:
        connection.execute("DELETE FROM ai_message WHERE message_id = 'd1'")
    connection.close()
    said = looked(copy, "verify", "--repair")
    assert said.code == 1
    assert "the entry at place 2 is missing" in said.words
    assert "Restore the database from a backup" in said.words
    assert looked(copy, "verify", "--tenant", "t2").code == 0


def changed(file, statement):
    with sqlite3.connect(file) as connection:
        assert connection.execute(statement).rowcount == 1
    connection.close()


def test_a_word_changed_by_hand_is_never_made_good(copy):
    """Neither a repair nor a rebuild takes the other word for the turn's own: its digest tells."""
    changed(copy, "UPDATE ai_message SET query = replace(query, 'talk', 'walk') WHERE message_id = 'd0'")
    for _ in range(2):
        said = looked(copy, "verify", "--repair")
        assert said.code == 1
        assert "Compare the turn with a backup: it was changed outside Pagefile" in said.words
    assert looked(copy, "rebuild", "--from-scratch").code == 0
    assert looked(copy, "verify").code == 1
    changed(copy, "UPDATE ai_message SET digest = NULL WHERE message_id = 'd0'")
    assert looked(copy, "verify").code == 0


def test_a_window_that_cannot_be_made_again_is_mentioned_to_the_end(copy):
    """A turn without a digest that is in no sample was changed: the window it was in tells, if not for sure."""
    changed(copy, "UPDATE ai_message SET query = '还在吗？', digest = NULL WHERE message_id = 'l6'")
    said = looked(copy, "verify")
    assert said.code == 0
    assert "either a text was changed or another version of Pagefile made it" in said.words
    assert "Compare with a backup" in said.words
    assert said.words.endswith(
        "Everything recorded is there; 1 window can no longer be made again, see above."
    )
    said = looked(copy, "verify", "--json")
    assert said.json["other_windows"] == 1
    assert [finding["kind"] for finding in said.json["findings"]] == ["call-changed"]
    assert looked(copy, "verify", "--full").code == 1


def test_what_was_looked_at_is_counted_in_words(copy):
    """One is one, and the order is always the same."""
    said = looked(copy, "verify")
    assert (
        "Looked at 5 conversations, 18 entries, 15 turns, 5 token counts, 15 term lists, 15 watermarks, 5 sessions, "
        "1 recorded window, 1 reference, 1 page, "
    ) in said.words
    assert " page bytes, 1 passage, 1 fact, 1 revision (values: a sample)." in said.words


def test_what_was_purged_on_purpose_is_listed_and_is_no_damage(copy, whole):
    """A tombstone says when; its references lead to it."""
    assert looked(copy, "archive", "purge", "--uuid", whole[1], "--user-id", "u", "--yes").code == 0
    said = looked(copy, "verify", "--full", "--json")
    assert said.code == 0
    assert {finding["kind"] for finding in said.json["findings"]} <= {"page-purged", "call-differs"}
    assert whole[1] in {finding["page"] for finding in said.json["findings"]}
    assert "was purged on" in looked(copy, "verify").words


def test_a_database_that_is_not_there_is_not_made(tmp_path):
    """As with every command that only looks."""
    assert pagefile("--db", str(tmp_path / "b.db"), "verify").code == 3
    assert not (tmp_path / "b.db").exists()
