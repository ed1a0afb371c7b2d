"""The hooks of coding agents: what they record, what they bring, and that they cost nothing where there is no service."""

import ast
import io
import json
import socket
import subprocess
import sys
import time
from contextlib import suppress
from threading import Thread

import anyio
import httpx
import pytest

from pagefile import Memory, Settings
from pagefile.agents.hook import DEADLINE_S, answered, main, request_body
from pagefile.client import BlockingClient
from pagefile.integrations.claude_code.hooks import ClaudeHooks
from pagefile.integrations.claude_code.shapes import Transcript
from pagefile.integrations.transcripts import from_claude_code
from pagefile.service.app import create_app
from tests.acceptance.http_server import listening

from .hooking import SCRIPT, bash_output, prompt, run_hook, stop

LONG = "".join(f"step {number} of the build\n" for number in range(3_000))


@pytest.fixture
def service(tmp_path):
    with listening(Settings(url=f"sqlite:///{tmp_path}/memory.db")) as url:
        yield url


def said_in(url, session, *exchange, **more):
    for text, answer in exchange:
        run_hook(url, prompt(text, session_id=session), **more)
        run_hook(url, stop(answer, session_id=session), **more)


def context_of(answer):
    return "" if answer is None else answer["hookSpecificOutput"]["additionalContext"]


def test_what_was_said_in_one_session_comes_with_a_prompt_of_the_next(service):
    said_in(service, "s1", ("The test database listens on port 5544.", "Noted."))
    answer, _ = run_hook(service, prompt("Which port does the test database listen on?", session_id="s2"))
    assert "5544" in context_of(answer)


def test_one_projects_memory_never_reaches_another(service):
    said_in(service, "s1", ("The test database listens on port 5544.", "Noted."))
    other, _ = run_hook(
        service, prompt("Which port does the test database listen on?", session_id="s2"), project="/srv/other"
    )
    assert "5544" not in context_of(other)


def test_nothing_is_told_twice_until_the_history_is_compacted(service):
    """Then a session's own turns come back as well: the agent has only a summary of them."""
    said_in(service, "s1", ("The test database listens on port 5544.", "Noted."))
    asked = prompt("Which port does the test database listen on?", session_id="s2")
    first, again = context_of(run_hook(service, asked)[0]), context_of(run_hook(service, asked)[0])
    assert "5544" in first
    assert "5544" not in again
    run_hook(service, {"hook_event_name": "PreCompact", "trigger": "auto", "session_id": "s2"})
    assert "5544" in context_of(run_hook(service, asked)[0])
    run_hook(service, {"hook_event_name": "PreCompact", "trigger": "auto", "session_id": "s1"})
    own = prompt("Which port does the test database listen on?", session_id="s1")
    assert "5544" in context_of(run_hook(service, own)[0])


def test_bulky_output_is_replaced_in_its_own_shape_and_comes_back_whole(service):
    run_hook(service, prompt("Build it."))
    answer, _ = run_hook(service, bash_output(LONG))
    output = answer["hookSpecificOutput"]["updatedToolOutput"]
    assert {"stdout", "stderr", "interrupted"} == set(output)
    assert len(output["stdout"]) < len(LONG) / 4
    run_hook(service, stop("Built."))
    with BlockingClient.open(service) as client:
        [page] = client.pages(user_id="project:/srv/shop")
        assert LONG == client.peek(page.uuid, user_id="project:/srv/shop")


def test_short_output_stays(service):
    run_hook(service, prompt("Build it."))
    assert run_hook(service, bash_output("ok"))[0] is None


def test_codex_gets_memories_and_keeps_its_output(service):
    """Its hooks cannot replace output: an answer that tries to is an error there."""
    run_hook(service, prompt("Build it."), agent="codex")
    assert run_hook(service, bash_output(LONG), agent="codex")[0] is None


