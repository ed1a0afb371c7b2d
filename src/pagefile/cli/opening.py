"""Opens the memory that a command names."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote

import anyio

from pagefile.cli.options import Place
from pagefile.engine import Conversation, Memory
from pagefile.engine.owning import looked_up
from pagefile.errors import NotFoundError
from pagefile.settings import Settings
from pagefile.settings.sources import DEFAULT, Loaded, load

T = TypeVar("T")

#: How long a short-lived command waits for the embedding of a question: a slow answer is better than an incomplete one.
PATIENCE_S = 30.0


def loaded(place: Place, overrides: Mapping[str, object] | None = None, *, patient: bool = True) -> Loaded:
    """The effective settings.

    `patient` commands are short-lived: they wait for a slow embedder, unless the settings give a timeout.
    """
    said = {"url": None if place.db is None else sqlite_url(place.db), **(overrides or {})}
    found = load(file=place.config, overrides=said)
    if not patient or found.origins["embedder.patience_s"] != DEFAULT:
        return found
    embedder = replace(found.settings.embedder, patience_s=PATIENCE_S)
    return replace(found, settings=replace(found.settings, embedder=embedder))


def sqlite_url(place: str) -> str:
    """A URL unchanged, or a bare path as an SQLite URL."""
    return place if "://" in place else f"sqlite:///{quote(place)}"


def database_file(url: str) -> Path | None:
    """The file a URL names; None if it names none."""
    prefix, path = url[:10], url[10:]
    return Path(unquote(path)) if prefix == "sqlite:///" and path not in {"", ":memory:"} else None


def existing_file(url: str, *, otherwise: str = "") -> Path | None:
    """The file a URL names; None if it names none. A missing file is an error and not created: it may be a typo."""
    file = database_file(url)
    if file is not None and not file.exists():
        raise NotFoundError(f"There is no database at {str(file)!r}: name it with --db{otherwise}.")
    return file


def run(settings: Settings, work: Callable[[Memory], Awaitable[T]], *, must_exist: bool = True) -> T:
    """Open the memory, do the work, close it. Reading never creates a database."""
    if must_exist:
        existing_file(settings.url, otherwise=", or record something first")
    return anyio.run(_worked, settings, work)


async def _worked(settings: Settings, work: Callable[[Memory], Awaitable[T]]) -> T:
    async with Memory.open(settings=settings) as memory:
        return await work(memory)


async def whose(memory: Memory, conversation: str, user_id: str | None, tenant: str | None) -> Conversation:
    """A conversation as its owner sees it, unless another user is named."""
    named = memory.conversation(conversation, user_id=user_id, tenant=tenant).scope
    owned = await looked_up(memory, named)
    return memory.conversation(conversation, user_id=owned.user, tenant=tenant)


async def existing(
    memory: Memory, conversation: str, user_id: str | None, tenant: str | None
) -> Conversation:
    """Like `whose`, for a conversation that must exist."""
    chat = await whose(memory, conversation, user_id, tenant)
    if not await chat.turns(limit=1, newest=True):
        raise NotFoundError(
            f"There is no conversation {conversation!r} here: `pagefile show` lists what there is."
        )
    return chat
