"""`Client`: a memory that a service keeps."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread
import httpx

from pagefile.client.calling import Caller
from pagefile.client.conversation import ClientConversation
from pagefile.client.streaming import lines_in
from pagefile.engine import Memory
from pagefile.engine.asking import at_least, check_erased, moment
from pagefile.engine.drafts import checked_labels
from pagefile.engine.fact_import import read_memory
from pagefile.engine.transfer import FORMAT
from pagefile.errors import InvalidTurnError, StoreError, StoreUnavailableError, TransferError
from pagefile.records import (
    DEFAULT_TENANT,
    Call,
    ErasureReceipt,
    Fact,
    Head,
    Hit,
    JsonObject,
    JsonValue,
    Listing,
    Page,
    PageHit,
    Revision,
    Scope,
    Turn,
    checked_id,
    checked_text,
)
from pagefile.wire import responses
from pagefile.wire.archive import PageHitOut, PageOut, PurgeOut
from pagefile.wire.responses import (
    CallOut,
    ConversationOut,
    ErasureOut,
    FactOut,
    HealthOut,
    HitOut,
    ImportedFactsOut,
    LoadOut,
    RevisionOut,
    SettledOut,
    TurnOut,
)
from pagefile.wire.transfer import ImportOut

_CHUNK_BYTES = 1_000_000
#: As many as the service gives at once.
_MOST = 1000


class Client:
    """A memory that a service keeps, with the verbs and the records of `Memory`.

    Use it as `async with Client("http://127.0.0.1:8780") as memory`. What breaks is raised as the same errors; a service that
    cannot be reached is a `StoreUnavailableError`.
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
            api_key: as `pagefile keys` made it.
            timeout_s: how long the service may take to connect, and then to go on.
            retries: how often something is sent again when the connection broke or the service asks for patience. Every change is
                made once all the same.
            transport: how requests travel, for proxies, certificates of your own and tests.
        """
        self._caller = Caller(url, api_key, timeout_s=timeout_s, retries=retries, transport=transport)

    async def __aenter__(self) -> Self:
        self._caller.check_open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections; twice is the same as once."""
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

    async def conversations(
        self,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Listing[Head]:
        params = {**_whose(user_id, tenant), "limit": at_least(1, limit, "limit"), "after": after}
        found = await self._caller.get("/v1/conversations", params, responses.Page[ConversationOut])
        return Listing([head.record() for head in found.items], found.next)

    async def turns(
        self,
        *,
        user_id: str | None = None,
        conversation_id: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Listing[Turn]:
        params = {
            **_whose(user_id, tenant),
            "conversation_id": conversation_id,
            "limit": at_least(1, limit, "limit"),
            "after": after,
        }
        found = await self._caller.get("/v1/turns/done", params, responses.Page[TurnOut])
        return Listing([turn.record() for turn in found.items], found.next)

    async def recall(
        self,
        query: str,
        *,
        user_id: str,
        tenant: str | None = None,
        limit: int = 10,
        at: datetime | None = None,
    ) -> list[Hit]:
        body = {
            **_whose(checked_id(user_id, "user_id"), tenant),
            "query": checked_text(query, "query"),
            "limit": at_least(1, limit, "limit"),
            "at": None if at is None else moment(at).isoformat(),
        }
        found = await self._caller.ask("/v1/recall", body, responses.Page[HitOut])
        return [hit.record() for hit in found.items]

    # -- facts ----------------------------------------------------------------------------------------------------

    async def remember(
        self,
        text: str,
        *,
        user_id: str,
        tenant: str | None = None,
        category: str | None = None,
        confidence: float | None = 1.0,
        source: str | None = None,
        attribute: str | None = None,
        subject: str | None = None,
        valid_from: datetime | None = None,
        project: str | None = None,
        agent: str | None = None,
    ) -> Fact:
        body = {
            **_whose(checked_id(user_id, "user_id"), tenant),
            "text": checked_text(text, "text"),
            "category": category,
            "confidence": confidence,
            "source": source,
            "attribute": attribute,
            "subject": subject,
            "valid_from": None if valid_from is None else moment(valid_from).isoformat(),
            "project": project,
            "agent": agent,
        }
        return (await self._caller.change("/v1/facts", body, FactOut)).record()

    async def facts(
        self,
        user_id: str,
        tenant: str | None = None,
        *,
        as_of: datetime | None = None,
        history: bool = False,
    ) -> list[Fact]:
        params = {
            **_whose(checked_id(user_id, "user_id"), tenant),
            "as_of": None if as_of is None else moment(as_of).isoformat(),
            "history": history,
        }
        held: list[Fact] = []
        after: str | None = None
        while True:
            page = {**params, "limit": _MOST, "after": after}
            found = await self._caller.get("/v1/facts", page, responses.Page[FactOut])
            held += [fact.record() for fact in found.items]
            after = found.next
            if after is None:
                return held

    async def retract(self, fact_id: str, *, user_id: str | None = None, tenant: str | None = None) -> Fact:
        body = {**_whose(user_id, tenant), "fact_id": checked_id(fact_id, "fact id")}
        return (await self._caller.change("/v1/facts/retract", body, FactOut)).record()

    async def fact_revisions(
        self, user_id: str, tenant: str | None = None, *, after: int = 0
    ) -> list[Revision]:
        whose = _whose(checked_id(user_id, "user_id"), tenant)
        made: list[Revision] = []
        start: str | int | None = at_least(0, after, "after")
        while start is not None:
            params = {**whose, "limit": _MOST, "after": start}
            found = await self._caller.get("/v1/facts/revisions", params, responses.Page[RevisionOut])
            made += [revision.record() for revision in found.items]
            start = found.next
        return made

    async def undo(self, user_id: str, revision: int | None = None, *, tenant: str | None = None) -> Revision:
        number = None if revision is None else at_least(1, revision, "revision")
        body = {**_whose(checked_id(user_id, "user_id"), tenant), "revision": number}
        return (await self._caller.change("/v1/facts/undo", body, RevisionOut)).record()

    async def import_facts(
        self,
        source: str | PathLike[str] | Mapping[str, JsonValue],
        *,
        user_id: str,
        tenant: str | None = None,
    ) -> dict[str, int]:
        data = source if isinstance(source, Mapping) else await read_memory(source)
        body = {**_whose(checked_id(user_id, "user_id"), tenant), "memory": dict(data)}
        return (await self._caller.change("/v1/facts/import", body, ImportedFactsOut)).model_dump()

    # -- recorded calls and pages ---------------------------------------------------------------------------------

    async def call(self, call_id: str, *, user_id: str | None = None, tenant: str | None = None) -> Call:
        params = {**_whose(user_id, tenant), "call_id": checked_id(call_id, "call id")}
        return (await self._caller.get("/v1/calls/call", params, CallOut)).record()

    async def pages(
        self,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Listing[Page]:
        params = {**_whose(user_id, tenant), "limit": at_least(1, limit, "limit"), "after": after}
        found = await self._caller.get("/v1/pages", params, responses.Page[PageOut])
        return Listing([page.record() for page in found.items], found.next)

    async def page(self, uuid: str, *, user_id: str | None = None, tenant: str | None = None) -> Page:
        params = {**_whose(user_id, tenant), "uuid": uuid}
        return (await self._caller.get("/v1/pages/page", params, PageOut)).record()

    async def peek(
        self,
        uuid: str,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        query: str | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> str:
        params = {
            **_whose(user_id, tenant),
            "uuid": uuid,
            "query": query,
            "offset": offset,
            "limit": limit,
        }
        return (await self._caller.get("/v1/pages/text", params, LoadOut)).text

    async def search_tool_history(
        self, query: str, *, user_id: str | None, tenant: str | None = None, limit: int = 5
    ) -> list[PageHit]:
        body = {
            **_whose(user_id, tenant),
            "query": checked_text(query, "query"),
            "limit": at_least(1, limit, "limit"),
        }
        # Nobody is said, too: a request that forgets whose pages it means is refused.
        found = await self._caller.ask("/v1/pages/search", body, responses.Page[PageHitOut], nulls=True)
        return [hit.record() for hit in found.items]

    async def purge(
        self,
        *,
        user_id: str | None = None,
        conversation_id: str | None = None,
        tenant: str | None = None,
        uuids: Sequence[str] | None = None,
        older_than: timedelta | None = None,
        max_bytes: int | None = None,
    ) -> list[Page]:
        if uuids is None and older_than is None and max_bytes is None:
            raise InvalidTurnError("purge() removes what you name: give uuids, older_than or max_bytes.")
        if isinstance(uuids, str):
            raise InvalidTurnError("uuids must be a list, not one text: write uuids=[uuid].")
        body = {
            **_whose(user_id, tenant),
            "conversation_id": conversation_id,
            "uuids": None if uuids is None else list(uuids),
            "older_than_s": None if older_than is None else older_than.total_seconds(),
            "max_bytes": max_bytes,
        }
        purged = await self._caller.change("/v1/pages/purge", body, PurgeOut)
        return [page.record() for page in purged.items]

    # -- the whole ------------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        while not (await self._caller.ask("/v1/settle", {}, SettledOut)).settled:
            pass

    async def forget(
        self,
        *,
        user_id: str | None = None,
        conversation_id: str | None = None,
        tenant: str | None = None,
        turn_id: str | None = None,
        page: str | None = None,
    ) -> ErasureReceipt:
        uuid = check_erased(user_id, conversation_id, tenant, turn_id=turn_id, page=page)
        named: JsonObject = {"conversation_id": conversation_id, "turn_id": turn_id, "page": uuid}
        body = {**_whose(user_id, tenant), **named}
        return (await self._caller.change("/v1/forget", body, ErasureOut)).record()

    async def export(
        self,
        path: str | PathLike[str],
        *,
        user_id: str | None = None,
        conversation_id: str | None = None,
        tenant: str | None = None,
    ) -> dict[str, int]:
        params = {**_whose(user_id, tenant), "conversation_id": conversation_id}
        counts: dict[str, int] = {}
        async with (
            _written_whole(Path(path)) as file,
            self._caller.stream("GET", "/v1/export", params=params) as answer,
        ):
            async for line in lines_in(answer.aiter_bytes()):
                kind = _kind(line)
                if kind != FORMAT:
                    counts[kind] = counts.get(kind, 0) + 1
                await file.write(line + "\n")
        return counts

    async def import_(self, path: str | PathLike[str], *, tenant: str | None = None) -> dict[str, int]:
        async def content() -> AsyncIterator[bytes]:
            async with await anyio.open_file(path, "rb") as file:
                while chunk := await file.read(_CHUNK_BYTES):
                    yield chunk

        try:
            done = await self._caller.upload("/v1/import", _whose(None, tenant), content, ImportOut)
        except OSError as error:
            raise TransferError(f"Cannot read {str(path)!r}: {error}.") from error
        return done.counts

    async def describe(self) -> JsonObject:
        """What the service runs on: its version, the store, the tokenizer, and how often each tier failed."""
        return (await self._caller.get("/healthz", {}, HealthOut)).model_dump()


@asynccontextmanager
async def _written_whole(target: Path) -> AsyncGenerator[anyio.AsyncFile[str]]:
    """A file beside the target that takes its place when all of it is there: a broken export leaves no half file."""
    partial = target.with_name(target.name + ".partial")
    try:
        async with await anyio.open_file(partial, "w", encoding="utf-8", newline="\n") as file:
            yield file
        await anyio.to_thread.run_sync(partial.replace, target)
    except OSError as error:
        raise StoreUnavailableError(f"Cannot write the export to {str(target)!r}: {error}.") from error
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.Path(partial).unlink(missing_ok=True)


def _whose(user_id: str | None, tenant: str | None) -> dict[str, object]:
    """What is not named is not sent: with a key, the service knows whose it is."""
    return {
        "user_id": None if user_id is None else checked_id(user_id, "user_id"),
        "tenant": None if tenant is None else checked_id(tenant, "tenant"),
    }


for _verb, _function in vars(Client).items():
    if callable(_function) and not _verb.startswith("_") and not _function.__doc__:
        _function.__doc__ = getattr(Memory, _verb).__doc__


def _kind(line: str) -> str:
    """What a line of an export is."""
    try:
        return str(json.loads(line)["type"])
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise StoreError(
            "The service sent a line that is not one of an export: is it Pagefile, and as new as this client?"
        ) from error
