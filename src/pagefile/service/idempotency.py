"""Idempotency keys: a request that is sent twice is carried out once.

A client that lost its connection cannot know whether its request succeeded. With an `Idempotency-Key` header it can retry and get
the same response. Claims and responses are in the database, so that all workers share them and they outlive a restart. An erasure removes
responses that may contain what it erases, in its own transaction: such a request is not carried out again either.

Requests that can be repeated need no claim. Turns and steps derive their ids from the key, so a repetition finds what is there.
"""

import hashlib
import json
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pagefile import records, verbs
from pagefile.engine import Memory
from pagefile.errors import PagefileError
from pagefile.gateway import identity
from pagefile.ports import Claim, KeptResponse, LeaseStore
from pagefile.records import DEFAULT_TENANT
from pagefile.service.auth import memory_in, principal_of
from pagefile.service.problems import answered, http_error, refused, to_problem
from pagefile.service.request_guard import MCP
from pagefile.service.streams import Streams
from pagefile.service.vendor_paths import is_vendors, may_have_foreign_keys
from pagefile.text.json_size import has_many_values
from pagefile.tiers.base import off_loop

logger = logging.getLogger("pagefile.service")

HEADER = "Idempotency-Key"
KEPT = timedelta(days=1)
#: A request counts as running for so long, and longer if its process says so: a model may answer for many minutes.
RUNNING = timedelta(minutes=1)
#: A longer response is not kept. The request is still carried out once.
MAX_KEPT_BYTES = 1_000_000
#: Larger requests are read in a thread, and only if the caller's key does not say whose they are.
_THREAD_FROM_BYTES = 100_000

#: Verbs that take their ids from the key.
_BY_ID = (verbs.RECORD, verbs.BEGIN, verbs.STEP)
_READS = (verb for verb in verbs.TABLE if verb.http_method == "POST" and not verb.changes)
#: Paths where repeating a request does no harm.
REPEATABLE = frozenset({"/v1/import", "/v1/chat/stream"} | {verb.path for verb in (*_BY_ID, *_READS)})
#: What says in headers whose request it is, and what memory has to do with it; on a provider's path its keys, too.
_CALLER = (identity.USER, identity.CONVERSATION, identity.MODE, "mcp-session-id")
_VENDORS_CALLER = ("authorization", "x-api-key")
_REPLAYED = (b"idempotency-replayed", b"true")


def made_id(key: str | None, *names: str | None) -> str | None:
    """A deterministic id for a key among these names: the same after a restart and in every worker. None without a key."""
    return None if key is None else str(uuid5(NAMESPACE_URL, json.dumps(["pagefile", key, *names])))


