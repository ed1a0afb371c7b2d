"""The command line for somebody who types what they would expect to work."""

import socket
from itertools import pairwise

import anyio
import pytest

from pagefile import Memory
from tests.acceptance.cli_calling import pagefile
from tests.servers.ports import free_port
from tests.servers.valkey import ValkeyServer


@pytest.fixture(autouse=True)
def _at_a_desk(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("PAGEFILE_URL", "PAGEFILE_CONFIG", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("version",), "Did you mean '--version'?"),
        (("ls",), "Did you mean 'show'?"),
        (("restore", "copy.db"), "Did you mean 'backup'?"),
        (("serv",), "Did you mean 'serve'?"),
        (("mcp", "instal", "cursor"), "Did you mean 'install'"),
        (("export", "-"), "an export is written to a file"),
        (("show", "-n", "0"), "must be at least 1"),
        (("recall", "bees", "ada", "-n", "x"), "not a whole number"),
        (("audit", "-n", "0"), "must be at least 1"),
        (("serve", "--port", "abc"), "'--port': not a whole number"),
        (("tail", "--limit", "-1"), "must be at least 0"),
        (("tail", "--every", "soon"), "not a number"),
        (("wrap", "cusror"), "'AGENT': 'cusror' is not one of"),
    ],
)
def test_what_is_mistyped_is_answered_in_plain_words(arguments: tuple[str, ...], answer: str):
    """The answer names what was probably meant, and quotes no validator."""
    said = pagefile(*arguments)
    assert 2 == said.code
    words = " ".join(said.err.replace("│", " ").split())
    assert answer in words
    assert "Input should be" not in words
    assert "Value error" not in words


def test_a_conversation_is_named_by_its_beginning():
    """As long as it is unambiguous; to write, the whole id is needed."""
    for conversation in ("gw-993c057b2a4a", "gw-993d", "gw-1"):
        pagefile("record", conversation, "--user", "hello", "--user-id", "ada")
    assert "Conversation gw-993c057b2a4a of ada" in pagefile("show", "gw-993c").out
    assert "gw-993c057b2a4a" == pagefile("show", "gw-993c057…", "--json").json["conversation"]
    assert 0 == pagefile("tail", "gw-993c", "--once").code
    assert 0 == pagefile("context", "gw-993c", "And now?").code
    several = pagefile("show", "gw-993")
    assert (3, True) == (several.code, "more than one conversation" in several.err)
    assert 3 == pagefile("show", "gw-").code
    assert 3 == pagefile("show", "gw-993c", "--user", "bob").code
    pagefile("record", "gw-993c", "--user", "hello", "--user-id", "ada")
    assert 4 == len(pagefile("show", "--json").json)
    assert 3 == pagefile("forget", "gw-993c0", "--yes").code


def test_the_newest_call_needs_no_id():
    """`calls` lists those of all conversations, `explain` and `replay` take the newest."""
    assert 3 == pagefile("calls").code
    anyio.run(_ask)
    assert ["Second?", "First?"] == [call["query"] for call in pagefile("calls", "--json").json]
    assert ["Second?"] == [call["query"] for call in pagefile("calls", "--limit", "1", "--json").json]
    assert "There are more" in pagefile("calls", "--limit", "1").out
    listed = pagefile("calls").out
    assert "a-1" in listed
    assert "b-2" in listed
    elsewhere = pagefile("calls", "--db", "pagefile.db").out
    assert "pagefile --db pagefile.db explain" in elsewhere
    assert "Question: Second?" in pagefile("explain").out
    assert "Question: Second?" in pagefile("replay", "--set", "window_tokens=300").out


async def _ask() -> None:
    async with Memory.open("sqlite:///pagefile.db", embedder="none") as memory:
        for conversation, question in (("a-1", "First?"), ("b-2", "Second?")):
            chat = memory.conversation(conversation, user_id="ada")
            await chat.record("Hello", "Hi")
            await chat.context(question)
        await memory.settle()


