"""The route that the service is measured beside: FastAPI, the store's own statements, and nothing else.

No text is checked or counted, nothing is indexed, no window is made; what is stored is as durable.
"""

import multiprocessing
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from benchmarks.bare import BareLog, values_of
from pagefile.ports import Store, TurnDraft
from pagefile.records import Scope, Turn
from pagefile.stores import open_store


class BareTurn(BaseModel):
    """What is written."""

    conversation_id: str
    user_id: str
    user: str
    assistant: str


class _Log(Protocol):
    async def write(self, turn: Turn) -> None: ...

    async def close(self) -> None: ...


class _Sqlite:
    def __init__(self, database: Path) -> None:
        self._log = BareLog(database, "full")

    async def write(self, turn: Turn) -> None:
        await self._log.write(values_of(turn))

    async def close(self) -> None:
        self._log.close()


class _Postgres:
    """The store's one statement for a turn, through the store's own pool."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def write(self, turn: Turn) -> None:
        await self._store.log.append(
            TurnDraft(turn.scope, turn.id, "done", turn.user, turn.assistant, (), turn.at, 0, 0, 0, "none")
        )

    async def close(self) -> None:
        await self._store.close()


def bare_app(url: str) -> FastAPI:
    """One route on a database of our schema."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        on_sqlite = url.startswith("sqlite:///")
        log: _Log = (
            _Sqlite(Path(url.removeprefix("sqlite:///"))) if on_sqlite else _Postgres(await open_store(url))
        )
        app.state.log = log
        yield
        await log.close()

    app = FastAPI(lifespan=lifespan, openapi_url=None)

    @app.post("/turns", status_code=201)
    async def write(body: BareTurn) -> dict[str, Any]:
        turn = _turn(body)
        await app.state.log.write(turn)
        return {"id": turn.id, **body.model_dump()}

    return app


def serve(url: str, workers: int, listener: socket.socket) -> None:
    """Answer with this many processes until this one is ended."""
    context = multiprocessing.get_context("fork")
    more = [context.Process(target=_serve, args=(url, listener), daemon=True) for _ in range(workers - 1)]
    for process in more:
        process.start()
    try:
        _serve(url, listener)
    finally:
        for process in more:
            process.terminate()


def _serve(url: str, listener: socket.socket) -> None:
    config = uvicorn.Config(bare_app(url), log_level="warning", access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[listener])


def _turn(body: BareTurn) -> Turn:
    now = datetime.now(UTC)
    return Turn(
        id=str(uuid4()),
        scope=Scope(user=body.user_id, conversation=body.conversation_id),
        seq=None,
        status="done",
        user=body.user,
        assistant=body.assistant,
        steps=(),
        at=now,
        created=now,
        user_tokens=0,
        assistant_tokens=0,
        tokens=0,
        counter="none",
    )
