"""Search over everything that was said: whatever the slices, every match comes once."""

import pytest

from pagefile import Memory
from pagefile.engine import turn_search
from pagefile.engine.turn_search import TurnQuery, search_turns, turns_by_id
from pagefile.errors import InvalidArgumentError

pytestmark = pytest.mark.anyio


@pytest.fixture
async def memory():
    async with Memory.open("memory://", embedder="none") as memory:
        for user in ("amy", "bob", None):
            for number in range(3):
                chat = memory.conversation(f"{user}-{number}", user_id=user, agent=f"agent-{number}")
                for turn in range(7):
                    steps = [{"tool": "look", "input": {}, "result": "grey harbour"}] if turn == 3 else []
                    await chat.record(
                        f"turn {turn} of {user}", f"Answer {turn}", id=f"{user}-{number}-{turn}", steps=steps
                    )
        yield memory


async def everything(memory, query, **more):
    found, after = [], None
    while True:
        slice_ = await search_turns(memory, query, after=after, **more)
        found += [one.turn.id for one in slice_.turns]
        after = slice_.next
        if after is None:
            return found


@pytest.mark.parametrize("limit", [1, 4, 7, 100])
@pytest.mark.parametrize("most", [5, 20, 20_000])
async def test_every_match_comes_once(memory, monkeypatch, limit, most):
    """However small the slices are, and however little is looked at in each."""
    monkeypatch.setattr(turn_search, "MOST_TURNS", most)
    found = await everything(memory, TurnQuery(), limit=limit)
    assert 63 == len(found) == len(set(found))
    assert 21 == len(await everything(memory, TurnQuery("HARBOUR"), limit=limit)) + 12
    assert {f"amy-{n}-5" for n in range(3)} == set(
        await everything(memory, TurnQuery("turn 5 amy"), limit=limit)
    )


async def test_filters(memory):
    """By user, conversation, agent and tool; never another tenant's."""
    assert 21 == len(await everything(memory, TurnQuery(user_id="amy")))
    assert 7 == len(await everything(memory, TurnQuery(conversation_id="amy-1")))
    assert 7 == len(await everything(memory, TurnQuery(user_id="bob", agent="agent-2")))
    assert 9 == len(await everything(memory, TurnQuery(tool="look")))
    assert [] == await everything(memory, TurnQuery(), tenant="elsewhere")


async def test_a_search_is_bounded(memory):
    """And says how."""
    for words in ("a " * 9, "x" * 101):
        with pytest.raises(InvalidArgumentError, match="rarest"):
            await search_turns(memory, TurnQuery(words))
    with pytest.raises(InvalidArgumentError, match="next"):
        await search_turns(memory, TurnQuery(), after="nonsense")


async def test_turns_by_their_ids(memory):
    """Of any conversation that may be seen."""
    ids = ["amy-1-3", "bob-0-0", "nothing"]
    assert set(ids[:2]) == set(await turns_by_id(memory, ids, user_id=None, tenant=None))
    assert {"amy-1-3"} == set(await turns_by_id(memory, ids, user_id="amy", tenant=None))