def test_without_calls_explain_says_so():
    """Not that an id is missing."""
    pagefile("record", "c", "--user", "hi")
    said = pagefile("explain")
    assert (3, True) == (said.code, "No model call is recorded" in said.err)


def test_recall_for_a_user_who_is_not_there():
    """A mistyped user is another matter than a question without an answer."""
    pagefile("record", "c", "--user", "I like fondue.", "--user-id", "ada")
    assert "Nothing is recorded for user 'aada'" in pagefile("recall", "fondue", "--user", "aada").err
    assert "Nothing recorded here answers" in pagefile("recall", "zebra", "--user", "ada").err


def test_doctor_names_a_cache_that_does_not_answer(monkeypatch: pytest.MonkeyPatch):
    """The service works without it, which is not what whoever configured it wants."""
    pagefile("record", "c", "--user", "hi")
    monkeypatch.setenv("PAGEFILE_SESSIONS", f"redis://127.0.0.1:{free_port()}/0")
    said = pagefile("doctor")
    assert (0, True) == (said.code, "does not answer" in said.words)
    assert "Nothing is broken; worth reading: 1 note (sessions)." in said.out


def test_doctor_says_why_a_cache_cannot_be_used(monkeypatch: pytest.MonkeyPatch):
    """A wrong password is not a server that has to be started."""
    pagefile("record", "c", "--user", "hi")
    server = ValkeyServer(settings={"requirepass": "right"})
    with server:
        monkeypatch.setenv("PAGEFILE_SESSIONS", server.url.replace("://", "://:wrong-Secret@"))
        said = pagefile("doctor")
    assert "AuthenticationError" in said.words
    assert "wrong-Secret" not in said.out


def test_doctor_has_one_line_for_what_is_not_installed(monkeypatch: pytest.MonkeyPatch):
    """Scripts get a check for each of them."""
    monkeypatch.setattr(
        "importlib.metadata.requires",
        lambda _: ["nothing-like-it>=1; extra == 'dreams'", "nor-this; extra == 'naps'"],
    )
    assert "other extras not installed: dreams, naps" in pagefile("doctor").words
    checks = {one["name"]: one for one in pagefile("doctor", "--json").json["checks"]}
    assert "pip install 'nothing-like-it>=1'" in checks["extra dreams"]["advice"]


@pytest.mark.parametrize("farewell", ["/quit", "/exit"])
def test_a_chat_from_a_pipe_ends_when_told(farewell: str):
    """As at the prompt; what comes after it is not said to the model."""
    said = pagefile("chat", "notes", stdin=f"hello\n{farewell}\nand this?\n")
    assert (0, False) == (said.code, "There is no" in said.out + said.err)
    assert ["hello"] == [turn["user"] for turn in pagefile("show", "notes", "--json").json["turns"]]


def test_a_user_is_named_in_one_way_everywhere():
    """Behind what is asked, or with --user: `recall` and `facts` take both."""
    pagefile("record", "c", "--user-id", "ada", "--user", "I keep bees.", "--assistant", "Noted.")
    pagefile("remember", "Keeps bees.", "--user", "ada")
    for named in (("ada",), ("--user", "ada"), ("--user-id", "ada")):
        assert "I keep bees." in pagefile("recall", "bees", *named).out
        assert "Keeps bees." in pagefile("facts", *named).out
    assert 2 == pagefile("recall", "bees", "ada", "--user", "ada").code


def test_nothing_here_names_the_tenants_that_have_something():
    """An operator whose records are in a tenant of their own is told to name it."""
    pagefile("record", "c", "--tenant", "clinic", "--user-id", "ada", "--user", "I keep bees.")
    for command in (("show",), ("export", "all.jsonl")):
        said = pagefile(*command)
        words = " ".join(said.err.split())
        assert (3, True) == (said.code, "--tenant clinic" in words), words
        assert "None" not in words


