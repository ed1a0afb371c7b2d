"""Idempotency keys: a request that is sent twice is carried out once.

A client that lost its connection cannot know whether its request succeeded. With an `Idempotency-Key` header it can retry and get
the same response. Responses are kept in this process only, for a day and up to a size limit: they hold user content, and an
erasure must not leave copies on disk. After any erasure, by this process or another, no earlier response is replayed.
Operations that must stay idempotent across restarts have ids of their own: a turn derives its id from the key.
"""

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pagefile.errors import PagefileError
from pagefile.service.auth import memory_in, principal_of
from pagefile.service.problems import answered, refused, to_problem

HEADER = "Idempotency-Key"
KEPT_S = 24 * 3600.0
MAX_KEPT = 10_000
MAX_BYTES = 32_000_000

#: Streamed, or too large to keep; repeating them does no harm.
_NOT_KEPT = frozenset({"/v1/import", "/v1/chat/stream"})
_REPLAYED = (b"idempotency-replayed", b"true")


def made_id(key: str | None, *names: str | None) -> str | None:
    """A deterministic id for a key among these names: the same after a restart and in every worker. None without a key."""
    return None if key is None else str(uuid5(NAMESPACE_URL, json.dumps(["pagefile", key, *names])))


@dataclass(slots=True)
class _Kept:
    """A request made with a key, and its response once there is one."""

    asked: bytes
    began: float
    #: The erasure epoch when the request came in.
    epoch: int
    messages: list[Message] = field(default_factory=list[Message])
    done: bool = False

    @property
    def size(self) -> int:
        return sum(len(message.get("body", b"")) for message in self.messages)


class IdempotencyMiddleware:
    """Keeps responses by key and replays them."""

    def __init__(self, app: ASGIApp, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._clock = clock
        #: By caller and idempotency key, oldest first: answers expire by age, not by use, so `Lru` does not fit.
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = Headers(scope=scope).get(HEADER)
        if key is None or scope["method"] != "POST" or scope["path"] in _NOT_KEPT:
            await self._app(scope, receive, send)
            return
        refusal = await self._answered(key, scope, receive, send)
        if refusal is not None:
            await refusal(scope, receive, send)

    async def _answered(self, key: str, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Answer the request, or return why not."""
        if not (0 < len(key) <= 255 and key.isprintable()):
            return answered(to_problem("idempotency-key"))
        request = Request(scope, receive)
        try:
            body, memory = await request.body(), memory_in(scope["app"])
            # Counts the erasures of all processes.
            epoch = 0 if memory is None else await memory.engine.store.reader.epoch()
        except ClientDisconnect:
            return None
        except HTTPException as error:
            return answered(to_problem("body-too-large", error.detail), error.headers)
        except PagefileError as error:
            return refused(error)
        place, asked = (principal_of(request).key_id or "", key), _digest(scope, body)
        self._drop_old(epoch)
        known = self._kept.get(place)
        if known is None:
            kept = self._kept[place] = _Kept(asked, self._clock(), epoch)
            await self._first(place, kept, scope, _replay_body(body, receive), send)
            return None
        if known.asked != asked:
            return answered(to_problem("idempotency-reused"))
        if not known.done:
            return answered(to_problem("idempotency-running"), {"Retry-After": "1"})
        for message in known.messages:
            await send(message)
        return None

    async def _first(
        self, place: tuple[str, str], kept: _Kept, scope: Scope, receive: Receive, send: Send
    ) -> None:
        async def sent(message: Message) -> None:
            own = {"headers": [*message["headers"], _REPLAYED]} if "headers" in message else {}
            kept.messages.append({**message, **own})
            await send(message)

        try:
            await self._app(scope, receive, sent)
            kept.done = _worth_keeping(kept.messages)
        finally:
            if not kept.done:
                self._kept.pop(place, None)
        if kept.done and place in self._kept:
            self._bytes += kept.size
            self._drop_old(kept.epoch)

    def _drop_old(self, epoch: int) -> None:
        for place in [place for place, kept in self._kept.items() if kept.done and kept.epoch < epoch]:
            self._bytes -= self._kept.pop(place).size
        end = self._clock() - KEPT_S
        while self._kept:
            place, oldest = next(iter(self._kept.items()))
            full = len(self._kept) > MAX_KEPT or self._bytes > MAX_BYTES
            if not oldest.done or (oldest.began > end and not full):
                return
            self._bytes -= self._kept.pop(place).size


def _worth_keeping(messages: list[Message]) -> bool:
    """Whether the response is complete and final; server errors and rate limiting are better retried."""
    if not messages or messages[-1].get("more_body"):
        return False
    status = cast("int", messages[0]["status"])
    return status < 500 and status != 429


def _digest(scope: Scope, body: bytes) -> bytes:
    asked = hashlib.blake2b(digest_size=16)
    for part in (scope["path"].encode("utf-8", "surrogatepass"), scope["query_string"], body):
        asked.update(len(part).to_bytes(8, "big"))
        asked.update(part)
    return asked.digest()


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Replays the body, then passes on further messages such as a disconnect."""
    waiting: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received
