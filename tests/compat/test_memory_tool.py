"""Anthropic's memory tool over Pagefile: beside the vendor's own tool on files, command by command, and with its tool runner."""

import json
import re

import anthropic
import anyio
import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile import BlockingMemory, Memory
from pagefile.compat.anthropic_memory import AsyncMemoryTool, MemoryTool
from tests.stub_server import QuietHandler, StubServer

FACTS = "/memories/facts.md"


@pytest.fixture
def memory(tmp_path):
    with BlockingMemory.open(f"sqlite:///{tmp_path}/m.db", embedder="none") as opened:
        yield opened


@pytest.fixture
def tool(memory):
    return MemoryTool(memory, user_id="ada")


def said(tool, **command):
    """What the model is told, errors included."""
    try:
        return tool.call(command)
    except ToolError as error:
        return f"error: {error}"


# -- beside the vendor's own ---------------------------------------------------------------------------------------------

_NAMES = st.sampled_from(["a.md", "b.md", "d/a.md", "d/e/f.txt", "d", "中文.md"])
_PATHS = _NAMES.map(lambda name: f"/memories/{name}") | st.sampled_from(
    ["/memories", "/etc/passwd", "/memories/../x", "/memories/d/../a.md", "/memories//b.md", "/memoriesx"]
)
_TEXTS = st.sampled_from(["", "one", "one\ntwo\none\n", "two\n", "三\n行\n", "x" * 3000])
_COMMANDS = st.one_of(
    st.fixed_dictionaries({"command": st.just("view"), "path": _PATHS}),
    st.fixed_dictionaries(
        {
            "command": st.just("view"),
            "path": _PATHS,
            "view_range": st.tuples(st.integers(0, 4), st.integers(-1, 5)).map(list),
        }
    ),
    st.fixed_dictionaries({"command": st.just("create"), "path": _PATHS, "file_text": _TEXTS}),
    st.fixed_dictionaries(
        {
            "command": st.just("str_replace"),
            "path": _PATHS,
            "old_str": st.sampled_from(["one", "two", "absent", "行"]),
            "new_str": _TEXTS,
        }
    ),
    st.fixed_dictionaries(
        {
            "command": st.just("insert"),
            "path": _PATHS,
            "insert_line": st.integers(-1, 4),
            "insert_text": _TEXTS,
        }
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": _PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": _PATHS, "new_path": _PATHS}),
)


def comparable(text):
    """Without the sizes of directories, empty directories and the list of facts, which files on disk do not have."""
    text = re.sub(rf"\n[^\n]*\t{FACTS}", "", text)
    text = re.sub(r"[^\n]*\t(/\S*/|/memories)(?=\n|$)", r"\1", text)
    return "" if text.startswith("Here're") else text


@given(st.lists(_COMMANDS, max_size=12))
@settings(max_examples=60, deadline=None)
def test_the_answers_are_those_of_the_vendors_own_tool(tmp_path_factory, commands):
    """Whatever the model sends, it reads the same words; where files on disk raise an error of their own, ours explains."""
    theirs = BetaLocalFilesystemMemoryTool(str(tmp_path_factory.mktemp("files")))
    with BlockingMemory.open("memory://", embedder="none") as memory:
        ours = MemoryTool(memory, user_id="ada")
        for command in commands:
            answer = said(ours, **command)
            try:
                expected = said(theirs, **command)
            except OSError:
                assert answer.startswith("error: ")
                return
            if answer.startswith("error: ") and expected.startswith("error: "):
                continue
            # A directory whose last file is gone is gone with it.
            if "directory" in answer or answer.startswith("error: ") != expected.startswith("error: "):
                assert command["command"] in {"create", "delete", "rename", "view"}
                return
            assert comparable(answer) == comparable(expected), command


