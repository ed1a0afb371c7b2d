"""What all routes share: the open memory, the conversation a request names, and routes that only call their verb."""

from importlib.metadata import version
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import BaseModel

from pagefile.engine import Conversation, Memory
from pagefile.service.auth import GuardedRouter, KeyedRoute, open_memory
from pagefile.service.once import HEADER
from pagefile.verbs import Verb
from pagefile.wire.problem import MEDIA_TYPE

#: As shown in responses and pages.
VERSION = version("pagefile")
#: Every route can return a problem; declaring it also replaces the framework's own 422.
PROBLEMS: dict[int | str, dict[str, object]] = {
    "default": {
        "description": "A problem",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}
#: What a request may say about a conversation besides its id.
_ABOUT = ("agent", "project", "language", "timezone")


async def _opened(request: Request) -> Memory:
    """Async, because the framework runs sync dependencies in a thread."""
    return open_memory(request)


#: The memory this service was started with. Guarded routes get it from their guard.
MemoryOf: TypeAlias = Annotated[Memory, Depends(_opened)]
#: What makes a request safe to repeat: ids are made from it where the request names none.
Key: TypeAlias = Annotated[str | None, Header(alias=HEADER)]


def router(tag: str) -> APIRouter:
    """A group of routes that all check the caller's key."""
    return GuardedRouter(tags=[tag], responses=PROBLEMS, route_class=KeyedRoute)


def chat_of(memory: Memory, request: Any) -> Conversation:
    """A handle on the conversation a request names, with the attributes it sets."""
    about = {name: getattr(request, name) for name in _ABOUT if hasattr(request, name)}
    whose = {"user_id": request.user_id, "tenant": request.tenant}
    return memory.conversation(request.conversation_id, **whose, **about)


def add_verb(routes: APIRouter, verb: Verb[..., Any], within: Verb[..., Any] | None = None) -> None:
    """Add a route that only calls its verb; `within` is used when the request names a conversation."""

    async def route(memory: Memory, asked: Any) -> Response:
        here = verb if within is None or asked.conversation_id is None else within
        return await carried_out(here, memory, asked)

    asked = Annotated[verb.request, Query()] if verb.in_query else verb.request
    hints = {"memory": MemoryOf, "asked": asked, "return": Response}
    route.__name__, route.__annotations__ = verb.name, hints
    route.__dict__["__signature__"] = Signature(
        [Parameter(name, Parameter.KEYWORD_ONLY, annotation=hints[name]) for name in ("memory", "asked")],
        return_annotation=Response,
    )
    at_verb(routes, verb)(route)


def at_verb(routes: APIRouter, verb: Verb[..., Any]) -> Any:
    """Decorates a function as the verb's route, for verbs that need more than a plain call."""
    return routes.api_route(
        verb.path,
        methods=[verb.http_method],
        status_code=verb.status,
        response_model=verb.answer,
        description=verb.description,
        name=verb.name,
    )


async def carried_out(verb: Verb[..., Any], memory: Memory, asked: BaseModel, **more: object) -> Response:
    """The result of a verb for a request; `more` overrides fields of the request."""
    owner = chat_of(memory, asked) if verb.of_conversation else memory
    returned = await verb.method(owner, **{**verb.arguments(asked), **more})
    return written(verb.answered(returned), verb.status)


def written(answer: BaseModel, status: int = 200) -> Response:
    """A response ready to send, skipping the framework's second validation."""
    return Response(answer.model_dump_json(), status, media_type="application/json")
