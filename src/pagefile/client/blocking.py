"""`BlockingClient`: `Client` for callers without an event loop, with no logic of its own."""

from collections.abc import AsyncGenerator, Callable, Generator
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from pagefile import blocking as face
from pagefile.client.remote import Client, ClientConversation
from pagefile.records import Scope

P = ParamSpec("P")
T = TypeVar("T")


def streaming(
    verb: Callable[Concatenate[Any, P], AsyncGenerator[T]],
) -> Callable[Concatenate[face.Blocking[Any], P], Generator[T]]:
    """The blocking version of a verb that yields its results."""

    @wraps(verb)
    def call(self: face.Blocking[Any], *args: P.args, **kwargs: P.kwargs) -> Generator[T]:
        found = verb(self.inner, *args, **kwargs)
        try:
            while (one := self.loop.wait(partial(anext, found, None))) is not None:
                yield one
        finally:
            self.loop.wait(found.aclose)

    return call


class BlockingClientConversation(face.ConversationVerbs[ClientConversation]):
    """A cheap handle: creating one sends nothing."""

    @property
    def scope(self) -> Scope:
        """Whose memory this is, as far as it was named here: the service takes a missing tenant or user from the key."""
        return self.inner.scope

    context = face.blocking(ClientConversation.context)

    stream_chat = streaming(ClientConversation.stream_chat)


class BlockingClient(face.MemoryVerbs[Client]):
    """A memory hosted by a service, with the verbs and records of `BlockingMemory`.

    Use it as `with BlockingClient.open("http://127.0.0.1:8780") as memory`.
    """

    @classmethod
    @face.opening(Client)
    def open(cls, client: Client, loop: face.Loop) -> "BlockingClient":
        """A client for the duration of a `with` block; the arguments are those of `Client`."""
        return cls(client, loop)

    connect = classmethod(face.connecting(open))  # noqa: A003 - the method above

    def close(self) -> None:
        self.closing()

    close.__doc__ = Client.close.__doc__

    conversation = face.handing(Client.conversation, BlockingClientConversation)
    describe = face.blocking(Client.describe)
