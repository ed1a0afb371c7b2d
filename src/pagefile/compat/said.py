"""What users said, as memories: turns from which nothing was learnt, in the user's own words.

Vendors' clients ask for a memory by its id alone, so the id of such a turn leads to its user and its conversation.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import ClassVar
from uuid import uuid4

from pagefile.compat.memories import Memories
from pagefile.errors import NotFoundError
from pagefile.models.extractors import RuleExtractor
from pagefile.ports import EntryQuery
from pagefile.records import JsonObject, Scope, Status, Turn, checked_id
from pagefile.tiers.facts import FactExtraction, Facts

_PREFIX = "turn_"
_PAGE = 1_000
#: An erased turn is not done.
_DONE: frozenset[Status] = frozenset({"done"})

Exchange = tuple[str | None, str | None]


def is_said(memory_id: str) -> bool:
    return memory_id.startswith(_PREFIX)


def exchanges(messages: Iterable[tuple[str, str]]) -> list[Exchange]:
    """What the user said and what was answered, turn by turn, of messages with roles; others than these two are no turn."""
    said = [(role == "assistant", text) for role, text in messages if role in {"user", "assistant"}]
    turns: list[Exchange] = []
    for answer, some in groupby(said, lambda one: one[0]):
        text = "\n\n".join(text for _, text in some)
        if answer and turns and turns[-1][1] is None:
            turns[-1] = (turns[-1][0], text)
        else:
            turns.append((None, text) if answer else (text, None))
    return turns


@dataclass(frozen=True, slots=True)
class Said:
    """The turns that came in by one vendor's API."""

    memories: Memories
    #: The first word of the ids of its conversations.
    face: str
    most: ClassVar[int] = _PAGE

    def conversation(self, user: str, *more: str | None) -> str:
        return "/".join((self.face, user, *(one for one in more if one)))

    async def record(
        self,
        user: str,
        conversation: str,
        turns: Sequence[Exchange],
        *,
        at: datetime | None = None,
        agent: str | None = None,
        metadata: JsonObject | None = None,
    ) -> list[Turn]:
        """Write turns, and read them for facts: whoever uses these APIs asks for it, even where the settings leave it out."""
        owner = self.memories.owner(user)
        chat = self.memories.memory.conversation(
            conversation, user_id=owner.user, tenant=owner.tenant, agent=agent
        )
        written = [
            await chat.record(*turn, id=_turn_id(user, conversation), at=at, metadata=metadata)
            for turn in turns
        ]
        if written:
            await self._extraction().learn(written[0].scope)
        return written

    def _extraction(self) -> FactExtraction:
        engine = self.memories.memory.engine
        tier, store = engine.tier(Facts), engine.store
        if tier.extraction is not None:
            return tier.extraction
        return FactExtraction(tier.book, store.reader, store.watermarks, engine.meter, RuleExtractor())

    async def get(self, turn_id: str) -> Turn:
        encoded = turn_id.removeprefix(_PREFIX)
        try:
            user, conversation, _ = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
            scope = replace(self.memories.owner(user), conversation=checked_id(conversation, "conversation"))
        except (ValueError, TypeError) as error:
            raise NotFoundError(f"There is no memory {turn_id!r}.") from error
        for turn in await self._turns(scope):
            if turn.id == turn_id:
                return turn
        raise NotFoundError(f"There is no memory {turn_id!r}.")

    async def of(self, users: Sequence[str]) -> list[Turn]:
        """Those from which nothing was learnt, newest first."""
        found: list[Turn] = []
        known = await self.memories.read_turns(users)
        for user in users:
            heads = await self.memories.memory.conversations(
                user_id=user, tenant=self.memories.tenant, limit=_PAGE
            )
            for head in heads:
                if f"{head.scope.conversation}/".startswith(f"{self.conversation(user)}/"):
                    found += [turn for turn in await self._turns(head.scope) if turn.id not in known]
        return sorted(found, key=lambda turn: turn.at, reverse=True)

    async def ranked(self, query: str, turns: Sequence[Turn], most: int) -> list[tuple[Turn, float]]:
        """Turns that answer a query, best first, each with a score from 0 to 1."""
        by_id = {turn.id: turn for turn in turns}
        found: list[tuple[Turn, float]] = []
        for user in dict.fromkeys(turn.scope.user or "" for turn in turns):
            hits = await self.memories.memory.recall(
                query, user_id=user, tenant=self.memories.tenant, limit=most
            )
            found += [(by_id[hit.id], min(1.0, max(0.0, hit.score))) for hit in hits if hit.id in by_id]
        return sorted(found, key=lambda one: -one[1])

    async def forget(self, turn_id: str) -> None:
        turn = await self.get(turn_id)
        await self.memories.memory.forget(
            conversation_id=turn.scope.conversation, tenant=self.memories.tenant, turn_id=turn.id
        )

    async def _turns(self, scope: Scope) -> list[Turn]:
        found: list[Turn] = []
        query = EntryQuery(scope, frozenset({"turn"}), _DONE, limit=_PAGE)
        while True:
            entries = await self.memories.memory.engine.store.reader.entries(query)
            found += [one for one in entries if isinstance(one, Turn) and is_said(one.id) and one.user]
            if len(entries) < _PAGE:
                return found
            query = replace(query, after_seq=entries[-1].seq or 0)


def _turn_id(user: str, conversation: str) -> str:
    where = json.dumps([user, conversation, uuid4().hex]).encode()
    return _PREFIX + base64.urlsafe_b64encode(where).decode().rstrip("=")
