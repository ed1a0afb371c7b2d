"""Messages over HTTP: what a client sends is what it gets back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from pagefile import ConflictError, InvalidArgumentError, Settings
from pagefile.client import Client
from pagefile.service.app import create_app
from tests.transcripts import ASKED, CHAT, LOOKED, SAID, SEEN

from .http_serving import BASE

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def remote() -> AsyncIterator[Client]:
    """A client of a service that runs as long as the block."""
    app = create_app(Settings(url="memory://"))
    async with (
        app.router.lifespan_context(app),
        Client(BASE, transport=httpx.ASGITransport(app=app)) as memory,
    ):
        yield memory


async def test_messages_come_back_as_they_were_sent():
    """Recorded at once, or as they happen; in their own shape, or in another."""
    async with remote() as memory:
        chat = memory.conversation("c", user_id="ada")
        turn = await chat.record(messages=CHAT)
        assert await chat.messages(turn) == CHAT
        assert turn.messages[1].text == "I will look in both places."
        grown = await chat.begin(messages=ASKED)
        for messages in (LOOKED, SEEN, SAID):
            grown = await chat.extend(grown, messages)
        done = await chat.complete(grown)
        assert done.assistant == "A cat."
        assert await chat.messages(done.id) == [*ASKED, *LOOKED, *SEEN, *SAID]
        kinds = [item.get("type", "message") for item in await chat.messages(done, shape="responses")]
        assert kinds == ["message", "function_call", "function_call_output", "message"]


async def test_messages_sent_twice_are_added_once():
    """The request says behind which messages its own come."""
    async with remote() as memory:
        chat = memory.conversation("c", user_id="ada")
        begun = await chat.begin(messages=ASKED)
        once = await chat.extend(begun, LOOKED)
        assert await chat.extend(begun, LOOKED) == once
        assert await chat.extend(once, []) == once
        assert len((await chat.extend(begun.id, SEEN)).messages) == 3


async def test_a_fork_is_made_by_the_service():
    """The client's handle is on the new conversation."""
    async with remote() as memory:
        chat = memory.conversation("c", user_id="ada")
        turn = await chat.record(messages=CHAT, id="one")
        fork = await chat.fork(turn, id="copy")
        assert (fork.id, await fork.messages("one")) == ("copy", CHAT)
        assert await (await chat.fork(turn, before=True)).turns() == []
        with pytest.raises(ConflictError, match="There is a conversation 'copy' already"):
            await chat.fork(turn, id="copy")


async def test_what_cannot_be_read_is_named_over_http_too():
    """The same words as in the process."""
    async with remote() as memory:
        chat = memory.conversation("c", user_id="ada")
        with pytest.raises(InvalidArgumentError, match=r"messages\[0\] has the role 'critic'"):
            await chat.record(messages=[{"role": "critic", "content": "no"}])
        with pytest.raises(InvalidArgumentError, match=r"messages\[0\] is the number 7"):
            await chat.record(messages=[7])