def test_a_key_is_revoked_by_its_name():
    """By its id where two keys that work have the name."""
    pagefile("keys", "add", "laptop")
    assert "(laptop)" in pagefile("keys", "revoke", "laptop").out
    said = pagefile("keys", "revoke", "laptop")
    assert (3, True) == (said.code, "no valid key" in said.err)
    for _ in range(2):
        pagefile("keys", "add", "laptop")
    said = pagefile("keys", "revoke", "laptop")
    ids = [key["id"] for key in pagefile("keys", "list", "--json").json]
    assert (1, True) == (said.code, all(one in said.err for one in ids[1:]))
    assert 0 == pagefile("keys", "revoke", ids[-1]).code
    assert "(laptop)" in pagefile("keys", "revoke", "laptop").out


def test_erased_rows_are_counted_in_words():
    """What was erased, by what it is to people; the tables have their names in JSON."""
    pagefile("record", "c", "--user", "hi", "--user-id", "ada")
    said = pagefile("forget", "c", "--yes")
    assert "turns" in said.out
    assert not [name for name in ("ai_message", "context_calls", "blobs") if name in said.out]


def test_facts_that_are_not_there_say_how_they_come_about():
    pagefile("record", "c", "--user", "I am allergic to peanuts.", "--user-id", "ada")
    said = pagefile("facts", "ada")
    assert (3, True) == (said.code, "facts.extract" in said.err)


def test_an_audit_log_without_an_entry_says_of_which_tenant(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PAGEFILE_POLICY__AUDIT", str(tmp_path / "audit"))
    pagefile("record", "c", "--user", "hi")
    said = pagefile("audit")
    assert (3, True) == (said.code, "in tenant 'default': --tenant names another" in said.err)


def test_a_port_in_use_leaves_no_database_behind(tmp_path):
    """Nobody would know what the new file is for."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = pagefile("serve", "--db", "new.db", "--port", str(taken.getsockname()[1]))
    assert 0 != said.code
    assert "is in use" in said.err
    assert [] == list(tmp_path.iterdir())


def test_an_answer_that_broke_off_is_shown_as_far_as_it_came():
    """It is in the log, though in no window."""

    async def broken_off() -> None:
        async with Memory.open("sqlite:///pagefile.db") as memory:
            chat = memory.conversation("c")
            turn = await chat.begin("Tell me a story.")
            turn = await chat.extend(turn, [{"role": "assistant", "content": "Once upon a time there"}])
            await chat.abort(turn)

    anyio.run(broken_off)
    for command in (("show", "c"), ("tail", "--once")):
        said = " ".join(pagefile(*command).out.split())
        assert "aborted" in said
        assert "Once upon a time there" in said


def test_conversations_are_told_apart_by_what_was_said_first():
    """Their ids are digests where nobody named them."""
    for number, said in enumerate(("Where is the crane?", "What is 17 percent of 420?")):
        pagefile("record", f"gw-{number}", "--user", said, "--assistant", "Noted.")
    lines = pagefile("show").out.splitlines()
    assert ["What is 17 percent of 420?", "Where is the crane?"] == [
        below.strip() for line, below in pairwise(lines) if "gw-" in line
    ]


def test_a_window_is_as_large_as_that_of_the_last_call():
    """The agent that uses the conversation may have other settings than this folder."""

    async def called() -> None:
        async with Memory.open("sqlite:///pagefile.db") as memory:
            chat = memory.conversation("c")
            await chat.record("Where is the crane?", "In the harbour.")
            await chat.context("And the tug?", window_tokens=5_000)

    assert " of 16,000 tokens" in pagefile("context", _without_calls(), "Hello").out
    anyio.run(called)
    assert " of 5,000 tokens" in pagefile("context", "c", "And the ferry?").out
    assert " of 900 tokens" in pagefile("context", "c", "And now?", "--window-tokens", "900").out


def _without_calls() -> str:
    """A conversation without a call."""
    pagefile("record", "new", "--user", "Hi", "--assistant", "Hello")
    return "new"