def test_errors_are_worded_as_the_vendors(tmp_path, tool):
    """Models know these sentences."""
    theirs = BetaLocalFilesystemMemoryTool(str(tmp_path / "files"))
    for one in (tool, theirs):
        said(one, command="create", path="/memories/a.md", file_text="x\nx\n")
    for command in (
        {"command": "view", "path": "/memories/none"},
        {"command": "create", "path": "/memories/a.md", "file_text": ""},
        {"command": "str_replace", "path": "/memories/a.md", "old_str": "y", "new_str": ""},
        {"command": "str_replace", "path": "/memories/a.md", "old_str": "x", "new_str": ""},
        {"command": "str_replace", "path": "/memories/none", "old_str": "x", "new_str": ""},
        {"command": "insert", "path": "/memories/a.md", "insert_line": 9, "insert_text": ""},
        {"command": "delete", "path": "/memories"},
        {"command": "delete", "path": "/memories/none"},
        {"command": "rename", "old_path": "/memories/none", "new_path": "/memories/b"},
        {"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/a.md"},
        {"command": "view", "path": "/etc/passwd"},
        {"command": "view", "path": "/memories/../../etc/passwd"},
    ):
        assert said(tool, **command) == said(theirs, **command)


# -- facts ---------------------------------------------------------------------------------------------------------------


def test_facts_and_notes_are_both_there(memory, tool):
    memory.remember("Ada is allergic to penicillin", user_id="ada")
    memory.remember("Bob keeps bees", user_id="bob")
    said(tool, command="create", path="/memories/notes/todo.md", file_text="call the vet\n")
    listing = said(tool, command="view", path="/memories")
    assert [line.split("\t")[1] for line in listing.splitlines()[1:]] == [
        "/memories", "/memories/facts.md", "/memories/notes/", "/memories/notes/todo.md",
    ]  # fmt: skip
    assert "1\t- Ada is allergic to penicillin" in said(tool, command="view", path=FACTS)
    assert "bees" not in said(tool, command="view", path=FACTS)


def test_editing_the_list_of_facts_changes_the_facts(memory, tool):
    for text in ("Ada lives in Bern", "Ada has two cats", "Ada likes tea"):
        memory.remember(text, user_id="ada")
    said(tool, command="str_replace", path=FACTS, old_str="two cats", new_str="three cats")
    said(tool, command="str_replace", path=FACTS, old_str="- Ada likes tea\n", new_str="")
    said(tool, command="insert", path=FACTS, insert_line=2, insert_text="- Ada plays the cello")
    held = [fact.text for fact in memory.facts("ada")]
    assert sorted(held) == ["Ada has three cats", "Ada lives in Bern", "Ada plays the cello"]
    actions = [revision.action for revision in memory.fact_revisions("ada")]
    assert actions[-3:] == ["corrected", "retracted", "stored"]
    memory.undo("ada")
    assert "cello" not in said(tool, command="view", path=FACTS)


def test_the_list_itself_stays(memory, tool):
    memory.remember("Ada lives in Bern", user_id="ada")
    for command in (
        {"command": "delete", "path": FACTS},
        {"command": "rename", "old_path": FACTS, "new_path": "/memories/x"},
        {"command": "create", "path": FACTS, "file_text": ""},
        {"command": "create", "path": f"{FACTS}/x", "file_text": ""},
    ):
        assert said(tool, **command).startswith("error: ")
    assert [fact.text for fact in memory.facts("ada")] == ["Ada lives in Bern"]


def test_a_secret_is_refused_with_a_reason(tool):
    answer = said(
        tool, command="insert", path=FACTS, insert_line=0, insert_text="My password is hunter2-xyz!"
    )
    assert answer.startswith("error: This was not kept")


# -- whose, and for how long ---------------------------------------------------------------------------------------------


def test_users_never_mix_and_an_erasure_takes_everything(memory, tool):
    said(tool, command="create", path="/memories/a.md", file_text="hers")
    other = MemoryTool(memory, user_id="bob")
    assert said(other, command="view", path="/memories/a.md").startswith("error: ")
    said(other, command="create", path="/memories/a.md", file_text="his")
    memory.forget(user_id="ada")
    assert said(tool, command="view", path="/memories/a.md").startswith("error: ")
    assert "his" in said(other, command="view", path="/memories/a.md")


