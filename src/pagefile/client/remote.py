"""`Client`: a memory hosted by a service."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import httpx

from pagefile import verbs
from pagefile.client.conversation import ClientConversation
from pagefile.client.events import lines_in
from pagefile.client.transport import Caller
from pagefile.client.verbs import Remote, as_it_is, from_number, like, remote
from pagefile.engine import Memory
from pagefile.engine.arguments import check_erased, check_purged
from pagefile.engine.drafts import checked_labels
from pagefile.engine.fact_import import read_memory
from pagefile.engine.transfer import FORMAT, written_whole
from pagefile.errors import StoreError, TransferError
from pagefile.records import DEFAULT_TENANT, JsonObject, JsonValue, Scope, checked_id
from pagefile.wire.responses import ImportOut

_CHUNK_BYTES = 1_000_000


class Client(Remote):
    """A memory hosted by a service, with the verbs and records of `Memory`.

    Use it as `async with Client("http://127.0.0.1:8780") as memory`. Failures raise the same errors as `Memory`; a service that
    cannot be reached raises `StoreUnavailableError`.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        retries: int = 2,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Opens nothing yet.

        Args:
            api_key: as created by `pagefile keys`.
            timeout_s: how long to wait for a connection, and then for each part of a response.
            retries: how often to retry when the connection breaks or the service asks to wait. Every change still takes effect
                only once.
            transport: the httpx transport, for proxies, custom certificates and tests.
        """
        super().__init__(Caller(url, api_key, timeout_s=timeout_s, retries=retries, transport=transport))

    async def __aenter__(self) -> Self:
        self._caller.check_open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. Safe to call twice."""
        await self._caller.close()

    def conversation(
        self,
        id: str,  # noqa: A002 - the word users write
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        agent: str | None = None,
        project: str | None = None,
        language: str | None = None,
        timezone: str | None = None,
    ) -> ClientConversation:
        """A handle on a conversation; nothing is sent until it is used."""
        self._caller.check_open()
        named = DEFAULT_TENANT if tenant is None else tenant
        scope = Scope(named, user_id, checked_id(id, "conversation id"))
        labels = checked_labels(project=project, language=language, timezone=timezone)
        return ClientConversation(self._caller, scope, agent=agent, labels=labels, tenant=tenant)

    conversations = remote(verbs.CONVERSATIONS)
    turns = remote(verbs.TURNS)
    recall = remote(verbs.RECALL)

    # -- facts ----------------------------------------------------------------------------------------------------

    remember = remote(verbs.REMEMBER)
    retract = remote(verbs.RETRACT)
    undo = remote(verbs.UNDO)

    facts = remote(verbs.FACTS, whole=True)
    fact_revisions = remote(verbs.FACT_REVISIONS, whole=True, after=from_number(0, "after"))

    @like(Memory.import_facts)
    async def import_facts(
        self, source: str | PathLike[str] | Mapping[str, JsonValue], **whose: Any
    ) -> dict[str, int]:
        data = source if isinstance(source, Mapping) else await read_memory(source)
        return await self._import_facts(dict(data), **whose)

    _import_facts = remote(verbs.IMPORT_FACTS)

    # -- recorded calls and pages ---------------------------------------------------------------------------------

    call = remote(verbs.CALL)
    pages = remote(verbs.PAGES)
    page = remote(verbs.PAGE)
    peek = remote(verbs.PEEK, query=as_it_is, limit=as_it_is)
    search_tool_history = remote(verbs.SEARCH)
    purge = remote(verbs.PURGE, first=lambda _, given: check_purged(**given))

    # -- the whole memory -----------------------------------------------------------------------------------------

    forget = remote(verbs.FORGET, first=lambda _, given: check_erased(**given))

    @like(Memory.settle)
    async def settle(self) -> None:
        while not (await self._asked(verbs.SETTLE, {})).settled:
            pass

    @like(Memory.export)
    async def export(self, path: str | PathLike[str], **whose: str | None) -> dict[str, int]:
        params = _ids(**whose)
        counts: Counter[str] = Counter()
        async with (
            written_whole(Path(path)) as file,
            self._caller.stream("GET", "/v1/export", params=params) as answer,
        ):
            async for line in lines_in(answer.aiter_bytes()):
                kind = _kind(line)
                counts[kind] += kind != FORMAT
                await file.write(line + "\n")
        return dict(+counts)

    @like(Memory.import_)
    async def import_(self, path: str | PathLike[str], *, tenant: str | None = None) -> dict[str, int]:
        async def content() -> AsyncIterator[bytes]:
            async with await anyio.open_file(path, "rb") as file:
                while chunk := await file.read(_CHUNK_BYTES):
                    yield chunk

        try:
            done = await self._caller.upload("/v1/import", _ids(tenant=tenant), content, ImportOut)
        except OSError as error:
            raise TransferError(f"Cannot read {str(path)!r}: {error}.") from error
        return done.counts

    async def describe(self) -> JsonObject:
        """What the service runs on: its version, the store, the tokenizer, and how often each tier failed."""
        return (await self._asked(verbs.DESCRIBE, {})).model_dump()


def _ids(**named: str | None) -> dict[str, object]:
    """Checked; what is not named is left out, for the service to take it from the key."""
    return {name: checked_id(value, name) for name, value in named.items() if value is not None}


def _kind(line: str) -> str:
    """The kind of an export's line."""
    try:
        return str(json.loads(line)["type"])
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise StoreError(
            "The service sent a line that is not one of an export: is it Pagefile, and as new as this client?"
        ) from error
