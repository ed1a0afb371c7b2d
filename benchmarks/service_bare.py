"""The routes that the service is measured beside: FastAPI, the store's own statements, and nothing else.

No text is checked or counted, nothing is budgeted, no receipt is written; what is stored is as durable, what is read are the same
rows.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from benchmarks.bare import BareLog, values_of
from benchmarks.corpus import url_of
from pagefile.records import Scope, Turn
from pagefile.service.workers import serve_one
from pagefile.settings import FactSettings, Settings
from pagefile.stores.sqlite.database import Place, open_connections
from pagefile.stores.sqlite.player import sql

#: As many rows as fill our own window.
_BUDGET_TOKENS = 16_000
#: The statement `turns_back` reads some at a time: here all that are live, until there are enough.
_ALL_TURNS = {"after_seq": 0, "before_seq": 2**53, "limit": 2**53}
#: Where the statement `turns_back` has both sides of a turn and its tokens.
_USER, _ASSISTANT, _TOKENS = 4, 5, 11


class BareTurn(BaseModel):
    """What is written."""

    conversation_id: str
    user_id: str
    user: str
    assistant: str


class BareQuestion(BaseModel):
    """What is asked."""

    conversation_id: str
    user_id: str
    query: str


def bare_app(database: Path) -> FastAPI:
    """Two routes on a database of our schema."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncGenerator[None]:
        yield
        log.close()
        thread.shutdown()
        reader.close()

    app = FastAPI(lifespan=lifespan, openapi_url=None)
    log = BareLog(database, "full")
    _, reader = open_connections(Place(database), readers=1)
    thread = ThreadPoolExecutor(max_workers=1)

    def read(values: dict[str, Any]) -> list[dict[str, str]]:
        reader.execute(sql("view"), values).fetchone()
        found: list[tuple[Any, ...]] = []
        tokens = 0
        with closing(reader.execute(sql("turns_back"), {**values, **_ALL_TURNS})) as rows:
            for row in rows:
                tokens += row[_TOKENS]
                if tokens > _BUDGET_TOKENS:
                    break
                found.append(row)
        return [
            {"role": role, "content": row[column]}
            for row in reversed(found)
            for role, column in (("user", _USER), ("assistant", _ASSISTANT))
        ]

    @app.post("/turns", status_code=201)
    async def write(body: BareTurn) -> dict[str, Any]:
        values = values_of(_turn(body))
        await log.write(values)
        return values

    @app.post("/context")
    async def context(body: BareQuestion) -> dict[str, Any]:
        values = {
            "tenant": "default",
            "user": body.user_id,
            "conversation": body.conversation_id,
            "open_turn": None,
        }
        messages = await asyncio.get_running_loop().run_in_executor(thread, read, values)
        return {"messages": [*messages, {"role": "user", "content": body.query}]}

    return app


def serve(which: str, database: Path, listener: socket.socket) -> None:
    """Run one of the two until the process is ended: ours as `pagefile serve` does, the other in the same way."""
    if which == "ours":
        serve_one(settings_of(database), listener)
    else:
        config = uvicorn.Config(
            bare_app(database), log_level="warning", access_log=False, server_header=False
        )
        uvicorn.Server(config).run(sockets=[listener])


def settings_of(database: Path) -> Settings:
    """The service as it is measured: neither past turns nor facts are looked up, as the bare route looks up none."""
    return Settings(
        url=url_of(database), recall="never", indexing="manual", facts=FactSettings(enabled=False)
    )


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
