"""`pagefile bench service` asks real servers, judges, and leaves nothing behind."""

import json
import socket

import pytest

from benchmarks import service
from benchmarks.report import Limit
from benchmarks.service_bare import BareQuestion, BareTurn, bare_app
from pagefile import Memory, Settings
from pagefile.cli.serve import _listening
from pagefile.settings import ServiceSettings
from pagefile.testing.fakes import FakeClock
from pagefile.text.tokens import open_counter


@pytest.mark.slow
def test_every_row_is_there(tmp_path, monkeypatch):
    """Records and windows for every number of clients, each beside the bare route, within one limit; the folder is empty again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(service, "CLIENTS", (1, 2))
    monkeypatch.setattr(service, "_QUICK", service._Effort(rounds=1, requests=4))
    monkeypatch.setattr(service, "BARE_LIMIT", Limit("at most", 1e6))
    report = service.run(quick=True)
    names = [row.name for row in report.rows]
    assert [
        f"{verb}, {who}, {what}"
        for verb in ("record", "context")
        for who in ("1 client", "2 clients")
        for what in ("p50", "a second")
    ] == names
    assert report.ok
    assert {True} == {row.ok for row in report.rows if row.name.endswith("p50")}
    assert all(row.value > 0 and row.ratio and row.ratio > 0 for row in report.rows)
    json.dumps(report.to_json())
    assert [] == list(tmp_path.iterdir())


@pytest.mark.anyio
async def test_the_bare_routes_do_the_same(tmp_path):
    """What the bare route stored is a turn that a memory reads, and what it reads are the messages of a window of the same day.

    Later windows also say when, which the bare route does not.
    """
    database = tmp_path / "bare.db"
    await service._filled(database, open_counter())
    app = bare_app(database)
    routes = {route.path: route.endpoint for route in app.routes if hasattr(route, "endpoint")}
    async with app.router.lifespan_context(app):
        said = BareTurn(conversation_id="write", user_id="bench", user="血压高怎么办？", assistant="少盐。")
        for _ in range(2):
            await routes["/turns"](said)
        read = await routes["/context"](
            BareQuestion(conversation_id="read-0", user_id="bench", query=service.QUESTION)
        )
    clock = FakeClock()
    async with Memory.open(f"sqlite:///{database}", settings=Settings(recall="never"), clock=clock) as memory:
        turns = await memory.conversation("write", user_id="bench").turns()
        assert [("血压高怎么办？", "少盐。", 1), ("血压高怎么办？", "少盐。", 2)] == [
            (turn.user, turn.assistant, turn.seq) for turn in turns
        ]
        chat = memory.conversation("read-0", user_id="bench")
        clock.set((await chat.turns())[-1].at)
        window = await chat.context(service.QUESTION)
        # Ours says the day, too.
        assert window.messages[0]["role"] == "system"
        assert window.messages[1:] == read["messages"]


def test_answers_do_not_wait_for_acknowledgements():
    """Whoever connects to the socket of `pagefile serve` gets head and body at once."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (
        _listening(ServiceSettings(port=port)) as listener,
        socket.create_connection(("127.0.0.1", port)),
    ):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
