"""`BlockingClient`: `Client` for callers without an event loop, with no logic of its own."""

from collections.abc import Generator, Iterable
from functools import partial
from typing import Any

from anyio.from_thread import start_blocking_portal

from pagefile.blocking import (
    ConversationVerbs,
    Loop,
    MemoryVerbs,
    blocking,
    connecting,
    described_as,
    handing,
    opening,
)
from pagefile.client.conversation import ClientConversation
from pagefile.client.remote import Client
from pagefile.engine import Memory
from pagefile.engine.drafts import StepLike
from pagefile.records import Scope
from pagefile.wire.chat import ChatEvent


class BlockingClientConversation(ConversationVerbs[ClientConversation]):
    """A cheap handle: creating one sends nothing."""

    @property
    def scope(self) -> Scope:
        """Whose memory this is, as far as it was named here: the service takes a missing tenant or user from the key."""
        return self.inner.scope

    context = blocking(ClientConversation.context)

    @described_as(ClientConversation.stream_chat)
    def stream_chat(
        self,
        message: str,
        *,
        id: str | None = None,  # noqa: A002 - the word users write
        instructions: str | None = None,
        window_tokens: int | None = None,
        steps: Iterable[StepLike] = (),
    ) -> Generator[ChatEvent]:
        events = self.inner.stream_chat(
            message, id=id, instructions=instructions, window_tokens=window_tokens, steps=steps
        )
        try:
            while (event := self.loop.wait(partial(anext, events, None))) is not None:
                yield event
        finally:
            self.loop.wait(events.aclose)


class BlockingClient(MemoryVerbs[Client]):
    """A memory hosted by a service, with the verbs and records of `BlockingMemory`.

    Use it as `with BlockingClient.open("http://127.0.0.1:8780") as memory`.
    """

    @classmethod
    @opening(Client)
    def open(cls, *args: Any, **options: Any) -> Generator["BlockingClient"]:
        """A client for the duration of a `with` block; the arguments are those of `Client`."""
        client = Client(*args, **options)
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(client),
            Loop(portal) as loop,
        ):
            yield cls(client, loop)

    connect = classmethod(connecting(open, Memory.connect))  # noqa: A003 - the method above

    @described_as(Client.close)
    def close(self) -> None:
        self.closing()

    conversation = handing(Client.conversation, BlockingClientConversation)
    describe = blocking(Client.describe)
