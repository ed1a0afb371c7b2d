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
from pagefile.gateway.adapter import error_of
from pagefile.gateway.session import Call

logger = logging.getLogger("pagefile")

_FAILED = HTTPStatus.BAD_REQUEST
_EVENTS = "text/event-stream"
#: How long writing the end of a broken answer may take, in seconds.
CLEAN_UP_S = 5.0


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
    """The head of the answer, then its bytes. Whatever memory fails to do costs only the memory."""
    body = await prepared(call, edge)
    try:
        first = True
        while True:
            async with post(body) as response:
                events = is_events(response.headers)
                if first and call.is_refused(response.status):
                    body = call.bypassed()
                    continue
                if first:
                    yield Head(response.status, response.headers, events)
                if response.status >= _FAILED:
                    whole = b"".join([piece async for piece in response.pieces()])
                    yield _failure(call, response.status, whole, first=first)
                    await _give_up(call, edge, kept=first and is_kept(response.status))
                    return
                first = False
                async for piece in response.pieces():
                    if out := call.reply.feed(piece, events=events):
                        yield out
            call.reply.end_round()
            next_body: bytes | None = None
            with anyio.CancelScope(shield=True):
                next_body = await edge.attempt("recording an answer", call.after_round, None, always=True)
            next_body = next_body or call.next_without_memory()
            if next_body is None:
                break
            body = next_body
        if out := call.reply.released():
            yield out
    finally:
        # The client left, or the provider broke off; without effect on an answer that is in the log.
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLEAN_UP_S):
            await _give_up(call, edge, kept=True)


def carry_blocking(call: Call, edge: FailOpen, post: BlockingPost) -> Generator[Head | bytes]:
    """`carry`, for clients that block."""
    body = call.raw
    if call.mode != "off":
        body = edge.attempt_blocking("preparing a request", call.prepare, None) or call.bypassed()
    else:
        call.status = "off"
    try:
        first = True
        while True:
            with post(body) as response:
                events = is_events(response.headers)
                if first and call.is_refused(response.status):
                    body = call.bypassed()
                    continue
                if first:
                    yield Head(response.status, response.headers, events)
                if response.status >= _FAILED:
                    yield _failure(call, response.status, b"".join(response.pieces_now()), first=first)
                    _give_up_blocking(call, edge, kept=first and is_kept(response.status))
                    return
                first = False
                for piece in response.pieces_now():
                    if out := call.reply.feed(piece, events=events):
                        yield out
            call.reply.end_round()
            next_body = edge.attempt_blocking("recording an answer", call.after_round, None, always=True)
            next_body = next_body or call.next_without_memory()
            if next_body is None:
                break
            body = next_body
        if out := call.reply.released():
            yield out
    finally:
        _give_up_blocking(call, edge, kept=True)


def _failure(call: Call, status: int, body: bytes, *, first: bool) -> bytes:
    """A failure of the first round is the provider's own response; in a stream that has begun, it is an event."""
    return body if first or not call.reply.events else call.reply.error_event(error_of(body, status))


async def prepared(call: Call, edge: FailOpen) -> bytes:
    """The body to send: as it came, if memory is off, fails or is slow."""
    if call.mode == "off":
        call.status = "off"
        return call.raw
    return await edge.attempt("preparing a request", call.prepare, None) or call.bypassed()


async def _give_up(call: Call, edge: FailOpen, *, kept: bool) -> None:
    if not call.ended and call.place is not None:
        await edge.attempt("recording a broken answer", partial(call.give_up, kept=kept), None, always=True)


def _give_up_blocking(call: Call, edge: FailOpen, *, kept: bool) -> None:
    if not call.ended and call.place is not None:
        edge.attempt_blocking(
            "recording a broken answer", partial(call.give_up, kept=kept), None, always=True
        )
