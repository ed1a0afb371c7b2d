"""Writes what was read from another memory, with the public verbs. Idempotent."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from os import PathLike
from typing import Final

import anyio

from pagefile.engine import Conversation, Memory
from pagefile.errors import FactRejectedError, InvalidArgumentError, TransferError
from pagefile.integrations.imports.readers import from_langchain, from_mem0, from_redis_agent_memory
from pagefile.integrations.imports.shapes import EXTRACTED_CONFIDENCE, Brought, BroughtFact, BroughtTurn
from pagefile.text.fact_ranking import fact_key

#: The reader for each format, by its name in `pagefile import --from`.
FORMATS: Final[Mapping[str, Callable[[object], Brought]]] = {
    "mem0": from_mem0,
    "redis-agent-memory": from_redis_agent_memory,
    "langchain": from_langchain,
}


async def read_dump(path: str | PathLike[str], kind: str) -> Brought:
    """The contents of a JSON file in one of the `FORMATS`."""
    read = FORMATS.get(kind)
    if read is None:
        raise TransferError(f"There is no format {kind!r}: it is one of {', '.join(FORMATS)}.")
    try:
        data: object = json.loads(await anyio.Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise TransferError(f"Cannot read {str(path)!r} as JSON: {error}.") from error
    return read(data)


async def take_over(
    memory: Memory,
    brought: Brought,
    *,
    user_id: str | None = None,
    conversation_id: str | None = None,
    tenant: str | None = None,
) -> dict[str, int]:
    """Record the turns and remember the facts; counts what was new, known, rejected or left out.

    Args:
        user_id: the user of turns and facts that do not name one.
        conversation_id: the conversation of turns that do not name one.
    """
    _check(brought, user_id, conversation_id)
    counts = {"turn": 0, "fact": 0, "known": 0, "rejected": 0, "left_out": sum(brought.left_out.values())}
    by_conversation = sorted(brought.turns, key=lambda turn: turn.conversation_id or "")  # a stable sort
    for name, group in groupby(by_conversation, key=lambda turn: turn.conversation_id):
        turns = list(group)
        whose = next((turn.user_id for turn in turns if turn.user_id), user_id)
        chat = memory.conversation(name or conversation_id or "", user_id=whose, tenant=tenant)
        await _record(chat, turns, counts)
    for whose in dict.fromkeys(fact.user_id for fact in brought.facts):
        theirs = sorted((fact for fact in brought.facts if fact.user_id == whose), key=_age)
        await _remember(memory, theirs, whose or user_id or "", tenant, counts)
    return counts


def _age(fact: BroughtFact) -> float:
    """Sort key: oldest first, as they would have been remembered; those without a time last."""
    return math.inf if fact.at is None else fact.at.timestamp()


def _check(brought: Brought, user_id: str | None, conversation_id: str | None) -> None:
    """Check before writing anything that every record has a user and a conversation."""
    if conversation_id is None and any(turn.conversation_id is None for turn in brought.turns):
        raise TransferError(
            "These messages name no conversation: say which it is (conversation_id, --conversation)."
        )
    if user_id is None and any(fact.user_id is None for fact in brought.facts):
        raise TransferError("Some of these memories name no user: say whose they are (user_id, --user-id).")


async def _record(chat: Conversation, turns: Iterable[BroughtTurn], counts: dict[str, int]) -> None:
    known = await _known(chat)
    for turn in turns:
        if turn.id in known:
            counts["known"] += 1
            continue
        try:
            await chat.record(turn.user, turn.assistant, steps=turn.steps, id=turn.id, at=turn.at)
        except InvalidArgumentError:
            counts["rejected"] += 1
        else:
            known.add(turn.id)
            counts["turn"] += 1


async def _known(chat: Conversation) -> set[str]:
    known: set[str] = set()
    after: int | str = 0
    while True:
        turns = await chat.turns(after=after, limit=1000)
        known |= {turn.id for turn in turns}
        if turns.next is None:
            return known
        after = turns.next


async def _remember(
    memory: Memory, facts: Iterable[BroughtFact], user_id: str, tenant: str | None, counts: dict[str, int]
) -> None:
    # Including retracted facts: importing again must not bring them back.
    known = {fact_key(fact.text) for fact in await memory.facts(user_id, tenant, history=True)}
    for fact in facts:
        if fact_key(fact.text) in known:
            counts["known"] += 1
            continue
        try:
            await memory.remember(
                fact.text,
                user_id=user_id,
                tenant=tenant,
                category=fact.category,
                confidence=EXTRACTED_CONFIDENCE,
                valid_from=fact.at,
            )
        except (FactRejectedError, InvalidArgumentError):
            counts["rejected"] += 1
        else:
            known.add(fact_key(fact.text))
            counts["fact"] += 1
