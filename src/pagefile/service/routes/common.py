"""What all routes share: the open memory, and the handle on the conversation a request names."""

from importlib.metadata import version
from typing import Annotated, Protocol, TypeAlias

from fastapi import APIRouter, Depends, Request

from pagefile.engine import Conversation, Memory
from pagefile.service.auth import GuardedRouter, KeyedRoute, open_memory
from pagefile.wire.problem import MEDIA_TYPE

#: As the service says it in its answers and pages.
VERSION = version("pagefile")
#: Every route can answer with a problem; naming it also replaces the framework's own 422.
PROBLEMS: dict[int | str, dict[str, object]] = {
    "default": {
        "description": "A problem",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}


class NamesConversation(Protocol):
    """A request that names a conversation."""

    @property
    def conversation_id(self) -> str: ...
    @property
    def user_id(self) -> str | None: ...
    @property
    def tenant(self) -> str | None: ...


class TellsOfConversation(NamesConversation, Protocol):
    """A request with which a turn begins."""

    @property
    def agent(self) -> str | None: ...
    @property
    def project(self) -> str | None: ...
    @property
    def language(self) -> str | None: ...
    @property
    def timezone(self) -> str | None: ...


async def _opened(request: Request) -> Memory:
    """Async, because the framework asks others in a thread."""
    return open_memory(request)


#: The memory this service was started with. Guarded routes get it from their guard.
MemoryOf: TypeAlias = Annotated[Memory, Depends(_opened)]


def router(tag: str) -> APIRouter:
    """A group of routes, each of which holds what it is asked for against the caller's key."""
    return GuardedRouter(prefix="/v1", tags=[tag], responses=PROBLEMS, route_class=KeyedRoute)


def chat_of(memory: Memory, request: NamesConversation) -> Conversation:
    """The handle on the conversation a request names."""
    return memory.conversation(request.conversation_id, user_id=request.user_id, tenant=request.tenant)


def told_chat(memory: Memory, request: TellsOfConversation) -> Conversation:
    """The same for a request that also says what the conversation is about."""
    return memory.conversation(
        request.conversation_id,
        user_id=request.user_id,
        tenant=request.tenant,
        agent=request.agent,
        project=request.project,
        language=request.language,
        timezone=request.timezone,
    )
