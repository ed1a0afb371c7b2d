"""Imports from other memories: mem0, redis agent-memory-server, LangChain's histories, and the tables of short-term memory and conversation history.

Each format has a pure reader from its API's JSON to `Brought`; `take_over` writes that with the public verbs, idempotently.
None of the packages read from is required.
"""

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from os import PathLike
from typing import Any, Final, cast
from uuid import NAMESPACE_URL, uuid5

import anyio

from pagefile.engine import Conversation, Memory
from pagefile.errors import InvalidArgumentError, NotFoundError, TransferError
from pagefile.integrations.recorder import Called
from pagefile.records import CHECKPOINT_QUERY, MAX_ID_CHARS, JsonObject, JsonValue, utc
from pagefile.shapes.tool_arguments import read_arguments
from pagefile.standalone.agent_memory import texts_in
from pagefile.standalone.session import SESSION_KEY, SessionValue
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
            groups.append((_turn_id(said, f"{conversation_id}:{place}"), [replace(said, role=role)]))
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


def _turn_id(first: Said, otherwise: str) -> str:
    if first.id is not None and len(first.id) <= MAX_ID_CHARS:
        return first.id
    return str(uuid5(NAMESPACE_URL, f"pagefile:moving:{first.id or otherwise}"))


# -- reading arbitrary JSON -------------------------------------------------------------------------------------------


def mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def items(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def text(value: object) -> str | None:
    return value.strip() if isinstance(value, str) and value.strip() else None


def _first_text(values: Iterable[object]) -> str | None:
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


# -- mem0 -------------------------------------------------------------------------------------------------------------


def from_mem0(data: object) -> Brought:
    """The memories that `get_all()` returns as facts, from `{"results": […]}` or the list alone.

    A memory without a user goes to the user it is imported for. Graph relations are left out: mem0 derived them from the memories.
    """
    listed: object = cast("object", data) if isinstance(data, list) else mapping(data).get("results")
    if not isinstance(listed, list):
        raise TransferError(
            'This is not a dump of mem0: it has no list of "results". Write what get_all() returns.'
        )
    found = [one for raw in cast("list[object]", listed) for one in _mem0_memory(mapping(raw))]
    relations = items(mapping(cast("object", data)).get("relations"))
    return _facts([*found, *("graph relations" for _ in relations)])


def _mem0_memory(memory: Mapping[str, Any]) -> Iterator[BroughtFact | str]:
    said = text(memory.get("memory"))
    if said is None:
        yield "memories without text"
    elif memory.get("role") == "assistant":
        # Stored verbatim (`infer=False`): not a statement about the user.
        yield "words of the assistant"
    else:
        if memory.get("expiration_date"):
            yield "expiry dates"
        named = [*items(memory.get("categories")), mapping(memory.get("metadata")).get("category")]
        user, at = text(memory.get("user_id")), moment(memory.get("created_at"))
        yield BroughtFact(said, user, at, _first_text(named))


def _facts(found: Sequence[BroughtFact | str]) -> Brought:
    """The facts; a text says what was left out instead."""
    left_out = Counter(one for one in found if isinstance(one, str))
    return Brought(facts=tuple(one for one in found if isinstance(one, BroughtFact)), left_out=dict(left_out))


# -- redis agent-memory-server ----------------------------------------------------------------------------------------


def from_redis_agent_memory(data: object) -> Brought:
    """A session's working memory (`GET /v1/working-memory/{session_id}`), a response of the long-term search
    (`POST /v1/long-term-memory/search`), or a list of either.

    What the server summarized (`context`) becomes the first turn of its conversation, as the assistant's message. Memories of type
    "message" are left out: they duplicate messages.
    """
    answers = cast("list[object]", data) if isinstance(data, list) else [data]
    return sum((_session(mapping(answer)) for answer in answers), Brought())


def _session(answer: Mapping[str, Any]) -> Brought:
    if not isinstance(answer.get("messages"), list) and not isinstance(answer.get("memories"), list):
        raise TransferError(
            "This is not a dump of redis agent-memory-server: it has neither messages nor memories. Write what "
            "GET /v1/working-memory/{session_id} or POST /v1/long-term-memory/search returns."
        )
    session, user = text(answer.get("session_id")), text(answer.get("user_id"))
    brought = turns_of(map(_said, items(answer.get("messages"))), session, user)
    if answer.get("data"):
        brought += Brought(left_out={"data of sessions": 1})
    if summary := text(answer.get("context")):
        first = brought.turns[0].at if brought.turns else moment(answer.get("created_at"))
        before = BroughtTurn(f"{session}:context", None, summary, session, user, at=first)
        brought = Brought(turns=(before,)) + brought
    return brought + _facts([_redis_memory(mapping(one), user) for one in items(answer.get("memories"))])


def _redis_memory(memory: Mapping[str, Any], user: str | None) -> BroughtFact | str:
    said = text(memory.get("text"))
    if said is None or memory.get("memory_type") == "message":
        return "memories without text" if said is None else "copies of messages"
    # When it happened, else when it was learnt.
    at = moment(memory.get("event_date")) or moment(memory.get("created_at"))
    category = _first_text(items(memory.get("topics")))
    return BroughtFact(said, text(memory.get("user_id")) or user, at, category)


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
    return Said(
        role=str(fields.get("role") or fields.get("type") or ""),
        text="\n".join(filter(None, texts_in(fields.get("content")))),
        id=text(fields.get("id")),
        calls=tuple(_call(mapping(call)) for call in items(fields.get("tool_calls"))),
        at=moment(fields.get("created_at")),
        call_id=text(fields.get("tool_call_id")),
        tool=text(fields.get("name")) if fields.get("tool_call_id") else None,
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
        value, spelling = read_arguments(given)
        given = {"arguments": given} if spelling == "text" else value
    name = str(function.get("name") or call.get("name") or "tool")
    return Called(name, given, text(call.get("id")))


# -- tables of one's own ----------------------------------------------------------------------------------------------


def from_ai_message(data: object) -> Brought:
    """Rows of a table `ai_message` with a question and its answer each, oldest first; rows that mark a summary are left out."""
    turns: list[BroughtTurn] = []
    left_out: Counter[str] = Counter()
    for place, row in enumerate(_rows(data, "create_time")):
        chat, asked, answer = (text(row.get(name)) for name in ("conversation_id", "query", "answer"))
        if asked == CHECKPOINT_QUERY:
            left_out["checkpoints, which are made again"] += 1
        elif asked is None and answer is None:
            left_out["rows without text"] += 1
        else:
            first = Said("user", asked or "", text(row.get("message_id")))
            name, at = _turn_id(first, f"{chat}:{place}"), moment(row.get("create_time"))
            turns.append(BroughtTurn(name, asked, answer, chat, text(row.get("create_by")), at=at))
    return Brought(turns=tuple(turns), left_out=dict(left_out))


def from_messages(data: object) -> Brought:
    """Rows of a table of messages, one for each side: `conversation_id`, `role`, `content`, `created_at`, and perhaps `id`."""
    chats: dict[str | None, list[Said]] = {}
    for row in _rows(data, "created_at"):
        said = Said(
            str(row.get("role") or ""),
            text(row.get("content")) or "",
            text(row.get("id")),
            at=moment(row.get("created_at")),
        )
        chats.setdefault(text(row.get("conversation_id")), []).append(said)
    return sum((turns_of(said, chat, None) for chat, said in chats.items()), Brought())


def from_episodes(data: object) -> Brought:
    """Rows of a collection of episodes: `user_message`, `assistant_message`, `conversation_id`, `created_at` (or `timestamp`), and perhaps `id`."""
    names = {"message_id": "id", "query": "user_message", "answer": "assistant_message"}
    return from_ai_message(
        [
            {
                "conversation_id": row.get("conversation_id"),
                "create_time": row.get("created_at") or row.get("timestamp"),
                **{name: row.get(old) for name, old in names.items()},
            }
            for row in map(mapping, items(data))
        ]
    )


def _rows(data: object, when: str) -> list[Mapping[str, Any]]:
    """The rows in the order of their times; one without a readable time stays behind the row before it."""
    rows, at = [*map(mapping, items(data))], datetime.min.replace(tzinfo=UTC)
    placed: list[datetime] = []
    for row in rows:
        at = moment(row.get(when)) or at
        placed.append(at)
    return [rows[place] for place in sorted(range(len(rows)), key=placed.__getitem__)]


def from_sessions(data: object) -> Brought:
    """Session values of short-term memory by their keys in Redis, each as JSON or as the text of it; or a list of them.

    Their messages and summaries are left out: those are rows of `ai_message`.
    """
    named = mapping(data) or {str(place): value for place, value in enumerate(items(data))}
    found: list[BroughtSession] = []
    left_out: Counter[str] = Counter()
    for key, value in ((str(key), value) for key, value in named.items()):
        session = SessionValue.of(cast("JsonObject", _parsed(value)))
        chat = session.meta.conversation_id or key.removeprefix(SESSION_KEY % "")
        if not mapping(_parsed(value)) or (chat == key and not isinstance(data, Mapping)):
            left_out["values that are not sessions"] += 1
            continue
        said = len(session.message_context.window_messages)
        left_out["messages of sessions, which ai_message has"] += said
        sections = {name: _filled(session.to_json()[name]) for name in ("user_snapshot", "global_state")}
        given = {name: section for name, section in sections.items() if section}
        found.append(
            BroughtSession(chat, session.meta.user_id or session.user_snapshot.user_id or None, given)
        )
    return Brought(sessions=tuple(found), left_out=dict(+left_out))


def _parsed(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return None


#: Fields stored elsewhere: the owner, and the older name of the shared entities.
_SAID_ELSEWHERE = frozenset({"user_id", "entities"})


def _filled(section: object) -> JsonObject:
    """The fields of a section that say something."""
    fields = mapping(section).items()
    return {
        name: value
        for name, value in fields
        if value not in (None, "", [], {}) and name not in _SAID_ELSEWHERE
    }


#: The reader for each format, by its name in `pagefile import --from`.
FORMATS: Final[Mapping[str, Callable[[object], Brought]]] = {
    "mem0": from_mem0,
    "redis-agent-memory": from_redis_agent_memory,
    "langchain": from_langchain,
    "ai-message": from_ai_message,
    "messages": from_messages,
    "episodes": from_episodes,
    "sessions": from_sessions,
}


#: Rows of a table, which databases also dump as CSV.
_TABLES = frozenset({"ai-message", "messages", "episodes"})


async def read_dump(path: str | PathLike[str], kind: str) -> Brought:
    """The contents of a file in one of the `FORMATS`: JSON, or one JSON object a line; of a table also CSV with a header."""
    read = FORMATS.get(kind)
    if read is None:
        raise TransferError(f"There is no format {kind!r}: it is one of {', '.join(FORMATS)}.")
    try:
        dump = await anyio.Path(path).read_text(encoding="utf-8-sig")
        data = (
            _csv_rows(dump) if kind in _TABLES and not dump.lstrip().startswith(("[", "{")) else _json(dump)
        )
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        shapes = "JSON or JSON lines" + (", or CSV with a header" if kind in _TABLES else "")
        raise TransferError(f"Cannot read {str(path)!r} as {shapes}: {error}.") from error
    return read(data)


def _json(dump: str) -> object:
    """A JSON text, or a list of those of its lines."""
    try:
        return json.loads(dump)
    except ValueError:
        lines = [line for line in dump.splitlines() if line.strip()]
        if len(lines) < 2 or not lines[0].rstrip().endswith("}"):
            raise
        return [json.loads(line) for line in lines]


def _csv_rows(dump: str) -> list[dict[str, str | None]]:
    """The rows of a table as `COPY … TO … CSV HEADER` and the like write it."""
    rows = [*csv.DictReader(io.StringIO(dump))]
    if not rows or "conversation_id" not in rows[0]:
        raise ValueError("its first line names no column conversation_id")
    return rows


async def take_over(
    memory: Memory,
    brought: Brought,
    *,
    user_id: str | None = None,
    conversation_id: str | None = None,
    tenant: str | None = None,
) -> dict[str, int]:
    """Record the turns, remember the facts and set the sessions; counts what was new, known, rejected or left out.

    `user_id` and `conversation_id` are those of turns and facts that name none.
    """
    # Before anything is written: every record has a user and a conversation.
    if conversation_id is None and any(turn.conversation_id is None for turn in brought.turns):
        raise TransferError(
            "These messages name no conversation: say which it is (conversation_id, --conversation)."
        )
    if user_id is None and any(fact.user_id is None for fact in brought.facts):
        raise TransferError("Some of these memories name no user: say whose they are (user_id, --user-id).")
    left_out = sum(brought.left_out.values())
    counts = {"turn": 0, "fact": 0, "session": 0, "known": 0, "rejected": 0, "left_out": left_out}
    by_conversation = sorted(brought.turns, key=lambda turn: turn.conversation_id or "")  # a stable sort
    for name, group in groupby(by_conversation, key=lambda turn: turn.conversation_id):
        turns = list(group)
        whose = next((turn.user_id for turn in turns if turn.user_id), user_id)
        chat = memory.conversation(name or conversation_id or "", user_id=whose, tenant=tenant)
        await _record(chat, turns, counts)
    for whose in dict.fromkeys(fact.user_id for fact in brought.facts):
        # Oldest first, as they would have been remembered; those without a time last.
        theirs = [fact for fact in brought.facts if fact.user_id == whose]
        theirs.sort(key=lambda fact: math.inf if fact.at is None else fact.at.timestamp())
        await _remember(memory, theirs, whose or user_id or "", tenant, counts)
    for session in brought.sessions:
        whose = session.user_id or user_id
        chat = memory.conversation(session.conversation_id, user_id=whose, tenant=tenant)
        await _put(chat, session, counts)
    return counts


async def _put(chat: Conversation, session: BroughtSession, counts: dict[str, int]) -> None:
    """Set the fields of a session that are empty here."""
    there: Mapping[str, Any] = {}
    with suppress(NotFoundError):
        there = await chat.session() or {}
    change: dict[str, JsonObject] = {}
    for name, section in session.value.items():
        known = _filled(there.get(name))
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
            # Something else has its id: it is not there, and nobody may believe so.
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


__all__ = [
    "FORMATS",
    "Brought",
    "BroughtFact",
    "BroughtTurn",
    "from_langchain",
    "from_mem0",
    "from_redis_agent_memory",
    "read_dump",
    "take_over",
]
