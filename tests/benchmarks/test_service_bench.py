"""`pagefile bench service` asks real servers, judges, and leaves nothing behind."""

import json
import socket

import pytest

from benchmarks import service
from benchmarks.report import Limit
from benchmarks.service_bare import BareTurn, bare_app
from pagefile import Memory, Settings
from pagefile.cli.serve import _listening
from pagefile.settings import EmbedderSettings, ServiceSettings
from pagefile.text.tokens import open_counter


@pytest.mark.slow
@pytest.mark.waits
def test_every_row_is_there(tmp_path, monkeypatch):
    """Turns and windows for every number of clients, each beside what it is compared with; the folder is empty again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(service, "CLIENTS", (1, 2))
    monkeypatch.setattr(service, "WORKERS", (1,))
    monkeypatch.setattr(service, "_QUICK", service._Effort(rounds=1, seconds=0.5, held=2))
    monkeypatch.setattr(service, "missing", lambda: ["asyncpg"])
    for limit in ("P50_LIMIT", "P99_LIMIT", "SPREAD_LIMIT"):
        monkeypatch.setattr(service, limit, Limit("at most", 1e6))
    report = service.run(quick=True)
    name = "SQLite, 1 process"
    assert [
        f"{name}: turns with vectors a second",
        *[
            f"{name}, {who}: {what}"
            for who in ("1 client", "2 clients")
            for what in (
                "record p50",
                "record p99",
                "window, a user's first",
                "window p99",
                "window p99 beyond context()",
            )
        ],
        f"{name}: vectors behind at 30 turns/s",
    ] == [row.name for row in report.rows]
    assert {True} == {row.ok for row in report.rows if row.name.endswith(("record p50", "record p99"))}
    json.dumps(report.to_json())
    assert [] == list(tmp_path.iterdir())


@pytest.mark.anyio
async def test_the_bare_route_does_the_same(tmp_path):
    """What the bare route stored is a turn that a memory reads."""
    url = f"sqlite:///{tmp_path}/bare.db"
    await service._filled(url, open_counter(), 1)
    app = bare_app(url)
    (route,) = [route.endpoint for route in app.routes if getattr(route, "path", "") == "/turns"]
    async with app.router.lifespan_context(app):
        said = BareTurn(conversation_id="write", user_id="bench", user="血压高怎么办？", assistant="少盐。")
        for _ in range(2):
            await route(said)
    plain = Settings(embedder=EmbedderSettings(name="none"))
    async with Memory.open(url, settings=plain) as memory:
        turns = await memory.conversation("write", user_id="bench").turns()
        assert [("血压高怎么办？", "少盐。", 1), ("血压高怎么办？", "少盐。", 2)] == [
            (turn.user, turn.assistant, turn.seq) for turn in turns
        ]


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