def test_notes_survive_an_export(memory, tool, tmp_path):
    said(tool, command="create", path="/memories/a.md", file_text="hers")
    memory.export(tmp_path / "all.jsonl")
    with BlockingMemory.open(f"sqlite:///{tmp_path}/new.db", embedder="none") as new:
        new.import_(tmp_path / "all.jsonl")
        assert "hers" in said(MemoryTool(new, user_id="ada"), command="view", path="/memories/a.md")


async def test_of_many_edits_at_once_none_is_lost():
    async with Memory.open("memory://", embedder="none") as memory:
        tool = AsyncMemoryTool(memory, user_id="ada")
        await tool.call({"command": "create", "path": "/memories/a.md", "file_text": ""})

        async def add(number):
            command = {
                "command": "insert",
                "path": "/memories/a.md",
                "insert_line": 0,
                "insert_text": f"{number}",
            }
            await tool.call(command)

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(add, number)
        shown = await tool.call({"command": "view", "path": "/memories/a.md"})
    assert sorted(re.findall(r"\t(\d)", shown)) == list("01234")


@pytest.mark.parametrize(
    "command",
    [
        {},
        {"command": "format"},
        {"command": ["view"]},
        {"command": "view"},
        {"command": "view", "path": 7},
        {"command": "insert", "path": "/memories/a", "insert_line": True, "insert_text": ""},
        {"command": "create", "path": "/memories/\u202e.md", "file_text": ""},
        {"command": "create", "path": "/memories/a\nb.md", "file_text": ""},
        {"command": "create", "path": "/memories/" + "d/" * 30 + "a", "file_text": ""},
        {"command": "create", "path": "/memories/a.md", "file_text": "x" * 1_000_001},
    ],
)
def test_a_command_that_cannot_be_used_says_why(tool, command):
    with pytest.raises(ToolError) as raised:
        tool.execute(command)
    assert len(str(raised.value)) > 20


# -- the vendor's tool runner ---------------------------------------------------------------------------------------------


class _Claude(QuietHandler):
    """A model that writes a note, and then says what it was told."""

    def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        results = [
            part
            for message in asked["messages"]
            if isinstance(message["content"], list)
            for part in message["content"]
            if part["type"] == "tool_result"
        ]
        command = {"command": "create", "path": "/memories/tea.md", "file_text": "Earl Grey"}
        content = [{"type": "tool_use", "id": "t1", "name": "memory", "input": command}]
        if results:
            content = [{"type": "text", "text": json.dumps(results[0]["content"])}]
        assert results or asked["tools"] == [{"type": "memory_20250818", "name": "memory"}]
        answer = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "content": content,
            "stop_reason": "end_turn" if results else "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def claude():

    with StubServer(_Claude) as server:
        yield server.url


def test_the_tool_runner_uses_it(claude, tool, memory):
    with anthropic.Anthropic(api_key="k", base_url=claude) as client:
        runner = client.beta.messages.tool_runner(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "I like Earl Grey"}], tools=[tool]
        )
        last = runner.until_done()
    assert "File created successfully at: /memories/tea.md" in last.content[0].text
    assert "Earl Grey" in said(tool, command="view", path="/memories/tea.md")


async def test_the_asynchronous_tool_runner_uses_it(claude):
    async with Memory.open("memory://", embedder="none") as memory:
        tool = AsyncMemoryTool(memory, user_id="ada")
        async with anthropic.AsyncAnthropic(api_key="k", base_url=claude) as client:
            runner = client.beta.messages.tool_runner(
                model="m",
                max_tokens=9,
                messages=[{"role": "user", "content": "I like Earl Grey"}],
                tools=[tool],
            )
            await runner.until_done()
        assert "Earl Grey" in await tool.call({"command": "view", "path": "/memories/tea.md"})


def test_what_a_model_may_get_wrong_in_a_view(tool):
    tool.call({"command": "create", "path": "/memories/a.md", "file_text": "one\ntwo\n"})
    assert "two line numbers" in said(tool, command="view", path="/memories/a.md", view_range=["1", None])
    assert "/memories/a.md" in said(tool, command="view", path="/memories/")
    assert "//" not in said(tool, command="view", path="/memories/").split(":", 1)[1]
