"""Windows of turns made of messages, made again: each shows the turn as far as it was, whatever was added since."""

from dataclasses import replace

import pytest

from pagefile import Memory, Settings
from pagefile.engine.replay import UNNOTED
from pagefile.engine.verification import verify
from pagefile.settings import ArchiveSettings, EmbedderSettings
from pagefile.text.tokens import MESSAGE_OVERHEAD
from tests.transcripts import CHAT, TRANSCRIPTS

pytestmark = pytest.mark.anyio
SETTINGS = Settings(embedder=EmbedderSettings(name="none"), on_tier_error="raise", calls_kept=1000)


@pytest.fixture(params=TRANSCRIPTS.values(), ids=TRANSCRIPTS)
def transcript(request):
    return request.param


@pytest.fixture
async def memory():
    async with Memory.open("memory://", settings=SETTINGS) as opened:
        yield opened


async def played(chat, messages):
    """A turn that grows message by message, and a window for each model call that there could be."""
    turn = await chat.begin(messages=messages[:1])
    windows = [await chat.context(turn=turn)]
    for message in messages[1:]:
        turn = await chat.extend(turn, [message])
        windows.append(await chat.context(turn=turn))
    return turn, windows


async def ended(chat, turn, how):
    if how == "completed":
        await chat.complete(turn)
    elif how == "completed with a text":
        await chat.complete(turn, "And that is all.")
    elif how == "aborted":
        await chat.abort(turn)


def read(window):
    return window.messages, window.for_anthropic(), window.for_responses(), window.receipt


async def check_same(chat, windows):
    """Every window is explained and replayed as it was."""
    for window in windows:
        found = await chat.explain(window.id)
        assert (found.exact, found.why) == (True, ())
        assert read(found.window) == read(window)
        assert (await chat.replay(window.id)).comparison.same
        assert (await chat.replay(window.id, window_tokens=5000)).before.messages == window.messages


async def without_message_counts(memory, chat):
    """The calls as an older version recorded them."""
    for call in await chat.calls(limit=1000):
        moment = {name: value for name, value in call.options["moment"].items() if name != "messages"}
        older = replace(call, id=f"older {call.id}", options={**call.options, "moment": moment})
        await memory.engine.store.calls.add([older], keep=1000)


@pytest.mark.parametrize("how", ["open", "completed", "completed with a text", "aborted"])
async def test_a_window_shows_its_turn_as_it_was(memory, transcript, how):
    """However the turn went on and ended; and nothing is left for `verify` to tell."""
    chat = memory.conversation("c", user_id="ada")
    await chat.record("Hello", "Hi")
    turn, windows = await played(chat, transcript)
    await ended(chat, turn, how)
    await chat.record("And now?", "Now this.")
    await check_same(chat, windows)
    assert () == (await verify(memory.engine, full=True)).findings


async def test_a_turn_of_which_nothing_is_archived_costs_what_it_costs_without_pagefile(transcript):
    """Pictures, thoughts and words beside the calls are counted on both sides."""
    settings = replace(SETTINGS, archive=ArchiveSettings(threshold=100_000))
    async with Memory.open("memory://", settings=settings) as memory:
        chat = memory.conversation("c", user_id="ada")
        turn, windows = await played(chat, transcript)
        await ended(chat, turn, "completed")
        # The day is all that Pagefile adds here.
        told = memory.engine.counter.count(windows[0].parts.today) + MESSAGE_OVERHEAD
        for window in windows:
            assert (await chat.explain(window.id)).tokens_without == window.tokens - told
        assert [window.tokens - told for window in windows] == [
            cost.tokens_without for cost in await chat.costs()
        ]


async def test_turns_that_were_open_at_the_same_time_stay_apart(memory, transcript):
    """A turn that was open when a window was made, and is done now, is in it as far as it was."""
    chat = memory.conversation("c", user_id="ada")
    other, others = await played(chat, CHAT[:3])
    turn, windows = await played(chat, transcript)
    others.append(await chat.context(turn=other))
    await ended(chat, other, "completed")
    windows.append(await chat.context(turn=turn))
    await ended(chat, turn, "completed")
    await check_same(chat, [*windows, *others])


async def test_what_others_wait_for_is_counted_as_it_is_shown(memory, transcript):
    """Of a turn that is open elsewhere, only what the user said is shown: neither its calls nor their results cost anything."""
    chat = memory.conversation("c", user_id="ada")
    await played(chat, transcript[:-1])
    plain = await chat.begin("A plain one")
    await chat.step(plain, tool="look", input={"where": "up"}, result="there " * 100)
    window = await chat.context("And now?")
    steps = [message for message in window.messages if message["role"] == "tool" or "tool_calls" in message]
    assert steps == []
    shown = {one.id: one.tokens for one in window.receipt.kept}[plain.id]
    text = next(one["content"] for one in window.messages if "A plain one" in one["content"])
    assert shown == MESSAGE_OVERHEAD + memory.engine.counter.count(text)


async def test_a_fork_goes_on_by_itself(memory, transcript):
    """A turn that is still open is copied as far as it is; both conversations have their own windows of it."""
    chat = memory.conversation("c", user_id="ada")
    begun, windows = await played(chat, transcript[:-1])
    fork = await chat.fork(begun)
    there = [await fork.context(turn=begun)]
    await ended(chat, await chat.extend(begun, transcript[-1:]), "completed")
    await ended(fork, begun.id, "aborted")
    await check_same(chat, windows)
    await check_same(fork, there)


async def test_windows_are_the_same_after_a_restart_and_elsewhere(tmp_path, transcript):
    """In the database when it is opened again, and in another one that was filled from an export."""
    url = f"sqlite:///{tmp_path}/here.db"
    async with Memory.open(url, settings=SETTINGS) as memory:
        chat = memory.conversation("c", user_id="ada")
        turn, windows = await played(chat, transcript)
        await ended(chat, turn, "completed")
    async with Memory.open(url, settings=SETTINGS) as memory:
        await check_same(memory.conversation("c", user_id="ada"), windows)
        await memory.export(tmp_path / "all.jsonl")
    async with Memory.open("memory://", settings=SETTINGS) as memory:
        await memory.import_(tmp_path / "all.jsonl")
        await check_same(memory.conversation("c", user_id="ada"), windows)


async def test_what_an_older_version_recorded_is_explained_as_far_as_it_can_be(memory, transcript):
    """It did not say how many messages there were: mostly they can be told, and where not, this is said."""
    chat = memory.conversation("c", user_id="ada")
    turn, windows = await played(chat, transcript)
    await ended(chat, turn, "completed")
    await without_message_counts(memory, chat)
    found = [await chat.explain(f"older {window.id}") for window in windows]
    assert all(one.exact or one.why[0] == UNNOTED for one in found)
    # Models are asked when results are there.
    assert found[-2].exact
    for window in windows:
        await chat.replay(f"older {window.id}", window_tokens=5000)
    told = [finding.what for finding in (await verify(memory.engine, full=True)).findings]
    assert sum(not one.exact for one in found) == len(told)
    assert all(UNNOTED in what for what in told)
