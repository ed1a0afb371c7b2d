"""What is written for a user after that user was erased: facts, windows, pages."""

import threading
from dataclasses import replace
from datetime import UTC, datetime

import anyio
import pytest

from pagefile import BlockingMemory, ConflictError, Memory, NotFoundError, PagefileError
from pagefile.settings import FactSettings
from tests.findings.marks import finding, load

from .looking import PLAIN, SMALL_PAGES, bulky, given, tables_with

SETTINGS = replace(PLAIN, archive=SMALL_PAGES)
LEARNING = replace(PLAIN, facts=FactSettings(extract="rules"), indexing="manual")


class Interrupting:
    """The time of day; at one look at it, counted from when it was told to, it does something else first."""

    def __init__(self):
        self._thread = threading.get_ident()
        self._left, self._act = 0, None

    def at_look(self, number, act):
        self._left, self._act = number, act

    @property
    def waits(self):
        """Whether it still has something to do."""
        return self._act is not None

    def now(self):
        # Threads of the database look at the clock too, in the middle of a transaction that others would wait for.
        if self._act is not None and threading.get_ident() == self._thread:
            self._left -= 1
            if self._left == 0:
                act, self._act = self._act, None
                act()
        return datetime.now(UTC)


async def learnt_and_erased(memory, other, clock, user, look):
    """Record a statement and have it learnt; at this look at the clock another process erases the user."""
    await memory.conversation(user, user_id=user).record("I am allergic to penicillin.", "Noted.")
    clock.at_look(look, lambda: other.forget(user_id=user))
    await memory.settle()
    return not clock.waits


@finding("security-F3")
async def test_no_fact_is_learnt_about_an_erased_user(url):
    """Whenever another process erases a user whose words are being read for facts, no fact about that user is left."""
    clock = Interrupting()
    with BlockingMemory.open(url, settings=LEARNING) as other:
        async with Memory.open(url, settings=LEARNING, clock=clock) as memory:
            await memory.conversation("kept", user_id="kept").record("I am allergic to pollen.", "Noted.")
            await memory.settle()
            given(await memory.facts("kept"), "facts are learnt at all")
            look, back = 1, []
            while await learnt_and_erased(memory, other, clock, f"user {look}", look):
                back += await memory.facts(f"user {look}")
                look += 1
    given(look > 1, "the clock was looked at")
    assert [] == back


@finding("security-F4")
async def test_no_window_is_kept_for_an_erased_user(url):
    """A window that one process handed out is not recorded after another process has erased its user."""
    async with Memory.open(url, settings=PLAIN) as other:
        async with Memory.open(url, settings=PLAIN) as memory:
            chat = memory.conversation("chat", user_id="ada")
            await chat.record("Hello", "Hi")
            await chat.context("ERASED question", instructions="ERASED instructions")
            await other.forget(user_id="ada")
            await memory.settle()
            given(not await chat.turns(), "the user was erased")
        kept = await tables_with(url, "ERASED")
    assert [] == kept


@finding("security-F4")
async def test_a_window_of_nobody_erased_is_kept(url):
    """A window is recorded while its user is there, also when somebody else is erased."""
    async with Memory.open(url, settings=PLAIN) as other:
        async with Memory.open(url, settings=PLAIN) as memory:
            chat = memory.conversation("chat", user_id="ada")
            await chat.record("Hello", "Hi")
            await chat.context("KEPT question")
            await other.conversation("bobs", user_id="bob").record("Hello", "Hi")
            await other.forget(user_id="bob")
        kept = await other.conversation("chat", user_id="ada").calls()
    assert 1 == len(kept)


@load
@finding("security-F4")
async def test_no_window_in_flight_is_kept_for_an_erased_user(tmp_path, counted):
    """Windows that are being made while their user is erased leave nothing of the question behind."""
    url, tries = f"sqlite:///{tmp_path}/a.db", 25
    async with Memory.open(url, settings=PLAIN) as memory:
        for number in range(tries):
            chat = memory.conversation(f"chat {number}", user_id=f"user {number}")
            await chat.record("Hello", "Hi")
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(chat.context, f"ERASED{number}. question")
                await anyio.lowlevel.checkpoint()
                await memory.forget(user_id=f"user {number}")
    wrong = sum([bool(await tables_with(url, f"ERASED{number}.")) for number in range(tries)])
    counted(tries=tries, wrong=wrong)
    assert 0 == wrong


async def unknown_turn(ada, bob):
    await ada.step("nowhere", tool="search", result="REFUSED " * 60)


async def taken_id(ada, bob):
    await ada.record("other words", "other answer", id="taken", steps=bulky("REFUSED"))


async def turn_of_another_user(ada, bob):
    await bob.record("Hello", "Hi", steps=bulky("REFUSED"))


async def step_of_another_user(ada, bob):
    await bob.step("taken", tool="search", result="REFUSED " * 60)


@pytest.mark.parametrize("call", [unknown_turn, taken_id, turn_of_another_user, step_of_another_user])
@finding("security-F6")
async def test_what_is_refused_is_not_stored(tmp_path, url, call):
    """A turn or step that is refused leaves nothing behind: no page, nothing to find, nothing in an export."""
    async with Memory.open(url, settings=SETTINGS) as memory:
        ada, bob = (memory.conversation("chat", user_id=user) for user in ("ada", "bob"))
        await ada.record("Hello", "Hi", id="taken", steps=bulky("accepted"))
        with pytest.raises((NotFoundError, ConflictError)):
            await call(ada, bob)
        given(await memory.pages(), "results become pages")
        pages = await memory.pages()
        found = await memory.search_tool_history("REFUSED", user_id=None)
        await memory.export(tmp_path / "export.jsonl")
    assert 1 == len(pages), "only what was accepted"
    assert [] == [hit.passage for hit in found if "REFUSED" in hit.passage]
    assert "REFUSED" not in (tmp_path / "export.jsonl").read_text()


@finding("security-F6")
async def test_a_running_agent_writes_nothing_for_an_erased_user(url):
    """An agent whose user was erased in the middle of a turn cannot leave a page by its next step."""
    async with Memory.open(url, settings=SETTINGS) as memory, Memory.open(url, settings=SETTINGS) as other:
        chat = memory.conversation("chat", user_id="ada")
        turn = await chat.begin("Please look it up.")
        await other.forget(user_id="ada")
        with pytest.raises(PagefileError):
            await chat.step(turn, tool="search", result="REFUSED " * 60)
        pages = await memory.pages()
    assert [] == list(pages)
