"""Search through everything that was said: across conversations, by word, time, user, agent and tool.

No index is needed: conversations are read newest first, a bounded number of turns at a time, and where a search stopped is
where the next one continues.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

from pagefile.engine.arguments import moment
from pagefile.engine.memory import Memory
from pagefile.engine.ownership import on_behalf
from pagefile.errors import InvalidArgumentError
from pagefile.ports import ConversationQuery, MatchQuery, TurnRef
from pagefile.records import DEFAULT_TENANT, MAX_INT, ConversationInfo, Scope, Turn, checked_text

#: Turns and conversations that one search looks at, at most.
MOST_TURNS, MOST_CONVERSATIONS = 20_000, 500
#: Words of a search, and characters of each.
MOST_WORDS, MOST_CHARS = 8, 100
_AT_ONCE = 100
#: Turns that are read in one go, and in one search: those that match at first sight.
_CHUNK, _MOST_LOADED = 50, 1_000
_MAX_DIGITS = 16


@dataclass(frozen=True, slots=True)
class TurnQuery:
    """What to search for; an empty one finds every turn."""

    words: str = ""
    user_id: str | None = None
    conversation_id: str | None = None
    agent: str | None = None
    tool: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class FoundTurn:
    turn: Turn
    head: ConversationInfo


@dataclass(frozen=True, slots=True)
class FoundTurns:
    """Turns that match, those of the conversation that was written to last first."""

    turns: tuple[FoundTurn, ...]
    #: How many turns were looked at.
    searched: int
    #: Where to continue; None at the end.
    next: str | None


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A conversation, and up to which turn of it to search."""

    head: ConversationInfo
    before_seq: int

    @property
    def name(self) -> str:
        return self.head.scope.conversation or ""

    @property
    def turns(self) -> int:
        return min(self.head.last_seq, self.before_seq - 1)


@dataclass(slots=True)
class _Search:
    limit: int
    #: Where to continue.
    place: str | None
    turns: list[FoundTurn] = field(default_factory=list[FoundTurn])
    searched: int = 0
    loaded: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.turns) >= self.limit or self.loaded >= _MOST_LOADED

    def found(self, place: str | None) -> FoundTurns:
        return FoundTurns(tuple(self.turns), self.searched, place)

    async def read(
        self,
        memory: Memory,
        scope: Scope,
        refs: Sequence[TurnRef],
        chosen: Sequence[_Stretch],
        tool: str | None,
        words: Sequence[str],
    ) -> bool:
        """Take the turns that really match; returns whether some were not looked at."""
        heads = {one.name: one.head for one in chosen}
        for start in range(0, len(refs), _CHUNK):
            part = refs[start : start + _CHUNK]
            turns = {
                (one.scope.conversation, one.seq): one
                for one in await memory.engine.store.source.at(scope, part)
            }
            for number, ref in enumerate(part):
                if self.is_full:
                    return True
                turn, self.place = turns.get((ref.conversation, ref.seq)), f"{ref.seq} {ref.conversation}"
                self.loaded += 1
                if turn is not None and _says(turn, words, tool):
                    self.turns.append(FoundTurn(turn, heads[ref.conversation]))
                if self.is_full and start + number + 1 < len(refs):
                    return True
        return False


async def search_turns(
    memory: Memory, query: TurnQuery, *, tenant: str | None = None, limit: int = 20, after: str | None = None
) -> FoundTurns:
    """One slice of what matches; it may be empty though there is more, if much was looked at."""
    memory.engine.check_open()
    named = Scope(tenant or DEFAULT_TENANT, query.user_id, query.conversation_id)
    scope = await on_behalf(memory.engine.store.reader, named)
    words = _words(query.words)
    stretches, more = await _stretches(memory, scope, query.agent, after)
    batches = _batches(stretches)
    search = _Search(limit, after)
    for chosen, floor in batches:
        if search.is_full or search.searched >= MOST_TURNS:
            return search.found(search.place)
        refs = await memory.engine.store.reader.matching(_asked(query, words, chosen, floor))
        search.searched += sum(one.turns - floor for one in chosen)
        ordered = _in_order(refs, chosen)
        left = await search.read(memory, scope, ordered, chosen, query.tool, words)
        if left or floor:
            return search.found(search.place if left else f"{floor + 1} {chosen[0].name}")
        if not search.is_full:
            search.place = f"0 {chosen[-1].name}"
    return search.found(more)


