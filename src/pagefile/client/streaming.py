"""Server-sent events back into what they say."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import get_args

from pagefile.client.problems import error_in
from pagefile.wire.chat import ChatEvent

_KINDS = {kind.event: kind for kind in get_args(ChatEvent)}
_PROBLEM = "error"


async def events_in(lines: AsyncIterator[str]) -> AsyncGenerator[ChatEvent]:
    """The events of a stream. A problem in it is raised; kinds that a newer service may send are passed over."""
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
                yield _KINDS[name].model_validate_json(text)
            name, data = "", []
