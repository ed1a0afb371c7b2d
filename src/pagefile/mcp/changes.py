"""Who is told when the resources of a user change: sessions of the handshake revisions and streams of the later ones.

Each user has a bus: nobody learns that another's memory changed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pagefile.lru import Lru
from pagefile.mcp.calling import Caller

Whose = tuple[str | None, str]
Context = ServerRequestContext[Any, Any]

#: How many users' listeners are kept, and how many resources a user's sessions may subscribe to.
_USERS, _SUBSCRIPTIONS = 1_000, 1_000


def whose(caller: Caller) -> Whose:
    return caller.tenant, caller.user_id


@dataclass(slots=True)
class _Listeners:
    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    #: Sessions by the resource they subscribed to.
    sessions: Lru[tuple[str, int], ServerSession] = field(default_factory=lambda: Lru(_SUBSCRIPTIONS))
    listen: ListenHandler = field(init=False)

    def __post_init__(self) -> None:
        self.listen = ListenHandler(self.bus)


@dataclass(slots=True)
class Changes:
    """Tells those who listen."""

    _users: Lru[Whose, _Listeners] = field(default_factory=lambda: Lru(_USERS))

    def of(self, caller: Caller) -> _Listeners:
        if whose(caller) not in self._users:
            self._users[whose(caller)] = _Listeners()
        return self._users[whose(caller)]

    async def listen(
        self, caller: Caller, ctx: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        return await self.of(caller).listen(ctx, params)

    def subscribe(self, caller: Caller, session: ServerSession, uri: str) -> None:
        self.of(caller).sessions[uri, _connection(session)] = session

    def unsubscribe(self, caller: Caller, session: ServerSession, uri: str) -> None:
        self.of(caller).sessions.pop((uri, _connection(session)), None)

    async def tell(self, caller: Caller, ctx: Context, uris: Iterable[str]) -> None:
        """Tell that these resources are other than before, or new."""
        listeners = self.of(caller)
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            await ctx.session.send_resource_list_changed()
        await listeners.bus.publish(ResourcesListChanged())
        for uri in uris:
            await listeners.bus.publish(ResourceUpdated(uri=uri))
            for key, session in list(listeners.sessions.items()):
                if key[0] == uri:
                    try:
                        await session.send_resource_updated(uri)
                    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                        # The session is over.
                        listeners.sessions.pop(key, None)


def _connection(session: ServerSession) -> int:
    """The connection of a session object: each request has one of its own."""
    return id(session._connection)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - the SDK gives no other name to it
