"""Notes, model calls and experiments: found again, and erased with what they are about."""

from datetime import UTC, datetime, timedelta

import pytest

from pagefile import Memory
from pagefile.engine.annotations import (
    ModelCall,
    model_calls,
    note_model_call,
    notes_of,
    search_notes,
    write_note,
)
from pagefile.engine.experiments import (
    Choice,
    checked_settings,
    chosen_calls,
    experiment,
    experiments,
    measured_calls,
    new_experiment,
    remove_experiment,
    save_experiment,
    totals,
)
from pagefile.errors import InvalidArgumentError, NotFoundError, SettingsError
from pagefile.records import Scope

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 11, 18, tzinfo=UTC)
AMY, BOB = Scope("default", "amy", "chat-amy"), Scope("default", "bob", "chat-bob")


@pytest.fixture
async def memory(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/notes.db", embedder="none") as memory:
        for scope in (AMY, BOB):
            chat = memory.conversation(scope.conversation, user_id=scope.user)
            for number in range(6):
                text = f"{scope.user} says {number}: " + "the ledger of the harbour master " * 12
                await chat.record(text, "Noted.", id=f"{scope.user}-{number}")
                await chat.context(f"What did {scope.user} say about the ledger, {number}?")
        yield memory


async def test_a_note_is_found_by_its_words_and_its_labels(memory):
    """In its conversation, across users, and only by those who may see it."""
    await write_note(memory, AMY, "turn", "amy-2", labels=["wrong", " wrong", "price"], text="Off by a cent")
    await write_note(memory, BOB, "turn", "bob 3", labels=["good"], text="as expected")
    assert ("wrong", "price") == (await notes_of(memory, AMY))["turn", "amy-2"].labels
    everybody = {"tenant": "default", "user_id": None}
    assert ["amy-2"] == [one.id for one in await search_notes(memory, **everybody, words=["CENT"])]
    assert ["bob 3"] == [one.id for one in await search_notes(memory, **everybody, label="good")]
    assert 2 == len(await search_notes(memory, **everybody))
    assert [AMY] == [one.scope for one in await search_notes(memory, tenant="default", user_id="amy")]
    assert [] == await search_notes(memory, tenant="elsewhere", user_id=None)
    await write_note(memory, AMY, "turn", "amy-2", labels=[], text=" ")
    assert {} == await notes_of(memory, AMY)


@pytest.mark.parametrize(
    ("labels", "text"), [(["x"] * 1 + [f"l{n}" for n in range(12)], ""), (["y" * 41], ""), ([], "z" * 4001)]
)
async def test_a_note_is_bounded(memory, labels, text):
    """And refused with what is allowed."""
    with pytest.raises(InvalidArgumentError, match="most"):
        await write_note(memory, AMY, "turn", "amy-2", labels=labels, text=text)


@pytest.mark.parametrize("what", ["conversation", "user", "tenant", "turn"])
async def test_what_is_noted_goes_with_what_it_is_about(memory, what):
    """And only with that: another user's stays."""
    call = (await memory.conversation("chat-amy", user_id="amy").calls(limit=1))[0]
    made = ModelCall("gpt-test", 1.5, 100, 20, 0.01, "USD", NOW)
    for scope in (AMY, BOB):
        await write_note(memory, scope, "turn", f"{scope.user}-2", labels=["x"], text="")
    await note_model_call(memory.engine, AMY, call.id, made)
    assert {call.id: made} == await model_calls(memory, AMY, [call.id, "unknown"])
    whole = await chosen_calls(memory, Choice())
    done = new_experiment("smaller", {"window_tokens": 2000}, NOW)
    rows = [row async for row in measured_calls(memory, whole, {"window_tokens": 2000})]
    assert {"amy", "bob"} == {row.user_id for row in rows}
    await save_experiment(memory, Scope("default"), done.__class__(**{**_fields(done), "rows": tuple(rows)}))
    erased = {
        "conversation": {"conversation_id": "chat-amy"},
        "user": {"user_id": "amy"},
        "tenant": {"tenant": "default"},
        "turn": {"conversation_id": "chat-amy", "turn_id": "amy-2"},
    }
    await memory.forget(**erased[what])
    assert {} == await notes_of(memory, AMY)
    left = [one for found in await experiments(memory, Scope("default")) for one in found.rows]
    assert (set() if what == "tenant" else {"bob"}) == {row.user_id for row in left}
    assert (what == "tenant") == ({} == await notes_of(memory, BOB))
    if what != "turn":
        assert {} == await model_calls(memory, AMY, [call.id])


def _fields(one):
    return {name: getattr(one, name) for name in ("id", "name", "created", "changes")}


# -- experiments ---------------------------------------------------------------------------------------------------------


async def test_calls_are_chosen_by_user_conversation_and_time(memory):
    """Each conversation's in the order in which they were made, bounded, and never another tenant's."""
    every = await chosen_calls(memory, Choice(limit=1000))
    assert 12 == len(every)
    assert [sorted(group, key=lambda one: one.at) for group in (every[:6], every[6:])] == [
        every[:6],
        every[6:],
    ]
    assert {"amy"} == {one.scope.user for one in await chosen_calls(memory, Choice(user_id="amy"))}
    assert 6 == len(await chosen_calls(memory, Choice(user_id="bob", conversation_id="chat-bob")))
    assert every[8:] == (await chosen_calls(memory, Choice(limit=4)))
    assert [] == await chosen_calls(memory, Choice(since=every[-1].at + timedelta(days=1)))
    assert [] == await chosen_calls(memory, Choice(tenant="elsewhere"))


async def test_an_experiment_measures_both_sides(memory):
    """Without a real change both are equal; a smaller window has fewer tokens and keeps less evidence."""
    calls = await chosen_calls(memory, Choice(user_id="amy"))
    same = totals([row async for row in measured_calls(memory, calls, {"recent_turns": 8})])
    assert (6, 0) == (same.calls, same.failed)
    assert same.tokens[0] == same.tokens[1] == sum(call.tokens for call in calls)
    assert same.reused[0] == same.reused[1] > 0
    assert same.evidence[0] == same.evidence[1] == same.kept > 0
    less = totals([row async for row in measured_calls(memory, calls, {"window_tokens": 300})])
    assert less.tokens[1] < less.tokens[0]
    assert less.kept < less.evidence[0]
    none = totals([row async for row in measured_calls(memory, calls, {"window_tokens": 5})])
    assert (0, 6) == (none.calls, none.failed)


async def test_an_experiment_is_opened_again(memory):
    """With every number; the oldest gives way, and one that is not there is said to be."""
    calls = await chosen_calls(memory, Choice(user_id="amy"))
    rows = tuple([row async for row in measured_calls(memory, calls, {"window_tokens": 300})])
    made = new_experiment("a <b>", {"window_tokens": 300}, NOW)
    done = made.__class__(**{**_fields(made), "rows": rows})
    await save_experiment(memory, Scope("default"), done)
    assert done == await experiment(memory, Scope("default"), done.id)
    assert [done] == await experiments(memory, Scope("default"))
    assert [] == await experiments(memory, Scope("default", "amy"))
    with pytest.raises(NotFoundError):
        await experiment(memory, Scope("default", "amy"), done.id)
    await remove_experiment(memory, Scope("default"), done.id)
    assert [] == await experiments(memory, Scope("default"))


@pytest.mark.parametrize("changes", [{}, {"query": "x"}, {"tokenizer": "file:/etc/passwd"}])
def test_what_an_experiment_cannot_change(changes):
    with pytest.raises((InvalidArgumentError, SettingsError)):
        checked_settings(changes)
