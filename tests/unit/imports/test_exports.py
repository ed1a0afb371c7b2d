"""Exports in the shapes that they have: with every field, branches, attachments, voice, and what a program wrote itself."""

import json
import shutil
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from pagefile import Memory
from pagefile.errors import TransferError
from pagefile.integrations.imports import read_dump, take_over
from tests.acceptance.cli_calling import pagefile

EXPORTS = Path(__file__).parents[2] / "fixtures" / "exports"


def brought(name, kind):
    return anyio.run(read_dump, EXPORTS / name, kind)


def said(found):
    return [(turn.user, turn.assistant) for turn in found.turns]


def test_chatgpt():
    """The branch that is shown, without what marks a citation; a picture or a voice is a message of its own."""
    found = brought("chatgpt.json", "chatgpt")
    assert [
        ("Which bread keeps longest without plastic?", "Rye, about ten days in a crock."),
        ("[image]", "That is a wheat loaf, not rye."),
        ("Which trains go to Graz in the morning?", "At 8:02 and at 9:15."),
        ("Plot how often each is late.", "I have no data on delays."),
    ] == said(found)
    search, plot = found.turns[0].steps[0], found.turns[3].steps[0]
    assert ("web.run", "Rye bread stays fresh for 9 to 10 days in a crock.") == (
        search["tool"],
        search["result"],
    )
    assert ("python", {"input": "plot(late)"}) == (plot["tool"], plot["input"])
    assert {
        "notes of the program": 1,
        "thoughts": 2,
        "messages of other branches": 1,
        "images and files": 3,
    } == found.left_out


def test_chatgpts_messages_without_a_time_are_of_the_time_of_their_conversation():
    """Most messages of an export have none: they would all be of today."""
    turns = brought("chatgpt.json", "chatgpt").turns
    at = datetime.fromtimestamp(1760000000.25, UTC)
    assert [at, at] == [turns[2].at, turns[3].at]


def test_claude():
    """The newest branch; an attached file is a result beside the prompt, which may become a page."""
    found = brought("claude.json", "claude")
    assert [
        ("What is the deposit?\n[file: lease.txt]", "It is 2,350 euro."),
        ("When does the ferry to Naxos leave?", "At 9:40."),
        ("[file: timetable.png]", "Yes, that is the timetable of 2026."),
    ] == said(found)
    lease, search = found.turns[0].steps[0], found.turns[1].steps[0]
    assert ("attachment", {"file_name": "lease.txt"}) == (lease["tool"], lease["input"])
    assert lease["result"].endswith("The deposit is 2,350 euro.")
    assert ("web_search", {"query": "ferry Naxos"}) == (search["tool"], search["input"])
    assert "9:40 daily" in search["result"]
    assert {"thoughts": 1, "messages of other branches": 1, "images and files": 1} == found.left_out


def test_the_branch_of_claude_that_was_open_last_is_taken_if_it_is_named(tmp_path):
    [chat] = json.loads((EXPORTS / "claude.json").read_text("utf-8"))
    chat["current_leaf_message_uuid"] = chat["chat_messages"][3]["uuid"]
    file = tmp_path / "conversation.json"
    file.write_text(json.dumps(chat), encoding="utf-8")
    found = anyio.run(read_dump, file, "claude")
    assert ("When does the ferry to Naxos leave?", "At 7:30, I think.") == said(found)[-1]


def test_gemini():
    """What was asked of Gemini, in the order in which it was; the word before it is the program's."""
    found = brought("gemini.json", "gemini")
    assert [
        ("Which fjord is deepest?", "Sognefjord, 1,308\xa0m."),
        ("And the second one?", None),
        ("What should I pack for Tromsø?", "Wool, two layers.\nCrampons\nLamp"),
    ] == said(found)
    assert {
        "activities that are not questions": 2,
        "activities of other products": 1,
        "images and files": 1,
    } == found.left_out