def test_opencode_gets_its_output_replaced_as_text_and_files_verbatim(service):
    run_hook(service, prompt("Build it."), agent="opencode")
    answer, _ = run_hook(service, bash_output(LONG, tool_name="bash", tool_response=LONG), agent="opencode")
    assert isinstance(answer["hookSpecificOutput"]["updatedToolOutput"], str)
    read = bash_output(LONG, tool_name="read", tool_response=LONG, tool_use_id="t2")
    assert run_hook(service, read, agent="opencode")[0] is None


def test_facts_come_when_a_session_begins(service):
    with BlockingClient.open(service) as client:
        client.remember("The project uses tabs", user_id="project:/srv/shop")
    answer, _ = run_hook(service, {"hook_event_name": "SessionStart", "source": "startup"})
    assert "tabs" in context_of(answer)


@pytest.mark.parametrize("given", [b"", b"{", b"[]", b"\xff", b'{"session_id": 1}', b"[" * 5_000, b'"x"'])
def test_an_input_that_is_none_is_ignored(given):
    assert run_hook("http://127.0.0.1:9", given)[0] is None


def test_without_a_service_it_prints_nothing():
    assert run_hook("http://127.0.0.1:9", prompt("Hello"))[0] is None


def test_a_service_that_never_answers_costs_the_deadline_and_no_more():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        _, idle = run_hook("http://127.0.0.1:9", prompt("Hello"), deadline=None)
        answer, took = run_hook(url, prompt("Hello"), deadline=None)
    assert answer is None
    # What the start of a process takes on this machine, twice over, and the deadline.
    assert took < DEADLINE_S + 3 * idle + 0.5


def test_an_agent_that_leaves_the_input_open_waits_for_the_deadline_and_no_more():
    asked = [sys.executable, "-I", "-S", str(SCRIPT), "http://127.0.0.1:9", "claude", "/srv/shop"]
    began = time.monotonic()
    with subprocess.Popen(asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as hook:
        assert 0 == hook.wait(timeout=20)
        took = time.monotonic() - began
        assert b"" == hook.stdout.read()
    _, idle = run_hook("http://127.0.0.1:9", prompt("Hello"), deadline=None)
    assert took < DEADLINE_S + 3 * idle + 0.5


def test_a_name_that_takes_long_to_look_up_costs_the_deadline_and_no_more(monkeypatch):
    """A lookup has no timeout of its own."""
    called = []

    def slow(*_given, **_named):
        called.append(1)
        time.sleep(3)
        raise OSError

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    asked = json.dumps({"session_id": "s2", **prompt("Hello")}).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(asked)))
    began = time.monotonic()
    main(["http://memory.example:8780", "claude", "/srv/shop"])
    assert [1] == called
    assert time.monotonic() - began < DEADLINE_S + 1


def test_the_script_imports_nothing_of_ours_and_nothing_slow():
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    names = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert {"json", "os", "socket", "sys", "threading", "time"} == names
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert names <= set(sys.stdlib_module_names)


def test_an_input_that_is_too_large_is_not_sent():
    assert b"" == request_body(b" " * 8_000_001, "claude", "/p")


def test_a_hook_needs_a_project(service):
    answer = httpx.post(f"{service}/agents/hook", json={"conversation_id": "s", "input": {}})
    assert 422 == answer.status_code


def test_every_character_reaches_the_agent_in_any_locale(service, monkeypatch):
    """Terminals of Windows have an encoding without most of them."""
    said_in(service, "s1", ("The project's sign is 📎 记忆.", "Noted."))
    told = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(told, encoding="cp1252", write_through=True))
    asked = json.dumps({"session_id": "s2", **prompt("What is the project's sign?")}).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(asked)))
    main([service, "claude", "/srv/shop", "30"])
    assert "📎 记忆" in context_of(json.loads(told.getvalue()))


