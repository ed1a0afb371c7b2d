"""What other memories bring: turns, facts and sessions, and how they are written with the public verbs, idempotently."""

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from pagefile.edge.recorder import Called
from pagefile.engine import Conversation, Memory
from pagefile.errors import InvalidArgumentError, NotFoundError, TransferError
from pagefile.records import MAX_ID_CHARS, JsonObject, JsonValue, utc
from pagefile.text.fact_ranking import fact_key

#: The confidence of a fact that another memory's model extracted without rating it.
EXTRACTED_CONFIDENCE = 0.8

_ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
}


@dataclass(frozen=True, slots=True)
class BroughtFact:
    text: str
    #: None: the user it is imported for.
    user_id: str | None = None
    at: datetime | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True)
class BroughtTurn:
    """One exchange; either side may be missing, not both."""

    id: str
    user: str | None
    assistant: str | None
    #: None: the conversation it is imported into.
    conversation_id: str | None = None
    user_id: str | None = None
    steps: tuple[JsonObject, ...] = ()
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class BroughtSession:
    """What a session value says of the user and of what is being done: `user_snapshot` and `global_state`."""

    conversation_id: str
    user_id: str | None
    value: Mapping[str, JsonObject]


@dataclass(frozen=True, slots=True)
class Brought:
    """The contents of a dump, and what could not be imported."""

    turns: tuple[BroughtTurn, ...] = ()
    facts: tuple[BroughtFact, ...] = ()
    sessions: tuple[BroughtSession, ...] = ()
    #: What was left out and how often, in words: "system messages".
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])

    def of_user(self, user_id: str) -> "Brought":
        """The same turns, as this user's, whomever they name."""
        return replace(self, turns=tuple(replace(turn, user_id=user_id) for turn in self.turns))

    def without(self, seen: set[str]) -> "Brought":
        """Without turns that came already: agents copy a session's transcript when it is resumed or forked."""
        new = tuple(turn for turn in self.turns if turn.id not in seen)
        seen |= {turn.id for turn in new}
        copies = len(self.turns) - len(new)
        left_out = {**self.left_out, **({"copies of turns": copies} if copies else {})}
        return replace(self, turns=new, left_out=left_out)

    def __add__(self, other: "Brought") -> "Brought":
        left_out = Counter(self.left_out) + Counter(other.left_out)
        return Brought(
            self.turns + other.turns, self.facts + other.facts, self.sessions + other.sessions, dict(left_out)
        )


@dataclass(frozen=True, slots=True)
class Said:
    role: str
    text: str
    id: str | None = None
    calls: tuple[Called, ...] = ()
    at: datetime | None = None
    #: For a tool's result: the call it answers, and the tool's name if given.
    call_id: str | None = None
    tool: str | None = None


def turns_of(messages: Iterable[Said], conversation_id: str | None, user_id: str | None) -> Brought:
    """Groups messages into turns: each user message begins one, tool results become its steps, the rest its answer.

    A turn is named after its first message, or after its position, so that importing again gives the same turns.
    """
    groups: list[tuple[str, list[Said]]] = []
    left_out: Counter[str] = Counter()
    for place, said in enumerate(messages):
        role = _ROLES.get(said.role.lower())
        if role is None:
            left_out[f"{said.role or 'nameless'} messages"] += 1
        elif role == "user" and not said.text:
            left_out["messages without text"] += 1
        elif role == "user" or not groups:
            groups.append((named_turn(said, f"{conversation_id}:{place}"), [replace(said, role=role)]))
        else:
            groups[-1][1].append(replace(said, role=role))
    turns: list[BroughtTurn] = []
    for turn_id, group in groups:
        asked = group[0].text if group[0].role == "user" else None
        answer = "\n\n".join(said.text for said in group if said.role == "assistant" and said.text) or None
        steps = tuple(_steps(group))
        if asked is None and answer is None:
            left_out["tool results without a message"] += len(steps)
        else:
            turns.append(BroughtTurn(turn_id, asked, answer, conversation_id, user_id, steps, group[0].at))
    return Brought(turns=tuple(turns), left_out=dict(left_out))


