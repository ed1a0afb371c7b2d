"""Slices of a log and of many logs put together again: nothing is missing, nothing is there twice, and no more is read than needed."""

from contextlib import suppress

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile import Checkpoint, InvalidArgumentError, Memory, Reset, Settings, Turn
from pagefile.settings import EmbedderSettings

KINDS = {"turn": Turn, "checkpoint": Checkpoint, "reset": Reset}
SETTINGS = Settings(checkpoints="manual", embedder=EmbedderSettings(name="none"))
NAMES = ("a", "a b", "乙", "é")
WRITES = st.lists(
    st.tuples(
        st.sampled_from(NAMES), st.sampled_from(["record", "record", "abort", "open", "checkpoint", "reset"])
    ),
    max_size=25,
)


def owner(name: str) -> str | None:
    """Whose a conversation is; the last one is nobody's."""
    return None if name == NAMES[-1] else "u"


async def write(memory: Memory, writes: list[tuple[str, str]]) -> None:
    for number, (name, verb) in enumerate(writes):
        chat = memory.conversation(name, user_id=owner(name))
        match verb:
            case "record":
                await chat.record(f"问 {number}", "答")
            case "open":
                await chat.begin(f"问 {number}")
            case "abort":
                await chat.abort(await chat.begin(f"问 {number}"))
            case "checkpoint":
                # Nothing may have been said since the last one, or since the reset.
                with suppress(InvalidArgumentError):
                    await chat.checkpoint(f"摘要 {number}", recent_turns=0)
            case "reset":
                await chat.reset()


async def read(verb, start, **asked):
    """All slices, one after the other."""
    found, after = [], start
    while True:
        part = await verb(after=after, **asked)
        found += part
        if part.next is None:
            return found
        after = part.next


async def checked(writes: list[tuple[str, str]], limit: int) -> None:
    async with Memory.open("memory://", settings=SETTINGS) as memory:
        await write(memory, writes)
        reader, asked = memory.engine.store.reader, []
        entries = reader.entries

        async def watched(query):
            asked.append(query)
            return await entries(query)

        reader.entries = watched
        done = {name: [] for name in NAMES}
        for name in NAMES:
            chat = memory.conversation(name, user_id=owner(name))
            whole = list(await chat.log(limit=1000))
            ended = [one for one in whole if one.seq is not None]
            assert list(range(1, len(ended) + 1)) == [one.seq for one in ended]
            done[name] = [one for one in whole if isinstance(one, Turn) and one.counts]
            # Open turns have no place to go on from: a slice that ends with them is the last.
            assert ended == [one for one in await read(chat.log, 0, limit=limit) if one.seq is not None]
            assert whole[-limit:] == await chat.log(limit=limit, newest=True)
            for kind, of in KINDS.items():
                mine = [one for one in ended if isinstance(one, of)]
                asked.clear()
                found = await read(chat.log, 0, limit=limit, kind=kind)
                assert mine == [one for one in found if one.seq is not None]
                # One more would be looked for to the end of the log.
                assert {limit} == {query.limit for query in asked}
        everybody = [turn for name in sorted(NAMES) for turn in done[name]]
        assert everybody == await read(memory.turns, None, limit=limit)
        mine = [turn for turn in everybody if turn.scope.user == "u"]
        assert mine == await read(memory.turns, None, limit=limit, user_id="u")


@settings(max_examples=30, deadline=None)
@given(WRITES, st.integers(1, 6))
def test_slices_make_the_whole(writes: list[tuple[str, str]], limit: int):
    """Of one conversation by kind and altogether, of a user, and of a tenant."""
    anyio.run(checked, writes, limit)