def test_a_service_that_is_slow_to_read_costs_the_deadline_once():
    """Sending and receiving share it."""
    long = json.dumps({"session_id": "s1", **bash_output("x" * 6_000_000)}).encode()
    with socket.create_server(("127.0.0.1", 0)) as slow:
        url = f"http://127.0.0.1:{slow.getsockname()[1]}"
        reading = Thread(target=_read_late, args=(slow, 0.7))
        reading.start()
        began = time.monotonic()
        with suppress(TimeoutError):
            answered(url, long, None, began + 1)
        took = time.monotonic() - began
        reading.join()
    assert took < 1.4


def _read_late(server, seconds):
    connection, _ = server.accept()
    with connection, suppress(ConnectionError):
        time.sleep(seconds)
        while connection.recv(1 << 20):
            pass


async def test_an_agent_without_a_transcript_is_not_kept_waiting():
    async with Memory.open("memory://", embedder="none") as memory:
        hooks = ClaudeHooks(memory, user_id="u", transcript_reads=100)
        await hooks.answer({"session_id": "s1", **prompt("Build it.")})
        with anyio.fail_after(2):
            await hooks.answer({"session_id": "s1", **bash_output("ok")})
        [turn] = await memory.conversation("s1", user_id="u").turns()
    assert ["ok"] == [step.result for step in turn.steps]


@pytest.mark.parametrize("path", ["/dev/zero", "/dev", "/nowhere"])
def test_a_transcript_that_is_no_file_is_not_read(path):
    """The path is the client's word: a service that reads it must come to an end."""
    transcript = Transcript("p1")
    transcript.read(path)
    assert (0, []) == (transcript.offset, transcript.said)


DOT = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def line(kind, *blocks, **more):
    return {"type": kind, "sessionId": "s1", "promptId": "p1", "message": {"content": list(blocks)}, **more}


@pytest.mark.parametrize("calls", [(), ({**bash_output("ok"), "tool_use_id": "t1"},)])
async def test_what_a_prompt_shows_beside_its_words_is_in_the_log(tmp_path, calls):
    """A hook is given the words only: the picture is read from the transcript, once, and imported from it under the same name."""
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
    written = [
        line("user", {"type": "text", "text": "What?"}, DOT),
        line("user", DOT, isMeta=True),
        line("assistant", call),
    ]
    path = tmp_path / "transcript.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in written), encoding="utf-8")
    async with Memory.open("memory://", embedder="none") as memory:
        hooks = ClaudeHooks(memory, user_id="u", conversation_id="c")
        for given in (prompt("What?", prompt_id="p1"), *calls, stop("a dot")):
            await hooks.answer({"session_id": "s1", **given, "transcript_path": str(path)})
        chat = memory.conversation("c", user_id="u")
        (turn,) = await chat.turns()
        assert ("What?\n[image: image/png, 8 bytes]", "a dot") == (turn.user, turn.assistant)
        shown = [one for one in await chat.messages(turn, shape="anthropic") if DOT in one["content"]]
        assert 1 == len(shown)
    (brought,) = from_claude_code(written[:1]).turns
    assert (turn.id, turn.user) == (brought.id, brought.user)


async def test_a_path_on_another_machine_is_not_read_on_this_one(tmp_path):
    written = [
        {"type": "user", "promptId": "p1"},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "Somebody else's words."}]}},
    ]
    path = tmp_path / "transcript.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in written), encoding="utf-8")

    async def said(host):
        settings = Settings(url=f"sqlite:///{tmp_path}/{host}.db")
        app = create_app(settings)
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app, client=(host, 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8780") as client:
                for given in (prompt("Hello", prompt_id="p1"), stop(None)):
                    asked = {**given, "transcript_path": str(path)}
                    body = {"conversation_id": "s1", "project": "/srv/shop", "input": asked}
                    assert 200 == (await client.post("/agents/hook", json=body)).status_code
            chat = app.state.memory.conversation("s1", user_id="project:/srv/shop")
            return [turn.assistant for turn in await chat.turns()]

    assert ["Somebody else's words."] == await said("127.0.0.1")
    assert ["Somebody else's words."] != await said("10.0.0.7")