def _steps(group: Iterable[Said]) -> Iterator[JsonObject]:
    calls: dict[str | None, Called] = {}
    for said in group:
        if said.role == "tool":
            call = calls.get(said.call_id) or Called(said.tool or "tool", None)
            named = {"call_id": said.call_id} if said.call_id else {}
            given = cast("JsonValue", call.input)
            yield {"tool": said.tool or call.tool, "input": given, "result": said.text, **named}
        calls |= {call.call_id: call for call in said.calls}


def named_turn(first: Said, otherwise: str) -> str:
    if first.id is not None and len(first.id) <= MAX_ID_CHARS:
        return first.id
    return named(f"pagefile:moving:{first.id or otherwise}")


# -- reading arbitrary JSON -------------------------------------------------------------------------------------------


def mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def named(place: str) -> str:
    """An id that is always the same for a place; half of a surrogate pair has no bytes of its own."""
    return str(uuid5(NAMESPACE_URL, place.encode("utf-8", "replace").decode()))


def items(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def text(value: object) -> str | None:
    return value.strip() if isinstance(value, str) and value.strip() else None


def first_text(values: Iterable[object]) -> str | None:
    return next(filter(None, map(text, values)), None)


#: From here on a number counts milliseconds: as seconds it would be after the year 5000.
_MILLISECONDS_FROM = 1e11


def moment(value: object) -> datetime | None:
    """A time in ISO 8601, or in seconds or milliseconds since 1970; UTC if it has no time zone."""
    try:
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > _MILLISECONDS_FROM else value, UTC)
        return utc(datetime.fromisoformat(value)) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None


def facts_brought(found: Sequence[BroughtFact | str]) -> Brought:
    """The facts; a text says what was left out instead."""
    left_out = Counter(one for one in found if isinstance(one, str))
    return Brought(facts=tuple(one for one in found if isinstance(one, BroughtFact)), left_out=dict(left_out))


#: Fields stored elsewhere: the owner, and the older name of the shared entities.
_SAID_ELSEWHERE = frozenset({"user_id", "entities"})


def filled(section: object) -> JsonObject:
    """The fields of a section that say something."""
    fields = mapping(section).items()
    return {
        name: value
        for name, value in fields
        if value not in (None, "", [], {}) and name not in _SAID_ELSEWHERE
    }


# -- writing ---------------------------------------------------------------------------------------------------------


class _Counts(dict[str, int]):
    """How many of each kind were written; tells each change."""

    def __init__(self, left_out: int, total: int, progress: Callable[[int, int], None] | None) -> None:
        super().__init__(turn=0, fact=0, session=0, known=0, rejected=0, left_out=left_out)
        self._total = total
        self._progress = progress

    def __setitem__(self, kind: str, count: int) -> None:
        super().__setitem__(kind, count)
        if self._progress is not None:
            self._progress(sum(self.values()) - self["left_out"], self._total)


