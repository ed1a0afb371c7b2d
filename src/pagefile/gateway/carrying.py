"""Carries a call to a provider and its answer back, in as many rounds as it takes."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Protocol

import anyio

from pagefile.edge.fail_open import FailOpen
from pagefile.gateway.replies import error_of
from pagefile.gateway.session import Call

logger = logging.getLogger("pagefile")

_FAILED = HTTPStatus.BAD_REQUEST
_EVENTS = "text/event-stream"
#: How long writing the end of a broken answer may take, in seconds.
CLEAN_UP_S = 5.0
#: How long a provider may take to close a stream that it has ended.
_DRAIN_S = 0.05


class _Beginning(Protocol):
    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


class Response(_Beginning, Protocol):
    """A provider's response, whichever HTTP library brought it."""

    def pieces(self) -> AsyncIterator[bytes]: ...


class BlockingResponse(_Beginning, Protocol):
    """The same, of a library that blocks."""

    def pieces_now(self) -> Iterator[bytes]: ...


BlockingPost = Callable[[bytes], AbstractContextManager[BlockingResponse]]
Post = Callable[[bytes], AbstractAsyncContextManager[Response]]


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of the answer."""

    status: int
    headers: Mapping[str, str]
    #: Whether it is a stream of events.
    events: bool


def is_events(headers: Mapping[str, str]) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == _EVENTS


def is_kept(status: int) -> bool:
    """Whether a client sends a request again that was answered with this status."""
    return (
        status in {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}
        or status >= 500
    )


async def carry(call: Call, edge: FailOpen, post: Post) -> AsyncGenerator[Head | bytes]:
    """The head of the answer, then its bytes. Whatever memory fails to do costs only the memory.

    The head of an answer that is not a stream waits for its last round: a later round that fails is the whole answer.
    """
    body = await prepared(call, edge)
    try:
        told: Head | None = None
        while True:
            async with post(body) as response:
                head = _head_of(response)
                if told is None and call.is_refused(head.status):
                    call.failed(f"the provider refused the request with memory: {head.status}")
                    body = call.bypassed()
                    continue
                if head.status >= _FAILED:
                    whole = b"".join([piece async for piece in response.pieces()])
                    for out in _failure(call, head, whole, told):
                        yield out
                    await _give_up(call, edge, kept=told is None and is_kept(head.status))
                    return
                if told is None and head.events:
                    yield (told := head)
                pieces = response.pieces()
                async for piece in pieces:
                    if out := call.reply.feed(piece, events=head.events):
                        if told is None:
                            yield (told := head)
                        yield out
                    if call.reply.has_ended:
                        await _drained(pieces)
                        break
            call.reply.end_round()
            next_body: bytes | None = None
            with anyio.CancelScope(shield=True):
                next_body = await edge.attempt("recording an answer", call.after_round, None, always=True)
            next_body = next_body or call.next_without_memory()
            if next_body is None:
                break
            body = next_body
        for out in _ended(call, head, told):
            yield out
    finally:
        call.leave()
        # The client left, or the provider broke off; without effect on an answer that is in the log.
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLEAN_UP_S):
            await _give_up(call, edge, kept=True)


def carry_blocking(call: Call, edge: FailOpen, post: BlockingPost) -> Generator[Head | bytes]:
    """`carry`, for clients that block."""
    body = call.raw
    if call.mode != "off":
        prepared = edge.attempt_blocking("preparing a request", call.prepare, None, told=call.failed)
        body = prepared or call.bypassed()
    else:
        call.status = "off"
    try:
        told: Head | None = None
        while True:
            with post(body) as response:
                head = _head_of(response)
                if told is None and call.is_refused(head.status):
                    call.failed(f"the provider refused the request with memory: {head.status}")
                    body = call.bypassed()
                    continue
                if head.status >= _FAILED:
                    yield from _failure(call, head, b"".join(response.pieces_now()), told)
                    _give_up_blocking(call, edge, kept=told is None and is_kept(head.status))
                    return
                if told is None and head.events:
                    yield (told := head)
                for piece in response.pieces_now():
                    if out := call.reply.feed(piece, events=head.events):
                        if told is None:
                            yield (told := head)
                        yield out
            call.reply.end_round()
            next_body = edge.attempt_blocking("recording an answer", call.after_round, None, always=True)
            next_body = next_body or call.next_without_memory()
            if next_body is None:
                break
            body = next_body
        yield from _ended(call, head, told)
    finally:
        call.leave()
        _give_up_blocking(call, edge, kept=True)


async def _drained(pieces: AsyncIterator[bytes]) -> None:
    """Read what is behind the end of a stream, so that its connection can be used again; clients do not wait for it, and nor do we."""
    with anyio.move_on_after(_DRAIN_S):
        async for _ in pieces:
            pass


def _head_of(response: Response | BlockingResponse) -> Head:
    return Head(response.status, response.headers, is_events(response.headers))


def _failure(call: Call, head: Head, body: bytes, told: Head | None) -> Iterator[Head | bytes]:
    """The provider's own response; in a stream that has begun, an event."""
    if told is None:
        yield head
        yield body
    else:
        yield call.reply.error_event(error_of(body, head.status))


def _ended(call: Call, head: Head, told: Head | None) -> Iterator[Head | bytes]:
    """What is left when the last round is over."""
    if told is None:
        yield head
    if out := call.reply.released():
        yield out


async def prepared(call: Call, edge: FailOpen) -> bytes:
    """The body to send: as it came, if memory is off, fails or is slow."""
    if call.mode == "off":
        call.status = "off"
        return call.raw
    body = await edge.attempt("preparing a request", call.prepare, None, told=call.failed)
    return body or call.bypassed()


async def _give_up(call: Call, edge: FailOpen, *, kept: bool) -> None:
    if not call.ended and call.place is not None:
        await edge.attempt("recording a broken answer", partial(call.give_up, kept=kept), None, always=True)


def _give_up_blocking(call: Call, edge: FailOpen, *, kept: bool) -> None:
    if not call.ended and call.place is not None:
        edge.attempt_blocking(
            "recording a broken answer", partial(call.give_up, kept=kept), None, always=True
        )
