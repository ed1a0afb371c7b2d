"""Whatever was lived through comes out of another database as it went in.

Between SQLite and PostgreSQL: tests/acceptance/test_transfer_whole.py.
"""

import anyio
from hypothesis import HealthCheck, given, settings

from pagefile import Memory
from pagefile.engine.verification import verify

from .plays import ACTIONS, SETTINGS, Play


async def moved(there, here, folder, actions):
    """Play, take it elsewhere, and ask there for every window, every change and every line."""
    first, second = folder / "first.jsonl", folder / "second.jsonl"
    async with Memory.open(there, settings=SETTINGS, embedder="none") as memory:
        play = Play(memory)
        await play.run(actions)
        await memory.export(first)
        revisions = await memory.fact_revisions("u")
        held = [await memory.facts("u", as_of=one.at) for one in revisions]
        explained = {name: await play.chat.explain(name) for name in play.windows}
    async with Memory.open(here, settings=SETTINGS, embedder="none") as memory:
        await memory.import_(first)
        await memory.import_(first)
        await memory.export(second)
        assert sorted(second.read_text().split("\n")) == sorted(first.read_text().split("\n"))
        chat = memory.conversation("c", user_id="u")
        for name, window in play.windows.items():
            again = await chat.explain(name)
            assert (again.exact, again.messages) == (True, window.messages)
            assert again == explained[name]
        assert revisions == await memory.fact_revisions("u")
        assert held == [await memory.facts("u", as_of=one.at) for one in revisions]
        if revisions:
            undone = await memory.undo("u")
            assert undone.number > revisions[-1].number
            assert undone.before == revisions[-1].after
        assert (await verify(memory.engine, full=True)).findings == ()


@given(actions=ACTIONS)
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_an_export_is_the_same_after_a_move(tmp_path_factory, actions):
    """The same lines, windows byte for byte, facts as of every change, and verify finds nothing."""
    folder = tmp_path_factory.mktemp("moved")
    anyio.run(lambda: moved("memory://", f"sqlite:///{folder}/here.db", folder, actions))
