"""`pagefile chat` and `pagefile tail`: a conversation in the terminal, and what happens, as it happens."""

import json
import os
import pty
import re
import signal
import subprocess
import sys

import pytest

from pagefile import BlockingMemory
from tests.waiting import PATIENCE_S

from .cli_calling import pagefile

COMMAND = [sys.executable, "-m", "pagefile"]


@pytest.fixture(autouse=True)
def _at_a_desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("PAGEFILE_URL", "PAGEFILE_CONFIG", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def test_a_script_answers_where_no_model_is_set():
    """Offline; each answer has its bill, a bulky result leaves the window and comes back, and everything is on record."""
    lines = [
        "I live in Oslo.",
        "/sample What does the report say?",
        "Open the archived result about the valve.",
        "/bill",
    ]
    said = pagefile("chat", "notes", stdin="\n".join(lines))
    assert 0 == said.code, said.err
    assert "No model is set (model.name), so a script answers" in said.words
    assert 3 == said.out.count("window    ")
    assert "nothing yet: everything said so far takes" in said.words
    assert "of inspect_site are page" in said.words
    assert "load_tool_history brought back" in said.words
    assert "V-42" in said.words
    assert "that everything said so far takes" in said.words
    assert "Saved −" not in said.out
    turns = pagefile("show", "notes", "--json").json["turns"]
    assert lines[0] == turns[0]["user"]
    assert ["done"] * 3 == [turn["status"] for turn in turns]
    assert "me" == turns[0]["user_id"]


def test_one_message_and_the_end():
    """For scripts; in Chinese the script answers in Chinese, and a conversation goes on as its owner."""
    pagefile("record", "门诊", "--user-id", "王芳", "--user", "我对青霉素过敏。", "--assistant", "记住了。")
    said = pagefile("chat", "门诊", "-m", "我能吃阿莫西林吗？", "--scripted")
    assert (0, True) == (said.code, "演示用的脚本模型" in said.out)
    turns = pagefile("show", "门诊", "--json").json["turns"]
    assert ["王芳"] * 2 == [turn["user_id"] for turn in turns]
    assert 0 == pagefile("chat", "-m", "/help").code
    assert "There is no /nonsense" in pagefile("chat", "-m", "/nonsense").out
    assert "There is no window yet" in pagefile("chat", "-m", "/bill").out


def test_the_model_of_the_settings_answers(monkeypatch):
    """And where it cannot be reached that is an error, and the turn is not left open."""
    monkeypatch.setenv("PAGEFILE_MODEL__NAME", "m")
    monkeypatch.setenv("PAGEFILE_MODEL__BASE_URL", "http://127.0.0.1:9/v1")
    said = pagefile("chat", "-m", "hello")
    assert "error:" in said.err
    assert ["aborted"] == [turn["status"] for turn in pagefile("show", "chat", "--json").json["turns"]]


def test_what_is_known_can_be_asked_for():
    pagefile("remember", "Keeps bees.", "--user", "me")
    assert "- Keeps bees." in pagefile("chat", "-m", "/facts").out


@pytest.mark.waits
def test_a_reader_may_leave_early():
    """`pagefile chat | head`: no traceback, and what was asked is answered on record."""
    asked = ["-m", "one", "-m", "two"]
    process = subprocess.Popen(
        [*COMMAND, "chat", *asked], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert "" == process.stderr.read()
    assert 1 == process.wait(PATIENCE_S)
    turns = pagefile("show", "chat", "--json").json["turns"]
    assert [("one", "done")] == [(turn["user"], turn["status"]) for turn in turns]


@pytest.mark.waits
def test_the_prompt_ends_with_ctrl_d():
    """On a terminal: a prompt, an answer, and the end without a traceback."""
    parent, child = pty.openpty()
    process = subprocess.Popen([*COMMAND, "chat"], stdin=child, stdout=child, stderr=child, close_fds=True)
    os.close(child)
    said = _until(parent, "you › ")
    os.write(parent, b"hello there\n")
    # The bill and the next prompt may come in one piece.
    said += _until(parent, r"pagefile explain[^›]*you › ")
    os.write(parent, b"\x04")
    assert 0 == process.wait(PATIENCE_S)
    assert "Traceback" not in said
    os.close(parent)


def _until(terminal: int, words: str) -> str:
    """What the terminal shows until these words; a piece may end in the middle of a character."""
    said = b""
    while not re.search(words, said.decode(errors="replace")):
        said += os.read(terminal, 4096)
    return said.decode()


# -- tail ----------------------------------------------------------------------------------------------------------------


def test_an_empty_database_says_so():
    """On stderr, so that what reads the JSON gets nothing else."""
    pagefile("record", "c", "--user", "hi")
    pagefile("forget", "c", "--yes")
    said = pagefile("tail", "--once")
    assert (0, "") == (said.code, said.out)
    assert said.err.startswith("Nothing is recorded here yet")
    pagefile("record", "c", "--user", "hi", "--tenant", "clinic")
    assert (
        "Nothing is recorded in tenant 'default' yet. There is something in 'clinic': add --tenant clinic."
        in (" ".join(pagefile("tail", "--once").err.split()))
    )
    assert "" == pagefile("tail", "--once", "--tenant", "clinic").err


def test_the_last_ones_are_shown():
    """Turns and calls in the order in which they were written, each short enough for a line."""
    with BlockingMemory.open("pagefile.db") as memory:
        for number in range(4):
            chat = memory.conversation(f"c{number}", user_id="ada" if number else "eve")
            chat.context("What about the garden?")
            chat.record(f"The garden has {number} trees. " + "很" * 60, "Noted.")
    said = pagefile("tail", "--once", "-n", "100")
    assert 0 == said.code
    assert [f"c{n} · turn 1" in said.out for n in range(4)] == [True] * 4
    assert 4 == said.out.count(" · call ")
    assert said.out.index("c0 · turn 1") < said.out.index("c3 · call ")
    assert " c0 " not in pagefile("tail", "--once", "--user", "ada", "-n", "100").out
    only = pagefile("tail", "c2", "--once", "--json").out.splitlines()
    assert ["call", "turn"] == [json.loads(line)["event"] for line in only]
    assert "There is no conversation" in pagefile("tail", "nope", "--once").err


@pytest.mark.waits
def test_what_another_process_writes_is_seen():
    """New turns of old and new conversations, once each; Ctrl-C ends it with 0 and without a word on stderr."""
    pagefile("record", "old", "--user", "before")
    command = [*COMMAND, "tail", "--every", "0.05", "--json"]
    follower = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert follower.stdout is not None
        assert "before" == json.loads(follower.stdout.readline())["user"]
        for place, text in (("old", "one"), ("new", "two"), ("old", "three")):
            pagefile("record", place, "--user", text)
            seen = json.loads(follower.stdout.readline())
            assert (place, text) == (seen["conversation_id"], seen["user"])
        pagefile("forget", "old", "--yes")
        pagefile("record", "old", "--user", "again")
        assert "again" == json.loads(follower.stdout.readline())["user"]
        follower.send_signal(signal.SIGINT)
        rest, errors = follower.communicate(timeout=PATIENCE_S)
        assert (0, "", "") == (follower.returncode, rest.strip(), errors)
    finally:
        follower.kill()
        follower.communicate()
