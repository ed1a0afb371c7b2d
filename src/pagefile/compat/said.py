"""What users said, as memories: turns from which nothing was learnt, in the user's own words.

Vendors' clients ask for a memory by its id alone, so the id of such a turn leads to its conversation, and that to its user.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import ClassVar
from uuid import uuid4

from pagefile.compat.memories import Memories
from pagefile.errors import NotFoundError
from pagefile.models.extractors import RuleExtractor
from pagefile.ports import ConversationQuery, EntryQuery
from pagefile.records import JsonObject, Scope, Status, Turn, checked_id
from pagefile.text.fact_ranking import statement_key
from pagefile.tiers.facts import FactExtraction, Facts

_PREFIX = "turn_"
_PAGE = 1_000
#: The id of a turn has that of its conversation within it, and both have to fit what every store can hold.
_MAX_CONVERSATION_BYTES = 120
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
        """The same for the same names and different for different ones; readable unless the names are long."""
        parts = [one.replace("%", "%25").replace("/", "%2F") for one in (user, *more) if one]
        named = "/".join((self.face, *parts))
        if len(raw := named.encode()) <= _MAX_CONVERSATION_BYTES:
            return named
        return f"{self.face}/{hashlib.sha256(raw).hexdigest()}"

    async def users(self) -> list[str]:
        """The users within reach who have memories: facts, or turns that came in here."""
        if self.memories.only is not None:
            return [self.memories.only]
        found = set(await self.memories.owners())
        query = ConversationQuery(Scope(self.memories.tenant), _PAGE)
        while True:
            heads = await self.memories.memory.engine.store.reader.heads(query)
            found |= {head.scope.user for head in heads if head.scope.user and self._is_here(head.scope)}
            if len(heads) < _PAGE:
                return sorted(found)
            query = replace(query, after=heads[-1].scope.conversation)

    def _is_here(self, scope: Scope) -> bool:
        return (scope.conversation or "").startswith(f"{self.face}/")

    async def record(
        self,
        user: str,
        conversation: str,
        turns: Sequence[Exchange],
        *,
        keys: Sequence[str] | None = None,
        at: datetime | None = None,
        agent: str | None = None,
        metadata: JsonObject | None = None,
    ) -> list[Turn]:
        """Write turns, and read them for facts: whoever uses these APIs asks for it, even where the settings leave it out.

        A turn whose key is known to the conversation is not written again.
        """
        owner = self.memories.owner(user)
        chat = self.memories.memory.conversation(
            conversation, user_id=owner.user, tenant=owner.tenant, agent=agent
        )
        written = [
            await chat.record(*turn, id=_turn_id(conversation, key), at=at, metadata=metadata)
            for turn, key in zip(turns, keys or [uuid4().hex for _ in turns], strict=True)
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
        missing = NotFoundError(f"There is no memory {turn_id!r}.")
        encoded = turn_id.removeprefix(_PREFIX).partition(".")[0]
        try:
            conversation = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
            asked = Scope(self.memories.tenant, None, checked_id(conversation, "conversation"))
        except ValueError as error:
            raise missing from error
        scope = await self.memories.memory.engine.store.reader.owner(asked)
        if scope is None or scope.user is None:
            raise missing
        self.memories.owner(scope.user)
        for turn in await self._turns(scope):
            if turn.id == turn_id:
                return turn
        raise missing

    async def of(self, users: Sequence[str]) -> list[Turn]:
        """Those from which nothing was learnt, newest first; what was said again in the same words is there once."""
        found: list[Turn] = []
        known, memory = await self.memories.read_turns(users), self.memories.memory
        for user in users:
            after: str | None = None
            while True:
                turns = await memory.turns(
                    user_id=user, tenant=self.memories.tenant, limit=_PAGE, after=after
                )
                found += [one for one in turns if self._is_memory(one)]
                after = turns.next
                if after is None:
                    break
        # Whoever states a known fact again confirms it.
        said = {_statement(turn) for turn in found if turn.id in known}
        once: dict[tuple[str | None, str], Turn] = {}
        for turn in sorted(found, key=lambda turn: turn.at, reverse=True):
            if turn.id not in known and _statement(turn) not in said:
                once.setdefault(_statement(turn), turn)
        return list(once.values())

    def _is_memory(self, turn: Turn) -> bool:
        return is_said(turn.id) and bool(turn.user) and self._is_here(turn.scope)

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

    async def forget(self, turn: Turn) -> None:
        await self.memories.memory.forget(
            conversation_id=turn.scope.conversation, tenant=self.memories.tenant, turn_id=turn.id
        )

    async def _turns(self, scope: Scope) -> list[Turn]:
        found: list[Turn] = []
        query = EntryQuery(scope, frozenset({"turn"}), _DONE, limit=_PAGE)
        while True:
            entries = await self.memories.memory.engine.store.reader.entries(query)
            found += [one for one in entries if isinstance(one, Turn) and self._is_memory(one)]
            if len(entries) < _PAGE:
                return found
            query = replace(query, after_seq=entries[-1].seq or 0)


def _statement(turn: Turn) -> tuple[str | None, str]:
    return turn.scope.user, statement_key(turn.user or "")


def _turn_id(conversation: str, key: str) -> str:
    encoded = base64.urlsafe_b64encode(conversation.encode()).decode().rstrip("=")
    return f"{_PREFIX}{encoded}.{hashlib.sha256(key.encode()).hexdigest()[:32]}"