class IdempotencyMiddleware:
    """Claims requests by key, keeps their responses and replays them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key, memory = Headers(scope=scope).get(HEADER), memory_in(scope["app"])
        if key is None or memory is None or scope["method"] != "POST" or scope["path"] in REPEATABLE:
            await self._app(scope, receive, send)
            return
        response = await self._answered(key, memory, scope, receive, send)
        if response is not None:
            await response(scope, receive, send)

    async def _answered(
        self, key: str, memory: Memory, scope: Scope, receive: Receive, send: Send
    ) -> Response | None:
        """Carry out the request, or return what to respond instead."""
        if not (0 < len(key) <= 255 and key.isprintable()):
            return answered(to_problem("idempotency-key"))
        request, now = Request(scope, receive), memory.engine.clock.now()
        try:
            body = await request.body()
            claim = Claim(*await _identified(request, key, body), now, now + RUNNING, now + KEPT)
            known = await memory.engine.store.leases.claim(claim)
        except ClientDisconnect:
            return None
        except HTTPException as error:
            return await http_error(request, error)
        except PagefileError as error:
            return refused(error)
        # An erasure leaves no response, not even its own, so it is carried out again.
        erases = scope["path"] == verbs.FORGET.path and known is not None and known.asked == claim.asked
        if known is not None and not erases:
            return _again(known, claim.asked, now)
        await self._first(claim, memory, scope, _replay_body(body, receive), send)
        return None

    async def _first(self, claim: Claim, memory: Memory, scope: Scope, receive: Receive, send: Send) -> None:
        leases = memory.engine.store.leases
        redactor, tenant = memory.engine.redactor, claim.scope.tenant

        def may_keep(body: bytes) -> bool:
            """Not what the tenant's policy would remove: a model's answer may repeat what it was told."""
            text = body.decode(errors="replace") if redactor.applies(tenant) else ""
            return redactor.value(tenant, text) == text

        recording = _Recording(send, claim.id, leases, may_keep)
        # Cut off, a request to a provider may be repeated. Of others it is not known how far they got.
        repeat = is_vendors(scope["path"])
        try:
            with _streams(scope).holding(claim.id):
                await self._app(scope, receive, recording.send)
            repeat = recording.is_failure
        except Exception:
            repeat = True
            raise
        finally:
            if repeat and not recording.is_kept:
                with anyio.CancelScope(shield=True):
                    await leases.release(claim.id)


def _streams(scope: Scope) -> Streams:
    return scope["app"].state.streams


class _Recording:
    """Passes a response on. Before its end is sent, it is in the database, as far as it may be kept."""

    def __init__(
        self, send: Send, claim_id: str, leases: LeaseStore, may_keep: Callable[[bytes], bool]
    ) -> None:
        self._send, self._claim_id, self._leases, self._may_keep = send, claim_id, leases, may_keep
        self._status = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = bytearray()
        self._size = 0
        self._complete = False
        self.is_kept = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], list(message["headers"])
        else:
            part = message.get("body", b"")
            self._size += len(part)
            if self._size <= MAX_KEPT_BYTES:
                self._body += part
            # Clients that know the length do not wait for the last, empty part.
            announced = Headers(raw=self._headers).get("content-length")
            self._complete = not message.get("more_body") or announced == str(self._size)
            if not self.is_failure and not self.is_kept:
                await self._keep()
        await self._send(message)

    @property
    def is_failure(self) -> bool:
        """Whether the request should be retried: the service failed, or it was busy."""
        return not self._complete or self._status >= 500 or self._status == 429

    async def _keep(self) -> None:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._headers]
        head, body = json.dumps({"status": self._status, "headers": headers}), bytes(self._body)
        short = self._size <= MAX_KEPT_BYTES and self._may_keep(body)
        try:
            await self._leases.keep(self._claim_id, head if short else None, body if short else None)
        except PagefileError as error:
            # It took effect, so the caller gets the response. The claim prevents a repetition.
            logger.warning("The response to a request with an %s could not be kept: %s", HEADER, error)
        self.is_kept = True


def _again(known: KeptResponse, asked: str, now: datetime) -> Response:
    """The response to a request whose key is known."""
    if known.asked != asked:
        return answered(to_problem("idempotency-reused"))
    if not known.done:
        if known.leased > now:
            return answered(to_problem("idempotency-running", retry_after_s=1))
        return answered(to_problem("idempotency-interrupted"))
    if known.head is None:
        return answered(to_problem("idempotency-gone"))
    head = json.loads(known.head)
    response = Response(known.body, head["status"])
    response.raw_headers = [
        (name.encode("latin-1"), value.encode("latin-1")) for name, value in head["headers"]
    ]
    response.raw_headers.append(_REPLAYED)
    return response


async def _identified(request: Request, key: str, body: bytes) -> tuple[str, records.Scope, str]:
    """The id of the claim, whom the response is about, and a digest of the request."""
    caller, scope = principal_of(request), request.scope
    path = cast("str", scope["path"])
    names = (*_CALLER, *(_VENDORS_CALLER if is_vendors(path) else ()))
    said = [request.headers.get(name, "").encode("latin-1") for name in names]
    parts = [path.encode("utf-8", "surrogatepass"), scope["query_string"], body, *said]
    tenant, user = caller.tenant, caller.user
    # Other protocols' requests say elsewhere whose they are: their responses go with any erasure in the tenant.
    own = path != MCP and not may_have_foreign_keys(path)
    if own and (tenant is None or len(body) < _THREAD_FROM_BYTES):
        named = await off_loop(partial(_named, body), len(body), _THREAD_FROM_BYTES)
        tenant, user = tenant or _id(named.get("tenant")), user or _id(named.get("user_id"))
    whose = records.Scope(tenant or DEFAULT_TENANT, user)
    return _digest((caller.key_id or "").encode(), key.encode()), whose, _digest(*parts)


def _named(body: bytes) -> dict[str, Any]:
    """The fields of a request body; none where the route will refuse it."""
    if has_many_values(body):
        return {}
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _id(value: object) -> str | None:
    """An id as the route will take it; None for one that it refuses."""
    try:
        return records.checked_id(value, "id")
    except PagefileError:
        return None


def _digest(*parts: bytes) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Replays the body, then passes on further messages such as a disconnect."""
    waiting: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received
