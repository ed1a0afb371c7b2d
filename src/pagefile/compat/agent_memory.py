"""The routes of redis/agent-memory-server: `MemoryAPIClient(MemoryClientConfig(base_url="http://127.0.0.1:8000/agent-memory"))`.

A session's working memory is kept as the client sent it, and its exchanges are recorded as turns beside. Long-term memories are
facts. `memory_prompt` is a window of Pagefile's, so it keeps its budget.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pagefile.compat import agent_long_term, agent_sessions
from pagefile.compat.agent_long_term import MAX_PAGE, found_in
from pagefile.compat.agent_sessions import Session, window_of
from pagefile.compat.api import Answer, Api, Asked, Handler, count_in, object_in, required, unsupported
from pagefile.shapes.skeleton import as_object

if TYPE_CHECKING:
    from pagefile.records import JsonValue

#: The window of a prompt whose caller names none.
_WINDOW_TOKENS = 8_000


async def _prompt(asked: Asked) -> Answer:
    """A window for the query: the session's turns, and memories that answer, within the caller's tokens."""
    query, given = required(asked.fields, "query"), object_in(asked.fields, "session")
    messages: list[dict[str, Any]] = []
    search = asked.fields.get("long_term_search")
    if search:
        fields = {"limit": 10, **(as_object(search) or {}), "text": query}
        found = (await found_in(asked, fields))[: count_in(fields, "limit", 10, MAX_PAGE)]
        lines = [f"- {one['text']} (ID: {one['id']})" for one in found]
        if lines:
            messages.append(
                _said_by("system", "\n".join(("## Long term memories related to the user's input", *lines)))
            )
    if given:
        messages += await _window_messages(asked, query, given)
    return Answer({"messages": cast("JsonValue", [*messages, _said_by("user", query)])})


async def _window_messages(asked: Asked, query: str, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    asked_for = Asked(
        asked.memory, asked.tenant, asked.user, asked.key_id,
        {name: str(value) for name, value in given.items() if value is not None}, {}, None,
    )  # fmt: skip
    session = await Session.of(asked_for, required(given, "session_id")).located()
    conversation = await session.conversation()
    if conversation is None:
        return []
    chat = asked.memory.conversation(conversation, user_id=session.owner, tenant=asked.tenant)
    window = await chat.context(query=query, window_tokens=window_of(asked_for) or _WINDOW_TOKENS)
    shown = [
        _said_by(str(one["role"]), content)
        for one in window.messages
        if isinstance(content := one.get("content"), str)
    ]
    # The query comes last, after what the session has that is not answered yet.
    return shown[:-1] if shown and shown[-1]["content"]["text"] == query else shown


def _said_by(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": text}}


async def _health(asked: Asked) -> Answer:
    asked.memory.engine.check_open()
    return Answer({"now": asked.memory.engine.clock.now().timestamp()})


async def _unsupported(asked: Asked, **_: str) -> Answer:
    raise unsupported("Pagefile has no summary views and no tasks: it summarizes conversations by itself.")


class AgentMemory(Api):
    prefix = "/agent-memory"
    routes: ClassVar[Mapping[str, Handler]] = {
        "GET /v1/health": _health,
        **agent_sessions.ROUTES,
        **agent_long_term.ROUTES,
        "POST /v1/memory/prompt": _prompt,
        "GET /v1/summary-views": _unsupported,
        "POST /v1/summary-views": _unsupported,
        "GET /v1/summary-views/{view_id}": _unsupported,
        "DELETE /v1/summary-views/{view_id}": _unsupported,
        "POST /v1/summary-views/{view_id}/run": _unsupported,
        "POST /v1/summary-views/{view_id}/partitions/run": _unsupported,
        "GET /v1/summary-views/{view_id}/partitions": _unsupported,
        "GET /v1/tasks/{task_id}": _unsupported,
    }
