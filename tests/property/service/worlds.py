"""Keys, tenants and what each may see."""

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx
from fastapi import FastAPI
from hypothesis import strategies as st

from pagefile import Memory, Settings
from pagefile.engine.export import export_lines
from pagefile.records import Scope
from pagefile.service.app import create_app
from pagefile.settings import ArchiveSettings, EmbedderSettings, ServiceSettings
from pagefile.stores.key_secrets import new_key

TENANTS, USERS = ("红", "blue"), ("ada", "bob", None)
#: Named in requests too, though nobody of that name is there.
GHOST = "ghost"
SETTINGS = Settings(
    url="memory://",
    archive=ArchiveSettings(threshold=200, page_from=100),
    embedder=EmbedderSettings(name="none"),
    checkpoints="manual",
    service=ServiceSettings(require_keys=True),
)


def mark(scope: Scope) -> str:
    """Stands in everything that belongs to a scope, and nowhere else."""
    return f"秘{scope.tenant}秘{scope.user or '-'}秘"


@dataclass(slots=True)
class World:
    """A service with something of everybody in it."""

    app: FastAPI
    client: httpx.AsyncClient
    conversations: list[str] = field(default_factory=list[str])
    ids: list[str] = field(default_factory=list[str])

    @property
    def memory(self) -> Memory:
        return self.app.state.memory

    async def furnish(self, scope: Scope) -> None:
        """Turns, a page, a checkpoint, a call, facts: all of them marked."""
        words = mark(scope)
        name = f"chat of {scope.user}"
        chat = self.memory.conversation(name, user_id=scope.user, tenant=scope.tenant)
        steps = [{"tool": "search", "input": {"q": words}, "result": f"{words} 高血压 " * 60}]
        first = await chat.record(f"{words} 高血压？", f"{words} 少盐。", steps=steps)
        opened = await chat.begin(f"{words} 高血压还有呢？")
        await chat.record(f"{words} 谢谢", words)
        made = await chat.checkpoint(f"{words} 摘要", recent_turns=1)
        await chat.context(f"{words} 高血压怎么办？")
        self.conversations.append(name)
        self.ids += [first.id, opened.id, made.id, first.steps[0].page or ""]
        if scope.user is not None:
            fact = await self.memory.remember(
                f"{words} 喜欢茶", user_id=scope.user, tenant=scope.tenant, category="preference"
            )
            self.ids.append(fact.id)

    async def lines(self, scope: Scope) -> list[str]:
        """Everything of a scope; of nobody's, the one conversation there is."""
        if scope.user is None:
            scope = Scope(scope.tenant, None, "chat of None")
        return [line async for _, line in export_lines(self.memory.engine, scope)]

    async def key(self, scope: Scope) -> dict[str, str]:
        """How to show a new key of a scope."""
        key, text = new_key("k", scope, created=datetime.now(UTC))
        await self.memory.engine.store.keys.add(key)
        return {"Authorization": f"Bearer {text}"}


@asynccontextmanager
async def a_world():
    app = create_app(SETTINGS)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8780") as client,
    ):
        world = World(app, client)
        for tenant in TENANTS:
            for user in USERS:
                await world.furnish(Scope(tenant, user))
        await world.memory.engine.calls.flush()
        for tenant in TENANTS:
            world.ids += [one.id for one in await world.memory.engine.store.calls.list(Scope(tenant))]
        yield world


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody writes into a request, besides its example."""

    tenant: str | None
    user: str | None
    conversation: int
    thing: int
    #: Whose export is sent in, where one is.
    upload: int = 0


wishes = st.builds(
    Wish,
    st.sampled_from((None, *TENANTS, GHOST)),
    st.sampled_from((None, "ada", "bob", GHOST)),
    st.integers(0, 7),
    st.integers(0, 63),
    st.integers(0, len(TENANTS) * len(USERS) - 1),
)
holders = st.builds(Scope, st.sampled_from(TENANTS), st.sampled_from(USERS))
