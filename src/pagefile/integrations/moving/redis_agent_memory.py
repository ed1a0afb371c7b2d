"""redis agent-memory-server: the JSON of its working memory (`GET /v1/working-memory/{session_id}`) and of its long-term memory
(`POST /v1/long-term-memory/search`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pagefile.errors import TransferError
from pagefile.integrations.moving.shapes import (
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


def from_redis_agent_memory(data: object) -> Brought:
    """A session's working memory, a response of the long-term search, or a list of either.

    What the server summarized (`context`) becomes the first turn of its conversation, as the assistant's message. Memories of type
    "message" are left out: they duplicate messages.
    """
    if isinstance(data, list):
        brought = Brought()
        for one in cast("list[object]", data):
            brought += _answer(one)
        return brought
    return _answer(data)


def _answer(data: object) -> Brought:
    answer = mapping(data)
    if not isinstance(answer.get("messages"), list) and not isinstance(answer.get("memories"), list):
        raise TransferError(
            "This is no dump of redis agent-memory-server: it has neither messages nor memories. Write what "
            "GET /v1/working-memory/{session_id} or POST /v1/long-term-memory/search returns."
        )
    return _session(answer) + _memories(items(answer.get("memories")), text(answer.get("user_id")))


def _session(answer: Mapping[str, Any]) -> Brought:
    session, user = text(answer.get("session_id")), text(answer.get("user_id"))
    messages = [mapping(message) for message in items(answer.get("messages"))]
    brought = turns_of(
        (
            Said(
                str(message.get("role", "")),
                content_text(message.get("content")),
                text(message.get("id")),
                moment(message.get("created_at")),
            )
            for message in messages
        ),
        session,
        user,
    )
    if answer.get("data"):
        brought += Brought(left_out={"data of sessions": 1})
    summary = text(answer.get("context"))
    if summary is None:
        return brought
    first = brought.turns[0].at if brought.turns else moment(answer.get("created_at"))
    before = BroughtTurn(f"{session}:context", None, summary, session, user, at=first)
    return Brought((before, *brought.turns), brought.facts, brought.left_out)


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
