"""What frameworks' own searches find: a user's facts, then past turns, best first."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pagefile.engine import Memory
from pagefile.records import DEFAULT_TENANT, Scope, checked_id
from pagefile.tiers.facts import Facts, Topic


@dataclass(frozen=True, slots=True)
class Found:
    kind: Literal["fact", "turn"]
    id: str
    text: str
    at: datetime
    score: float
    conversation_id: str | None = None


async def search(memory: Memory, query: str, *, user_id: str, tenant: str | None, limit: int) -> list[Found]:
    """At most `limit` facts and turns together; facts say most in the fewest words, and come first."""
    facts = await _facts(memory, query, user_id, tenant, limit)
    left = limit - len(facts)
    hits = await memory.recall(query, user_id=user_id, tenant=tenant, limit=left) if left > 0 else []
    turns = [Found("turn", hit.id, hit.text, hit.at, hit.score, hit.conversation_id) for hit in hits]
    return [*facts, *turns]


async def _facts(memory: Memory, query: str, user_id: str, tenant: str | None, limit: int) -> list[Found]:
    tier = memory.engine.tier(Facts)
    owner = Scope(
        DEFAULT_TENANT if tenant is None else checked_id(tenant, "tenant"), checked_id(user_id, "user_id")
    )
    # A window never waits for vectors; who searches does.
    await tier.maintain(owner)
    held = await tier.book.held(owner)
    facts = [fact for fact in await memory.facts(user_id, tenant) if fact.id in held.facts]
    ranked = (
        await tier.ranked(held, facts, Topic(query, (), asked=True), owner, lambda _: None) if facts else []
    )
    useful = [one for one in ranked if one.value][:limit]
    return [Found("fact", one.fact.id, one.fact.text, one.fact.recorded, one.value or 0.0) for one in useful]