async def turns_by_id(
    memory: Memory, turn_ids: Sequence[str], *, user_id: str | None, tenant: str | None
) -> dict[str, Turn]:
    """Turns of a tenant, or of one of its users, whichever conversation they are in; open ones are left out."""
    if not turn_ids:
        return {}
    scope, store = Scope(tenant or DEFAULT_TENANT, user_id), memory.engine.store
    places = await store.reader.located(scope, turn_ids)
    refs = [TurnRef(one.scope.conversation or "", one.seq) for one in places.values() if one.seq is not None]
    return {turn.id: turn for turn in await store.source.at(scope, refs)}


def _words(text: str) -> list[str]:
    words = checked_text(text, "words").split()
    if len(words) > MOST_WORDS or any(len(word) > MOST_CHARS for word in words):
        raise InvalidArgumentError(
            f"Search for at most {MOST_WORDS} words of {MOST_CHARS} characters each: give the rarest."
        )
    return words


async def _stretches(
    memory: Memory, scope: Scope, agent: str | None, after: str | None
) -> tuple[list[_Stretch], str | None]:
    """The conversations to search, and where to continue if there are more of them."""
    reader, made = memory.engine.store.reader, list[_Stretch]()
    seq, name = _place(after)
    if name is not None and seq:
        place = await on_behalf(reader, Scope(scope.tenant, scope.user, name))
        heads = await reader.heads(ConversationQuery(place, 1))
        made += [_Stretch(head, seq) for head in heads if seq > 1]
    if scope.conversation is not None and name is not None:
        return made, None
    heads = await reader.heads(ConversationQuery(scope, MOST_CONVERSATIONS + 1, name))
    shown = heads[:MOST_CONVERSATIONS]
    made += [_Stretch(head, MAX_INT) for head in shown if head.last_seq]
    more = f"0 {shown[-1].scope.conversation}" if len(heads) > len(shown) else None
    return [one for one in made if agent in {None, one.head.agent}], more


def _place(after: str | None) -> tuple[int, str | None]:
    if after is None:
        return 0, None
    seq, _, name = checked_text(after, "after").partition(" ")
    if not (seq.isascii() and seq.isdecimal() and len(seq) <= _MAX_DIGITS and name):
        raise InvalidArgumentError(f"after is {after[:80]!r}: give `next` of the slice before, as it is.")
    return int(seq), name


def _batches(stretches: Sequence[_Stretch]) -> list[tuple[list[_Stretch], int]]:
    """Conversations to search with one query each, with the turn after which to search.

    One that was begun before, or is longer than a whole search, is searched alone.
    """
    batches: list[tuple[list[_Stretch], int]] = []
    open_turns = 0
    for one in stretches:
        alone = one.before_seq < MAX_INT or one.turns > MOST_TURNS
        open_turns += one.turns
        if not alone and batches and open_turns <= MOST_TURNS // 10 and len(batches[-1][0]) < _AT_ONCE:
            batches[-1][0].append(one)
            continue
        batches.append(([one], max(0, one.turns - MOST_TURNS) if alone else 0))
        # Nothing is added to one that is searched alone.
        open_turns = MOST_TURNS if alone else one.turns
    return batches


def _asked(query: TurnQuery, words: Sequence[str], chosen: Sequence[_Stretch], floor: int) -> MatchQuery:
    return MatchQuery(
        chosen[0].head.scope.tenant,
        [one.name for one in chosen],
        words,
        query.tool,
        None if query.since is None else moment(query.since),
        None if query.until is None else moment(query.until),
        floor,
        chosen[0].before_seq,
    )


def _says(turn: Turn, words: Sequence[str], tool: str | None) -> bool:
    """Whether a turn has the words: the store finds them in the names of JSON's fields too."""
    if tool is not None and all(step.tool != tool for step in turn.steps):
        return False
    steps = (f"{step.tool} {json.dumps(step.input, ensure_ascii=False)} {step.result}" for step in turn.steps)
    said = "\n".join([turn.text, *steps]).lower()
    return all(word.lower() in said for word in words)


def _in_order(matches: Sequence[TurnRef], chosen: Sequence[_Stretch]) -> list[TurnRef]:
    by_name = {name: list(refs) for name, refs in groupby(matches, key=lambda ref: ref.conversation)}
    return [ref for one in chosen for ref in by_name.get(one.name, ())]