async def take_over(
    memory: Memory,
    brought: Brought,
    *,
    user_id: str | None = None,
    conversation_id: str | None = None,
    tenant: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, int]:
    """Record the turns, remember the facts and set the sessions; counts what was new, known, rejected or left out.

    `user_id` and `conversation_id` are those of turns and facts that name none; `progress` is called with how many are done, and of
    how many.
    """
    # Before anything is written: every record has a user and a conversation.
    if conversation_id is None and any(turn.conversation_id is None for turn in brought.turns):
        raise TransferError(
            "These messages name no conversation: say which it is (conversation_id, --conversation)."
        )
    if user_id is None and any(fact.user_id is None for fact in brought.facts):
        raise TransferError("Some of these memories name no user: say whose they are (user_id, --user-id).")
    left_out = sum(brought.left_out.values())
    total = len(brought.turns) + len(brought.facts) + len(brought.sessions)
    counts = _Counts(left_out, total, progress)
    by_conversation = sorted(brought.turns, key=lambda turn: turn.conversation_id or "")  # a stable sort
    for name, group in groupby(by_conversation, key=lambda turn: turn.conversation_id):
        (whose, turns), *others = _by_user(list(group), user_id).items()
        chat = memory.conversation(name or conversation_id or "", user_id=whose, tenant=tenant)
        await _record(chat, turns, counts)
        # A conversation belongs to one user: what others said in one of the same name must not become theirs.
        counts["rejected"] += sum(len(theirs) for _, theirs in others)
    for whose in dict.fromkeys(fact.user_id for fact in brought.facts):
        # Oldest first, as they would have been remembered; those without a time last.
        theirs = [fact for fact in brought.facts if fact.user_id == whose]
        theirs.sort(key=lambda fact: math.inf if fact.at is None else fact.at.timestamp())
        await _remember(memory, theirs, whose or user_id or "", tenant, counts)
    for session in brought.sessions:
        whose = session.user_id or user_id
        chat = memory.conversation(session.conversation_id, user_id=whose, tenant=tenant)
        await _put(chat, session, counts)
    return dict(counts)


def _by_user(turns: Sequence[BroughtTurn], otherwise: str | None) -> dict[str | None, list[BroughtTurn]]:
    """The turns of a conversation by user. Turns that name none are the first one's."""
    first = next((turn.user_id for turn in turns if turn.user_id), otherwise)
    found: dict[str | None, list[BroughtTurn]] = {}
    for turn in turns:
        found.setdefault(turn.user_id or first, []).append(turn)
    return found


async def _put(chat: Conversation, session: BroughtSession, counts: dict[str, int]) -> None:
    """Set the fields of a session that are empty here."""
    there: Mapping[str, Any] = {}
    with suppress(NotFoundError):
        there = await chat.session() or {}
    change: dict[str, JsonObject] = {}
    for name, section in session.value.items():
        known = filled(there.get(name))
        if new := {field: value for field, value in section.items() if field not in known}:
            change[name] = new
    there_already = set[str]() if change else {chat.id}
    await _write("session", chat.id, partial(chat.put_session, change), there_already, counts)


async def _record(chat: Conversation, turns: Iterable[BroughtTurn], counts: dict[str, int]) -> None:
    known: dict[str, tuple[str | None, str | None]] = {}
    after: int | str | None = 0
    while after is not None:
        listing = await chat.turns(after=after, limit=1000)
        known |= {turn.id: (turn.user, turn.assistant) for turn in listing}
        after = listing.next
    there = set(known)
    for turn in turns:
        said = turn.user, turn.assistant
        if known.setdefault(turn.id, said) != said:
            # Something else has its id: it must not be counted as there already.
            counts["rejected"] += 1
            continue
        record = partial(chat.record, *said, steps=turn.steps, id=turn.id, at=turn.at)
        await _write("turn", turn.id, record, there, counts)


async def _write(
    kind: str, key: str, write: Callable[[], Awaitable[object]], known: set[str], counts: dict[str, int]
) -> None:
    if key in known:
        counts["known"] += 1
        return
    try:
        await write()
    except InvalidArgumentError:
        counts["rejected"] += 1
    else:
        known.add(key)
        counts[kind] += 1


async def _remember(
    memory: Memory, facts: Iterable[BroughtFact], user_id: str, tenant: str | None, counts: dict[str, int]
) -> None:
    # Including retracted facts: importing again must not bring them back.
    known = {fact_key(fact.text) for fact in await memory.facts(user_id, tenant, history=True)}
    remember = partial(memory.remember, user_id=user_id, tenant=tenant, confidence=EXTRACTED_CONFIDENCE)
    for fact in facts:
        one = partial(remember, fact.text, category=fact.category, valid_from=fact.at)
        await _write("fact", fact_key(fact.text), one, known, counts)
