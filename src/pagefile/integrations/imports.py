"""Imports from other memories: mem0, redis agent-memory-server, LangChain's histories, and the tables of short-term memory and conversation history.

Each format has a pure reader from its API's JSON to `Brought`; `take_over` writes that with the public verbs, idempotently.
None of the packages read from is required. What coding agents keep is read by `transcripts`, what people take out of their assistants by
`assistant_exports`, Letta and Zep by `memory_dumps`.
"""

import csv
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Final, cast

import anyio.to_thread

from pagefile.edge.recorder import Called
from pagefile.errors import TransferError
from pagefile.integrations import assistant_exports, memory_dumps, transcripts
from pagefile.integrations.brought import (
    Brought,
    BroughtFact,
    BroughtSession,
    BroughtTurn,
    Said,
    facts_brought,
    filled,
    first_text,
    items,
    mapping,
    moment,
    named_turn,
    take_over,
    text,
    turns_of,
)
from pagefile.records import CHECKPOINT_QUERY, JsonObject
from pagefile.shapes.tool_arguments import read_arguments
from pagefile.standalone.agent_memory import texts_in
from pagefile.standalone.session import SESSION_KEY, SessionValue

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
    return facts_brought([*found, *("graph relations" for _ in relations)])


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
        yield BroughtFact(said, user, at, first_text(named))


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
    return brought + facts_brought(
        [_redis_memory(mapping(one), user) for one in items(answer.get("memories"))]
    )


def _redis_memory(memory: Mapping[str, Any], user: str | None) -> BroughtFact | str:
    said = text(memory.get("text"))
    if said is None or memory.get("memory_type") == "message":
        return "memories without text" if said is None else "copies of messages"
    # When it happened, else when it was learnt.
    at = moment(memory.get("event_date")) or moment(memory.get("created_at"))
    category = first_text(items(memory.get("topics")))
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
            name, at = named_turn(first, f"{chat}:{place}"), moment(row.get("create_time"))
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
        sections = {name: filled(session.to_json()[name]) for name in ("user_snapshot", "global_state")}
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


#: What people and agents said: it is imported for the user of the MCP server, where it can be recalled.
CONVERSATIONS: Final[Mapping[str, Callable[[object], Brought]]] = {
    **transcripts.FORMATS,
    **assistant_exports.FORMATS,
    **memory_dumps.FORMATS,
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
    **CONVERSATIONS,
}


#: Rows of a table, which databases also dump as CSV.
_TABLES = frozenset({"ai-message", "messages", "episodes"})
#: The files of an export that is a zip archive, by their paths in it.
_IN_ARCHIVES = {**assistant_exports.IN_ARCHIVES, **memory_dumps.IN_ARCHIVES}
_ANY_JSON = r".*\.json"
#: More than any export has, unpacked.
_MAX_UNPACKED_BYTES = 4_000_000_000


async def read_dump(path: str | PathLike[str], kind: str) -> Brought:
    """The contents of a file in one of the `FORMATS`: JSON, one JSON object a line, or a zip archive with JSON in it; of a table also
    CSV with a header.
    """
    if kind not in FORMATS:
        raise TransferError(f"There is no format {kind!r}: it is one of {', '.join(FORMATS)}.")
    try:
        return await anyio.to_thread.run_sync(_read, Path(path), kind)
    except (
        OSError,
        ValueError,
        RecursionError,
        csv.Error,
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
    ) as error:
        if isinstance(error, TransferError):
            raise
        shapes = "JSON or JSON lines" + (", or CSV with a header" if kind in _TABLES else "")
        raise TransferError(f"Cannot read {str(path)!r} as {shapes}: {error}.") from error


def _read(path: Path, kind: str) -> Brought:
    read, is_table = FORMATS[kind], kind in _TABLES
    if path.suffix == ".jsonl":
        return _read_lines(path, read)
    if path.suffix == ".zip":
        return _read_archive(path, kind)
    dump = path.read_text(encoding="utf-8-sig")
    in_json = not is_table or dump.lstrip().startswith(("[", "{"))
    return read(_json(dump) if in_json else _csv_rows(dump))


def _read_archive(path: Path, kind: str) -> Brought:
    named = re.compile(_IN_ARCHIVES.get(kind, _ANY_JSON))
    with zipfile.ZipFile(path) as archive:
        found = [one for one in archive.infolist() if named.fullmatch(one.filename)]
        if not found:
            as_html = any(one.filename.endswith(".html") for one in archive.infolist())
            hint = " It has HTML: ask for the same export as JSON." if as_html else ""
            raise TransferError(f"There are no conversations in {str(path)!r}.{hint}")
        if sum(one.file_size for one in found) > _MAX_UNPACKED_BYTES:
            raise TransferError(
                f"{str(path)!r} is too large to be unpacked in memory: unpack it, and import its files."
            )
        dumps = (json.loads(archive.read(one).decode("utf-8-sig")) for one in found)
        return sum(map(FORMATS[kind], dumps), Brought())


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


def _read_lines(path: Path, read: Callable[[object], Brought]) -> Brought:
    """Lines that are not JSON are left out: the last one may be half written."""
    data: list[object] = []
    damaged = 0
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for line in file:
            try:
                data += [json.loads(line)] if line.strip() else []
            except (ValueError, RecursionError):
                damaged += 1
    return read(data) + Brought(left_out={"damaged lines": damaged} if damaged else {})


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
