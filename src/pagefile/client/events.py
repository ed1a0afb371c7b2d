"""Parses server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import get_args

from pydantic import ValidationError

from pagefile.client.problems import error_in
from pagefile.engine.transfer import lines_of
from pagefile.errors import StoreError
from pagefile.wire.chat import ChatEvent

_KINDS = {kind.event: kind for kind in get_args(ChatEvent)}
_PROBLEM = "error"


async def lines_in(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str]:
    """The lines of a response, without their ends."""
    async for line in lines_of(chunks):
        yield line.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")


async def events_in(lines: AsyncIterator[str]) -> AsyncGenerator[ChatEvent]:
    """The events of a stream. A problem is raised; unknown kinds, which a newer service may send, are skipped."""
    name = ""
    data: list[str] = []
    async for line in lines:
        field, _, value = line.partition(":")
        if field == "event":
            name = value.removeprefix(" ")
        elif field == "data":
            data.append(value.removeprefix(" "))
        elif not line:
            text = "\n".join(data)
            if name == _PROBLEM:
                raise error_in(text.encode())
            if name in _KINDS:
                yield _read(name, text)
            name, data = "", []


def _read(name: str, text: str) -> ChatEvent:
    try:
        return _KINDS[name].model_validate_json(text)
    except ValidationError as error:
        raise StoreError(
            f"The service sent a {name!r} that cannot be read: is it Pagefile, and as new as this client?"
        ) from error
