"""Summaries of conversations that were erased while the summary was being written."""

import contextlib
import json
import random
import time
import uuid
from collections import defaultdict
from dataclasses import replace

import anyio
import pytest

from pagefile import Memory, PagefileError
from tests.acceptance.cli_calling import pagefile
from tests.findings.marks import finding, load

from .looking import NO_VECTORS, PLAIN, SMALL_PAGES, bulky, given

SETTINGS = replace(PLAIN, window_tokens=1500, recent_turns=2, archive=SMALL_PAGES)
FILLER = "word " * 60


class Waiting:
    """A summarizer as slow as a test wants it: it says when it was asked, and answers when it may."""

    def __init__(self):
        self.asked = anyio.Event()
        self.may_answer = anyio.Event()

    async def __call__(self, text):
        self.asked.set()
        await self.may_answer.wait()
        return "Summary: " + text[:300]


async def told(chat, what, turns, **more):
    for number in range(turns):
        await chat.record(f"{what} number {number} {FILLER}", "noted", **more)


async def by_hand(chat):
    """Ask for a checkpoint; that it is refused in the end is as good as an answer."""
    with contextlib.suppress(PagefileError):
        await chat.checkpoint()


@pytest.mark.parametrize("who", ["the same process", "another process"])
@pytest.mark.parametrize("how", ["by hand", "in the background"])
@finding("security-F1")
async def test_a_summary_of_what_was_erased_never_takes_effect(url, how, who):
    """When a user is erased while a summary of theirs is being written, no later conversation of that id gets the summary."""
    waiting = Waiting()
    async with (
        Memory.open(url, settings=SETTINGS, summarizer=waiting) as memory,
        Memory.open(url, settings=SETTINGS) as other,
        anyio.create_task_group() as group,
    ):
        chat = memory.conversation("chat", user_id="ada")
        await told(chat, "ERASED diagnosis", 25)
        if how == "by hand":
            group.start_soon(by_hand, chat)
        else:
            await chat.context("What did I say?")
        await waiting.asked.wait()
        await (memory if who == "the same process" else other).forget(user_id="ada")
        await told(chat, "new life", 27)
        waiting.may_answer.set()
        await memory.settle()
        window = await chat.context("hello")
        summaries = [checkpoint.summary for checkpoint in await chat.checkpoints()]
    assert "ERASED" not in json.dumps([window.messages, summaries])


@finding("security-F1")
async def test_a_summary_of_an_erased_user_never_reaches_another_user(url):
    """When a user is erased and another one takes the free id, the other one's window holds nothing of the erased user."""
    waiting = Waiting()
    async with (
        Memory.open(url, settings=SETTINGS, summarizer=waiting) as memory,
        anyio.create_task_group() as group,
    ):
        await told(memory.conversation("main", user_id="ada"), "ERASED diagnosis", 10)
        group.start_soon(by_hand, memory.conversation("main", user_id="ada"))
        await waiting.asked.wait()
        await memory.forget(user_id="ada")
        bob = memory.conversation("main", user_id="bob")
        await told(bob, "bob", 12)
        waiting.may_answer.set()
        await memory.settle()
        window = await bob.context("hello")
    assert "ERASED" not in json.dumps(window.messages)


@finding("security-F1")
async def test_erasing_during_a_summary_damages_nothing(tmp_path):
    """A database in which somebody was erased while a summary was being written is whole: `pagefile verify` finds nothing."""
    url, waiting = f"sqlite:///{tmp_path}/a.db", Waiting()
    async with (
        Memory.open(url, settings=SETTINGS, summarizer=waiting) as memory,
        anyio.create_task_group() as group,
    ):
        chat = memory.conversation("chat", user_id="ada")
        await told(chat, "ERASED diagnosis", 10, steps=bulky("a result"))
        given(await chat.pages(), "results became pages")
        group.start_soon(by_hand, chat)
        await waiting.asked.wait()
        await memory.forget(user_id="ada")
        await told(chat, "new life", 12)
        waiting.may_answer.set()
        await memory.settle()
    verified = await anyio.to_thread.run_sync(pagefile, "--db", url, "verify", "--full")
    assert 0 == verified.code, verified.out


@finding("security-F1")
async def test_a_summary_that_nobody_disturbs_takes_effect(url):
    """A summary of a conversation that nobody erases is in its window, however long it took to write."""
    waiting = Waiting()
    async with Memory.open(url, settings=SETTINGS, summarizer=waiting) as memory:
        chat = memory.conversation("chat", user_id="ada")
        await told(chat, "KEPT diagnosis", 10)
        # Settling waits for background work, not for a checkpoint that somebody else makes by hand: the group does.
        async with anyio.create_task_group() as group:
            group.start_soon(by_hand, chat)
            await waiting.asked.wait()
            await told(chat, "more", 2)
            waiting.may_answer.set()
        await memory.settle()
        window = await chat.context("hello")
    assert "Summary: " in json.dumps(window.messages)


@load
@finding("security-F1")
async def test_plain_use_with_erasures_brings_nothing_back(tmp_path, counted):
    """Clients that write, read and erase one thing after the other never find words of an erased conversation in a summary."""
    settings = replace(PLAIN, window_tokens=3000, recent_turns=2, embedder=NO_VECTORS)
    tally = {"forgets": 0, "back": set()}
    async with (
        Memory.open(f"sqlite:///{tmp_path}/a.db", settings=settings) as memory,
        anyio.create_task_group() as group,
    ):
        for number in range(4):
            group.start_soon(client, memory, number, time.monotonic() + 25, tally)
    counted(tries=tally["forgets"], wrong=len(tally["back"]))
    assert 0 == len(tally["back"])


async def client(memory, number, end, tally):
    """Writes under a new mark after each erasure, and looks for the old marks in summaries."""
    chance, marks, gone = random.Random(number), {}, defaultdict(set)
    user = f"user {number}"
    while time.monotonic() < end:
        name = f"chat {number} {chance.randrange(3)}"
        chat = memory.conversation(name, user_id=user)
        mark = marks.setdefault(name, f"MARK{uuid.uuid4().hex[:8]}")
        for _ in range(chance.randrange(5, 16)):
            words = " ".join(chance.choices(["anna", "valve", "decided", "budget", "monday"], k=90))
            await chat.record(f"{mark} diagnosis {words}", f"noted {mark}")
        if chance.random() < 0.5:
            await chat.context("What about the valve?")
        for checkpoint in await chat.checkpoints():
            if any(old in checkpoint.summary for old in gone[name]):
                tally["back"].add(checkpoint.id)
        if chance.random() < 0.6:
            await memory.forget(conversation_id=name, user_id=user)
            gone[name].add(marks.pop(name))
            tally["forgets"] += 1
