"""A pure reader for the dumps of each other memory."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pagefile.errors import TransferError
from pagefile.integrations.imports.shapes import (
    Brought,
    BroughtFact,
    BroughtTurn,
    Said,
    content_text,
    items,
    mapping,
    moment,
    text,
    turns_of,
)
from pagefile.integrations.recorder import Called

# -- mem0 -------------------------------------------------------------------------------------------------------------


def from_mem0(data: object) -> Brought:
    """The memories that `get_all()` returns as facts, from `{"results": […]}` or the list alone.

    A memory of an agent or a run without a user goes to the user it is imported for. Graph relations are left out: mem0
    derived them from the same memories.
    """
    listed: object = cast("object", data) if isinstance(data, list) else mapping(data).get("results")
    if not isinstance(listed, list):
        raise TransferError(
            'This is not a dump of mem0: it has no list of "results". Write what get_all() returns.'
        )
    facts: list[BroughtFact] = []
    left_out: Counter[str] = Counter()
    for raw in cast("list[object]", listed):
        memory = mapping(raw)
        said = text(memory.get("memory"))
        if said is None:
            left_out["memories without text"] += 1
            continue
        if memory.get("role") == "assistant":
            # Stored verbatim (`infer=False`): not a statement about the user.
            left_out["words of the assistant"] += 1
            continue
        if memory.get("expiration_date"):
            left_out["expiry dates"] += 1
        facts.append(
            BroughtFact(
                said, text(memory.get("user_id")), moment(memory.get("created_at")), _category(memory)
            )
        )
    relations = len(items(mapping(cast("object", data)).get("relations")))
    if relations:
        left_out["graph relations"] = relations
    return Brought(facts=tuple(facts), left_out=dict(left_out))


def _category(memory: object) -> str | None:
    fields = mapping(memory)
    named = [*items(fields.get("categories")), mapping(fields.get("metadata")).get("category")]
    return next((name for name in map(text, named) if name), None)


# -- redis agent-memory-server ----------------------------------------------------------------------------------------


def from_redis_agent_memory(data: object) -> Brought:
    """A session's working memory (`GET /v1/working-memory/{session_id}`), a response of the long-term search
    (`POST /v1/long-term-memory/search`), or a list of either.

    What the server summarized (`context`) becomes the first turn of its conversation, as the assistant's message. Memories of type
    "message" are left out: they duplicate messages.
    """
    answers = cast("list[object]", data) if isinstance(data, list) else [data]
    return sum(map(_answer, answers), Brought())


def _answer(data: object) -> Brought:
    answer = mapping(data)
    if not isinstance(answer.get("messages"), list) and not isinstance(answer.get("memories"), list):
        raise TransferError(
            "This is not a dump of redis agent-memory-server: it has neither messages nor memories. Write what "
            "GET /v1/working-memory/{session_id} or POST /v1/long-term-memory/search returns."
        )
    return _session(answer) + _memories(items(answer.get("memories")), text(answer.get("user_id")))


def _session(answer: Mapping[str, Any]) -> Brought:
    session, user = text(answer.get("session_id")), text(answer.get("user_id"))
    brought = turns_of([_message(mapping(one)) for one in items(answer.get("messages"))], session, user)
    if answer.get("data"):
        brought += Brought(left_out={"data of sessions": 1})
    summary = text(answer.get("context"))
    if summary is None:
        return brought
    first = brought.turns[0].at if brought.turns else moment(answer.get("created_at"))
    before = BroughtTurn(f"{session}:context", None, summary, session, user, at=first)
    return Brought((before, *brought.turns), brought.facts, brought.left_out)


def _message(message: Mapping[str, Any]) -> Said:
    role, content = str(message.get("role", "")), content_text(message.get("content"))
    return Said(role, content, text(message.get("id")), moment(message.get("created_at")))


def _memories(memories: Iterable[object], user: str | None) -> Brought:
    facts: list[BroughtFact] = []
    left_out: Counter[str] = Counter()
    for memory in map(mapping, memories):
        said = text(memory.get("text"))
        if said is None or memory.get("memory_type") == "message":
            left_out["memories without text" if said is None else "copies of messages"] += 1
            continue
        # When it happened, else when it was learnt.
        at = moment(memory.get("event_date")) or moment(memory.get("created_at"))
        topic = next((name for name in map(text, items(memory.get("topics"))) if name), None)
        facts.append(BroughtFact(said, text(memory.get("user_id")) or user, at, topic))
    return Brought(facts=tuple(facts), left_out=dict(left_out))


# -- LangChain and LangGraph messages ---------------------------------------------------------------------------------


def from_langchain(data: object, conversation_id: str | None = None) -> Brought:
    """A list of messages; a state or a checkpoint that contains one; or such lists keyed by session or thread id.

    A message may be a LangChain message, the output of `messages_to_dict`, `dumpd` or `model_dump`, or an OpenAI-style mapping.
    System messages are left out: they belong to the application, not to the conversation.
    """
    if isinstance(data, list | tuple):
        return turns_of(map(_said, items(cast("object", data))), conversation_id, None)
    state = mapping(mapping(data).get("channel_values") or data)
    if isinstance(state.get("messages"), list):
        return from_langchain(state["messages"], conversation_id)
    if not state or not all(isinstance(messages, list) for messages in state.values()):
        raise TransferError(
            "This is not a dump of messages: give a list of them, a state with `messages`, or such lists by the id of their thread."
        )
    return sum((from_langchain(messages, session) for session, messages in state.items()), Brought())


def _said(message: object) -> Said:
    fields = _fields(message)
    tool = text(fields.get("name"))
    return Said(
        role=str(fields.get("role") or fields.get("type") or ""),
        text=content_text(fields.get("content")),
        id=text(fields.get("id")),
        calls=tuple(_call(mapping(call)) for call in items(fields.get("tool_calls"))),
        call_id=text(fields.get("tool_call_id")),
        tool=tool if fields.get("tool_call_id") else None,
    )


def _fields(message: object) -> Mapping[str, Any]:
    dump = getattr(message, "model_dump", None)
    given = mapping(dump() if callable(dump) else message)
    if "data" in given:
        return {**mapping(given["data"]), "type": given.get("type")}
    if given.get("lc"):
        # `["langchain", "schema", "messages", "HumanMessage"]`: a dump may give the type only by its class.
        name = str((items(given.get("id")) or ("",))[-1])
        kind = name.removesuffix("Chunk").removesuffix("Message").lower()
        return {"type": kind, **mapping(given.get("kwargs"))}
    return given


def _call(call: Mapping[str, Any]) -> Called:
    function = mapping(call.get("function"))
    given: object = function.get("arguments") if function else call.get("args")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            given = {"arguments": given}
    name = str(function.get("name") or call.get("name") or "tool")
    return Called(name, given, text(call.get("id")))