def test_a_title_in_another_language_is_kept_whole_where_it_was_answered(tmp_path):
    file = tmp_path / "MyActivity.json"
    one = {"header": "Gemini Apps", "title": "输入了：挪威最深的峡湾是哪个？", "time": "2026-03-01T08:00:00Z"}
    answered = {**one, "safeHtmlItem": [{"html": "<p>松恩峡湾</p>"}]}
    file.write_text(json.dumps([answered, {**one, "title": "使用了一个应用"}]), encoding="utf-8")
    found = anyio.run(read_dump, file, "gemini")
    assert [("输入了：挪威最深的峡湾是哪个？", "松恩峡湾")] == said(found)
    assert {"activities that are not questions": 1} == found.left_out


def test_a_conversation_of_gemini():
    """Takeout's "Conversation History" names its conversations; what was deleted stays deleted."""
    found = brought("gemini-conversation.json", "gemini")
    assert [
        ("When is the tax return due?", "On 31 July."),
        ("And with an adviser?", "At the end of February of the year after next."),
    ] == said(found)
    assert {"thoughts": 1, "deleted messages": 1, "images and files": 1} == found.left_out
    assert 1 == len({turn.conversation_id for turn in found.turns})


def test_letta():
    """What the user said is unpacked; heartbeats, logins and summaries are the program's, and "?" is no fact."""
    found = brought("letta.af", "letta")
    assert [
        ("I planted a fig tree on the balcony.", "A fig! Noted."),
        ("And when do I water it?", "Every other morning."),
    ] == said(found)
    assert "No results found." == found.turns[0].steps[0]["result"]
    assert ["First name: Mira", "Occupation: gardener in Graz"] == [fact.text for fact in found.facts]
    assert {
        "notes of the program": 3,
        "summaries of the agent's own": 1,
        "blocks that are not about the user": 1,
        "lines that say nothing": 3,
    } == found.left_out


def test_two_agents_of_letta_are_two_conversations(tmp_path):
    """In agent files the first agent is always agent-0, and its messages count from 0."""
    db, counts = str(tmp_path / "memory.db"), []
    for name in ("letta.af", "letta-other.af"):
        done = pagefile("import", str(EXPORTS / name), "--from", "letta", "--json", "--db", db)
        counts.append((done.json["turn"], done.json["rejected"]))
    assert [(2, 0), (2, 0)] == counts


def test_letta_numbers_an_agents_messages_anew_in_each_file(tmp_path):
    """A later file has the newest messages only, and what was imported before is not imported again."""
    file = tmp_path / "later.af"
    agent = json.loads((EXPORTS / "letta.af").read_text("utf-8"))
    newest = agent["agents"][0]["messages"][8:]
    agent["agents"][0]["messages"] = [{**one, "id": f"message-{n}"} for n, one in enumerate(newest)]
    file.write_text(json.dumps(agent), encoding="utf-8")
    asked = ("--from", "letta", "--json", "--db", str(tmp_path / "memory.db"))
    assert 2 == pagefile("import", str(EXPORTS / "letta.af"), *asked).json["turn"]
    again = pagefile("import", str(file), *asked).json
    assert (0, 0, 3) == (again["turn"], again["rejected"], again["known"])


def test_zep_and_graphiti():
    """Lists as the API returns them, and the object of Graphiti's search."""
    edges = brought("zep-edges.json", "zep")
    assert ["Mira grows figs on her balcony in Graz."] == [fact.text for fact in edges.facts]
    assert {"facts that are no longer valid": 1} == edges.left_out
    assert ["Mira is allergic to walnuts."] == [fact.text for fact in brought("graphiti.json", "zep").facts]
    thread = brought("zep-thread.json", "zep")
    assert [("My figs are ripe.", "Make jam.")] == said(thread)
    assert ("mira", "zep:2026-05-02T08:00:00Z") == (thread.turns[0].user_id, thread.turns[0].conversation_id)


def test_a_list_of_zeps_messages(tmp_path):
    file = tmp_path / "messages.json"
    file.write_text(json.dumps(json.loads((EXPORTS / "zep-thread.json").read_text("utf-8"))["messages"]))
    assert [("My figs are ripe.", "Make jam.")] == said(anyio.run(read_dump, file, "zep"))


