"""What `pagefile mcp` runs, apart from its options: it needs the extra `mcp`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from pagefile.compat.knowledge_graph import KnowledgeGraph
from pagefile.edge.fail_open import FailOpen
from pagefile.engine import Memory
from pagefile.mcp import reference_memory
from pagefile.mcp.calling import CONVERSATION, Caller
from pagefile.mcp.proxy import Proxy, is_url, upstream, wrap
from pagefile.mcp.server import serve_stdio
from pagefile.settings.sources import child_environment

Work = Callable[[Memory], Awaitable[None]]
#: A user, a tenant and a conversation.
Whose = tuple[str, str | None, str | None]


def memory_server(user_id: str, tenant: str | None, conversation: str) -> Work:
    """Serves a memory to one client."""
    return lambda memory: serve_stdio(Caller(memory, user_id, tenant, conversation))


def reference_memory_server(user_id: str, tenant: str | None) -> Work:
    """Serves a user's facts with the tools of the reference memory server."""
    return lambda memory: reference_memory.serve_stdio(KnowledgeGraph.of(memory, user_id, tenant))


def proxy_server(target: Sequence[str], headers: Mapping[str, str], whose: Whose, max_tokens: int) -> Work:
    """Serves another server to one client."""
    server = upstream(target, child_environment(), headers)
    user_id, tenant, conversation = whose

    async def wrapped(memory: Memory) -> None:
        proxy = Proxy(
            Caller(memory, user_id, tenant, conversation or CONVERSATION),
            FailOpen(memory, "mcp"),
            max_tokens,
            names_conversation=conversation is None,
            over_http=is_url(target[0]),
        )
        await wrap(proxy, server, " ".join(target))

    return wrapped