FILES = {
    "chatgpt.json": "chatgpt",
    "claude.json": "claude",
    "gemini.json": "gemini",
    "gemini-conversation.json": "gemini",
    "letta.af": "letta",
    "zep-edges.json": "zep",
    "zep-thread.json": "zep",
    "graphiti.json": "zep",
}


@pytest.mark.parametrize("name", FILES)
def test_importing_twice_changes_nothing(name, tmp_path):
    db = str(tmp_path / "memory.db")
    asked = (
        "import",
        str(EXPORTS / name),
        "--from",
        FILES[name],
        "--conversation",
        "c",
        "--db",
        db,
        "--json",
    )
    first, again = pagefile(*asked), pagefile(*asked)
    assert 0 == first.code, first.err
    assert 0 < first.json["turn"] + first.json["fact"] == again.json["known"]
    assert (0, 0, 0) == (again.json["turn"], again.json["fact"], again.json["rejected"])


async def test_progress_is_told_up_to_the_last_turn():
    """What the bar of `pagefile import` shows."""
    told = []
    async with Memory.open("memory://", embedder="none") as memory:
        found = await read_dump(EXPORTS / "chatgpt.json", "chatgpt")
        await take_over(memory, found, user_id="ada", progress=lambda *one: told.append(one))
    assert [(done, 4) for done in (1, 2, 3, 4)] == list(dict.fromkeys(told))


#: Where the files are in an archive as it comes, beside what is not a conversation.
PLACES = {
    ("chatgpt.json", "chatgpt"): ("conversations-000.json", "shared_conversations.json"),
    ("claude.json", "claude"): ("data-2026-07-04/conversations.json", "data-2026-07-04/projects.json"),
    ("gemini.json", "gemini"): ("Takeout/My Activity/Gemini Apps/My Activity.json", "Takeout/My Activity/Search/MyActivity.html"),
    ("gemini-conversation.json", "gemini"): ("Takeout/Gemini in Workspace/Conversation History/conversation_1.txt", "Takeout/archive_browser.html"),
    ("letta.af", "letta"): ("plant-sitter.af", "README.md"),
    ("graphiti.json", "zep"): ("graph/facts.json", "README.md"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), PLACES)
def test_an_archive_is_read_as_it_comes(name, kind, tmp_path):
    file = tmp_path / "export.zip"
    place, other = PLACES[name, kind]
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(place, (EXPORTS / name).read_text("utf-8"))
        archive.writestr(other, "[]")
    assert brought(name, kind) == anyio.run(read_dump, file, kind)


def test_claudes_newer_archive_has_a_file_for_each_conversation(tmp_path):
    """Its conversations.json is a table of contents without messages."""
    file = tmp_path / "export.zip"
    [chat] = json.loads((EXPORTS / "claude.json").read_text("utf-8"))
    with zipfile.ZipFile(file, "w") as archive:
        listed = {name: value for name, value in chat.items() if name != "chat_messages"}
        archive.writestr("conversations.json", json.dumps([listed]))
        archive.writestr(f"conversations/{chat['uuid']}.json", json.dumps(chat))
    assert 3 == len(anyio.run(read_dump, file, "claude").turns)


def test_an_archive_with_gemini_as_html_says_what_to_ask_for(tmp_path):
    """HTML is what Takeout gives unless it is told otherwise."""
    file = tmp_path / "takeout.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("Takeout/My Activity/Gemini Apps/MyActivity.html", "<html></html>")
    with pytest.raises(TransferError, match="as JSON"):
        anyio.run(read_dump, file, "gemini")


def test_a_folder_of_agent_files_is_one_import(tmp_path):
    for name in ("letta.af", "letta-other.af"):
        shutil.copy(EXPORTS / name, tmp_path / name)
    db = str(tmp_path / "memory.db")
    done = pagefile("import", str(tmp_path), "--from", "letta", "--json", "--db", db)
    assert 4 == done.json["turn"], done.err
