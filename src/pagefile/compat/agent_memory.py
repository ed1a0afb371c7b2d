"""The routes of redis/agent-memory-server: `MemoryAPIClient(MemoryClientConfig(base_url="http://127.0.0.1:8000/agent-memory"))`.

A session's working memory is kept as the client sent it, and its exchanges are recorded as turns beside. Long-term memories are
facts. `memory_prompt` is a window of Pagefile's, so it keeps its budget.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, cast
from uuid import uuid4

from pagefile.compat.api import (
    Answer,
    Api,
    Asked,
    Handler,
    count_in,
    number_in,
    object_in,
    required,
    text_in,
    texts_in,
    unsupported,
)
from pagefile.compat.memories import Entry
from pagefile.compat.said import Said, exchanges, is_said
from pagefile.errors import AccessError, ConflictError, InvalidArgumentError, NotFoundError
from pagefile.ports import OWN_NAMESPACE, ItemKey, ItemWrite, StoredItem
from pagefile.record_json import to_json
from pagefile.records import Fact, JsonValue, Scope, Turn, utc
from pagefile.shapes.skeleton import as_list, as_object, objects_in
from pagefile.tiers.base import off_loop
from pagefile.tiers.fact_book import Draft

_SESSIONS = (OWN_NAMESPACE, "working memory")
#: Whose memories those are that name no user.
_NOBODY = "agent-memory:no-user"
_MAX_PAGE = 1_000
#: More memories are filtered in a thread.
_LARGE = 2_000
#: The window of a prompt whose caller names none.
_WINDOW_TOKENS = 8_000
#: What a memory has beside its text, as the client sent it.
_ATTRIBUTES = ("session_id", "namespace", "topics", "entities", "memory_type", "event_date", "extracted_from")
_SUMMARIZE_FROM = 0.7
_MAX_DAYS = 365_000
_TIMES: Mapping[str, Callable[[Any, Any], bool]] = {
    "gte": operator.ge,
    "lte": operator.le,
    "eq": operator.eq,
    "gt": operator.gt,
    "lt": operator.lt,
}


def _said(asked: Asked) -> Said:
    return Said(asked.memories, "agent-memory")


# -- working memory --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Session:
    """One session's working memory."""

    asked: Asked
    id: str
    user: str | None
    namespace: str | None

    @classmethod
    def of(cls, asked: Asked, session_id: str) -> "_Session":
        user = asked.query.get("user_id") or text_in(asked.fields, "user_id") or asked.user
        if asked.user not in {None, user}:
            raise AccessError(f"This key is for the user {asked.user!r}: it reaches nobody else's sessions.")
        namespace = asked.query.get("namespace") or text_in(asked.fields, "namespace")
        return cls(asked, session_id, user, namespace)

    @property
    def scope(self) -> Scope:
        return Scope(self.asked.tenant, self.user)

    @property
    def key(self) -> ItemKey:
        return (*_SESSIONS, self.namespace or "default"), self.id

    @property
    def owner(self) -> str:
        return self.user or _NOBODY

    async def conversation(self) -> str | None:
        """Where its exchanges are recorded; None if there is no such session. One that was deleted or has expired begins again."""
        item = await self._item()
        if item is None:
            return None
        begun = f"{item.created:%Y%m%dT%H%M%S%f}"
        return _said(self.asked).conversation(self.owner, self.namespace, self.id, begun)

    async def located(self) -> "_Session":
        """The session itself; where no user is named and no such session has none, that of the one user who has it."""
        if self.user is not None or await self.read() is not None:
            return self
        owned = [replace(self, user=user) for user in await _owners(self.asked) if user is not None]
        found = [one for one in owned if await one.read() is not None]
        return found[0] if len(found) == 1 else self

    async def read(self) -> dict[str, Any] | None:
        found = await self._item()
        return None if found is None else cast("dict[str, Any]", found.value)

    async def _item(self) -> StoredItem | None:
        items, now = self.asked.memory.engine.store.items, self.asked.memory.engine.clock.now()
        (found,) = await items.get(self.scope, [self.key], now=now)
        return found

    async def write(self, value: dict[str, Any] | None) -> None:
        engine = self.asked.memory.engine
        ttl_s = None if value is None else number_in(value, "ttl_seconds")
        if ttl_s is not None and ttl_s <= 0:
            raise InvalidArgumentError("`ttl_seconds` must be above 0.")
        write = ItemWrite(*self.key, value, ttl_s)
        await engine.store.items.write(self.scope, [write], now=engine.clock.now())

    def shown(self, value: dict[str, Any]) -> dict[str, Any]:
        """As the client reads it; of a session that is larger than its window, the summary and the last messages."""
        most = _window(self.asked)
        count = self.asked.memory.engine.counter.count
        sizes = [count(str(one.get("content", ""))) for one in value["messages"]]
        total = sum(sizes)
        kept = value["messages"]
        if most is not None and total > _SUMMARIZE_FROM * most:
            kept = _last(kept, sizes, int(_SUMMARIZE_FROM * most))
        used = None if most is None else min(100.0, 100 * total / most)
        until = None if most is None else min(100.0, 100 * total / (_SUMMARIZE_FROM * most))
        public = {name: inner for name, inner in value.items() if name != "recorded"}
        return {
            **public,
            "messages": kept,
            "tokens": total,
            "context_percentage_total_used": used,
            "context_percentage_until_summarization": until,
            "new_session": False,
            "unsaved": False,
        }


def _last(messages: Sequence[Any], sizes: Sequence[int], most: int) -> list[Any]:
    kept, left = list[Any](), most
    for message, size in zip(reversed(messages), reversed(sizes), strict=True):
        if kept and size > left:
            break
        kept.append(message)
        left -= size
    return kept[::-1]


def _window(asked: Asked) -> int | None:
    given = asked.query.get("context_window_max")
    return None if given is None else count_in({"context_window_max": given}, "context_window_max", 1, 10**9)


async def _put_session(asked: Asked, session_id: str) -> Answer:
    session, fields = _Session.of(asked, session_id), asked.fields
    before = await session.read() or {}
    now = to_json(asked.memory.engine.clock.now())
    value: dict[str, Any] = {
        "memories": [],
        "data": None,
        "context": None,
        "long_term_memory_strategy": {"strategy": "discrete", "config": {}},
        "ttl_seconds": None,
        **{name: inner for name, inner in fields.items() if name not in {"tokens", "recorded"}},
        "messages": _messages(fields.get("messages"), before.get("messages", []), now),
        "session_id": session_id,
        "user_id": session.user,
        "namespace": session.namespace,
        "last_accessed": now,
        "recorded": before.get("recorded", []),
    }
    if not before:
        # It begins now: its exchanges belong to this session, and not to one of this name that was deleted.
        await session.write(value)
    await _record(session, value)
    await _promote(session, value)
    value["context"] = value["context"] or await _summary(session, value)
    await session.write(value)
    return Answer({**session.shown(value), "new_session": not before})


def _messages(given: object, before: Sequence[Mapping[str, Any]], now: JsonValue) -> list[dict[str, Any]]:
    """Messages with ids; one without that was already there keeps the id it was given then."""
    listed, found = as_list(given or []), list[dict[str, Any]]()
    if listed is None:
        raise InvalidArgumentError("`messages` must be a list of messages.")
    for place, one in enumerate(as_object(inner) or {} for inner in listed):
        message = _message(one, now)
        held: Mapping[str, Any] = before[place] if place < len(before) else {}
        if one.get("id") is None and all(held.get(name) == message[name] for name in ("role", "content")):
            message = {**held, **one, "id": held["id"]}
        found.append(message)
    return found


def _message(given: Mapping[str, Any], now: JsonValue) -> dict[str, Any]:
    if not isinstance(given.get("content"), str) or not isinstance(given.get("id", ""), str | None):
        raise InvalidArgumentError(
            "Every message needs `role` and `content`, and its `id` must be text, too."
        )
    made = {"id": str(uuid4()), "created_at": now, "discrete_memory_extracted": "f"}
    own = {name: inner for name, inner in given.items() if name != "id" or inner is not None}
    return {**made, **own, "role": required(given, "role")}


async def _record(session: _Session, value: dict[str, Any]) -> None:
    """Write the exchanges that are new as turns; a question without an answer waits for it."""
    known = set(value["recorded"])
    new = [one for one in value["messages"] if one["id"] not in known]
    while new and new[-1]["role"] != "assistant":
        new.pop()
    turns = exchanges((one["role"], one["content"]) for one in new)
    about = {"session_id": session.id, "namespace": session.namespace}
    metadata = {name: inner for name, inner in about.items() if inner is not None}
    conversation = await session.conversation()
    if turns and conversation is not None:
        # By the messages' ids: two workers that save the same session at once write the same turns.
        keys = [
            f"{asked} {answered}" for asked, answered in exchanges((one["role"], one["id"]) for one in new)
        ]
        said = _said(session.asked)
        await said.record(session.owner, conversation, turns, keys=keys, metadata=metadata)
    value["recorded"] = [*value["recorded"], *(one["id"] for one in new)]
    for one in new:
        one["discrete_memory_extracted"] = "t"


async def _promote(session: _Session, value: dict[str, Any]) -> None:
    """Structured memories of a session become long-term ones when it is saved."""
    now = to_json(session.asked.memory.engine.clock.now())
    promoted: list[dict[str, Any]] = []
    for one in objects_in(value["memories"]):
        if one.get("persisted_at") is None:
            about = {"session_id": session.id, "namespace": session.namespace, "user_id": session.user}
            await _store(session.asked, {**about, **one})
            one["persisted_at"] = now
        promoted.append(one)
    value["memories"] = promoted


async def _summary(session: _Session, value: dict[str, Any]) -> str | None:
    """What the messages that no longer fit the client's window said; None while all fit."""
    if len(session.shown(value)["messages"]) == len(value["messages"]) or not value["recorded"]:
        return None
    conversation = await session.conversation()
    if conversation is None:
        return None
    chat = session.asked.memory.conversation(conversation, user_id=session.owner, tenant=session.asked.tenant)
    return (await chat.checkpoint()).summary


async def _get_session(asked: Asked, session_id: str) -> Answer:
    session = await _Session.of(asked, session_id).located()
    found = await session.read()
    if found is None:
        raise NotFoundError(f"Session {session_id} was not found.")
    return Answer(session.shown(found))


async def _delete_session(asked: Asked, session_id: str) -> Answer:
    session = await _Session.of(asked, session_id).located()
    await session.write(None)
    return Answer({"status": "ok"})


async def _sessions(asked: Asked) -> Answer:
    engine, query = asked.memory.engine, asked.query
    session = _Session.of(asked, "-")
    prefix = _SESSIONS if session.namespace is None else (*_SESSIONS, session.namespace)
    users = [session.user] if session.user is not None else await _owners(asked)
    found = [
        item.key
        for user in users
        for item in await engine.store.items.under(Scope(asked.tenant, user), prefix, now=engine.clock.now())
    ]
    start, most = count_in(query, "offset", 0, 10**9, 0), count_in(query, "limit", 20, _MAX_PAGE)
    return Answer({"sessions": cast("JsonValue", found[start : start + most]), "total": len(found)})


async def _owners(asked: Asked) -> list[str | None]:
    return [one.user for one in await asked.memory.engine.store.items.owners(asked.tenant)]


# -- long-term memory ------------------------------------------------------------------------------------------------------


async def _create(asked: Asked) -> Answer:
    given = as_list(asked.fields.get("memories"))
    if given is None:
        raise InvalidArgumentError("`memories` must be a list of memories.")
    for one in given:
        await _store(asked, as_object(one) or {})
    return Answer({"status": "ok"})


async def _store(asked: Asked, given: Mapping[str, Any]) -> None:
    """A memory whose id is known is overwritten."""
    text, memory_id = required(given, "text"), text_in(given, "id")
    attributes = {name: given[name] for name in _ATTRIBUTES if given.get(name) is not None}
    user = text_in(given, "user_id") or asked.user or _NOBODY
    if memory_id is not None:
        with suppress(NotFoundError):
            if (await asked.memories.get(memory_id)).user != user:
                raise ConflictError(f"The memory {memory_id!r} is another user's: choose another id.")
            await asked.memories.update(memory_id, text, attributes)
            return
    await asked.memories.add(user, Draft(text, id=memory_id), attributes)


def _record_of(entry: Entry) -> dict[str, Any]:
    fact = entry.fact
    about = {"memory_type": "semantic", **entry.attributes}
    return _shape(entry.id, fact.text, fact, about, entry.created, entry.updated)


def _message_of(turn: Turn) -> dict[str, Any]:
    about = {"memory_type": "message", **turn.metadata}
    return _shape(turn.id, turn.user or "", turn, about, turn.at, turn.created)


def _shape(
    memory_id: str,
    text: str,
    owned: Fact | Turn,
    about: Mapping[str, Any],
    created: datetime,
    updated: datetime,
) -> dict[str, Any]:
    user = owned.scope.user
    made, changed = to_json(created), to_json(updated)
    return {
        "id": memory_id,
        "text": text,
        "user_id": None if user == _NOBODY else user,
        "session_id": None,
        "namespace": None,
        "topics": None,
        "entities": None,
        "discrete_memory_extracted": "t",
        **about,
        "created_at": made,
        "updated_at": changed,
        "last_accessed": changed,
        "persisted_at": made,
    }


async def _get(asked: Asked, memory_id: str) -> Answer:
    if is_said(memory_id):
        return Answer(_message_of(await _said(asked).get(memory_id)))
    return Answer(_record_of(await asked.memories.get(memory_id)))


async def _edit(asked: Asked, memory_id: str) -> Answer:
    if is_said(memory_id):
        raise unsupported("This memory is what the user said: it can be deleted, not changed.")
    fields = asked.fields
    held = await asked.memories.get(memory_id)
    changed = {name: fields[name] for name in _ATTRIBUTES if name in fields}
    attributes = {name: value for name, value in {**held.attributes, **changed}.items() if value is not None}
    return Answer(_record_of(await asked.memories.update(memory_id, text_in(fields, "text"), attributes)))


async def _delete(asked: Asked) -> Answer:
    ids = asked.lists.get("memory_ids") or ()
    deleted = 0
    for memory_id in ids:
        with suppress(NotFoundError):
            await _remove(asked, memory_id)
            deleted += 1
    return Answer({"status": f"ok, deleted {deleted} memories"})


async def _remove(asked: Asked, memory_id: str) -> None:
    if is_said(memory_id):
        await _said(asked).forget(await _said(asked).get(memory_id))
    else:
        await asked.memories.delete(memory_id)


async def _search(asked: Asked) -> Answer:
    found = await _found(asked, asked.fields)
    start = count_in(asked.fields, "offset", 0, 10**9, 0)
    most = count_in(asked.fields, "limit", 10, _MAX_PAGE)
    shown = found[start : start + most]
    following = start + most if start + most < len(found) else None
    return Answer({"memories": cast("JsonValue", shown), "total": len(found), "next_offset": following})


async def _found(asked: Asked, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Memories that pass the filters, with their distance to the text; without a text, the newest first."""
    users = await _users(asked, fields)
    chosen = _Filter(fields)
    every, said = await asked.memories.of(users), await _said(asked).of(users)

    def passing() -> tuple[list[Entry], list[Turn]]:
        return (
            [one for one in every if chosen.passes(_record_of(one))],
            [one for one in said if chosen.passes(_message_of(one))],
        )

    entries, turns = await off_loop(passing, len(every) + len(said), _LARGE)
    text = text_in(fields, "text") or ""
    if not text.strip():
        listed = [*(_record_of(one) for one in reversed(entries)), *(_message_of(one) for one in turns)]
        return [{**one, "dist": 0.0} for one in listed]
    found = [
        {**_record_of(one), "dist": round(1 - score, 4)}
        for one, score in await asked.memories.ranked(text, entries)
    ]
    found += [
        {**_message_of(one), "dist": round(1 - score, 4)}
        for one, score in await _said(asked).ranked(text, turns, _MAX_PAGE)
    ]
    most = number_in(fields, "distance_threshold")
    return sorted((one for one in found if most is None or one["dist"] <= most), key=lambda one: one["dist"])


async def _users(asked: Asked, fields: Mapping[str, Any]) -> list[str]:
    given = object_in(fields, "user_id")
    named = [*([given["eq"]] if isinstance(given.get("eq"), str) else []), *texts_in(given, "in_")]
    if named:
        return [cast("str", asked.memories.owner(user).user) for user in named]
    return await _said(asked).users()


class _Filter:
    """The conditions of a search, read once."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._named = {
            name: object_in(fields, name) for name in ("session_id", "namespace", "user_id", "memory_type")
        }
        self._tagged = {
            name: {how: set(texts_in(given, how)) for how in ("any", "all", "none")}
            for name in ("topics", "entities")
            if (given := object_in(fields, name))
        }
        self._timed = {
            name: {how: _time(given[how]) for how in _TIMES if given.get(how) is not None}
            for name in ("created_at", "last_accessed", "event_date")
            if (given := object_in(fields, name))
        }

    def passes(self, record: Mapping[str, Any]) -> bool:
        return (
            all(_is_named(record.get(name), wanted) for name, wanted in self._named.items())
            and all(_is_tagged(record.get(name), wanted) for name, wanted in self._tagged.items())
            and all(_is_timed(record.get(name), bounds) for name, bounds in self._timed.items())
        )


def _is_named(value: Any, wanted: Mapping[str, Any]) -> bool:
    among, without = texts_in(wanted, "in_") or texts_in(wanted, "any"), texts_in(wanted, "not_in")
    return (
        wanted.get("eq") in {None, value}
        and (not among or value in among)
        and (wanted.get("not_eq") is None or value != wanted["not_eq"])
        and value not in without
    )


def _is_tagged(value: Any, wanted: Mapping[str, set[str]]) -> bool:
    tags = set(cast("list[str]", as_list(value) or []))
    some = not wanted["any"] or bool(tags & wanted["any"])
    return some and wanted["all"] <= tags and not tags & wanted["none"]


def _is_timed(value: Any, bounds: Mapping[str, datetime]) -> bool:
    if value is None:
        return not bounds
    moment = _time(value)
    return all(_TIMES[how](moment, bound) for how, bound in bounds.items())


def _time(value: Any) -> datetime:
    try:
        return utc(datetime.fromisoformat(str(value)))
    except (ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"{str(value)[:40]!r} is not a time in ISO 8601.") from error


async def _forget(asked: Asked) -> Answer:
    policy = object_in(asked.fields, "policy")
    query = {
        name: {"eq": asked.query[name]}
        for name in ("user_id", "namespace", "session_id")
        if name in asked.query
    }
    pinned = set(texts_in(asked.fields, "pinned_ids"))
    found = [one for one in await _found(asked, query) if one["id"] not in pinned]
    allowed = texts_in(policy, "memory_type_allowlist")
    scanned = [one for one in found if not allowed or one["memory_type"] in allowed]
    chosen = _outdated(scanned, policy, asked.memory.engine.clock.now())
    chosen = chosen[: count_in(asked.query, "limit", len(chosen) or 1, _MAX_PAGE)]
    dry = asked.query.get("dry_run", "").lower() == "true"
    for one in () if dry else chosen:
        await _remove(asked, one["id"])
    ids = [one["id"] for one in chosen]
    return Answer(
        {"scanned": len(scanned), "deleted": len(ids), "deleted_ids": cast("JsonValue", ids), "dry_run": dry}
    )


def _outdated(
    found: Sequence[dict[str, Any]], policy: Mapping[str, Any], now: datetime
) -> list[dict[str, Any]]:
    """Those that are too old or too long unused, and the oldest beyond the budget."""
    newest = sorted(found, key=lambda one: one["last_accessed"], reverse=True)
    budget = count_in(policy, "budget", len(newest), 10**9, 0)
    chosen = {one["id"]: one for one in newest[budget:]}
    for rule, name in (("max_age_days", "created_at"), ("max_inactive_days", "last_accessed")):
        days = number_in(policy, rule)
        if days is not None:
            oldest = now - timedelta(days=min(abs(days), _MAX_DAYS))
            chosen |= {one["id"]: one for one in found if _time(one[name]) < oldest}
    return list(chosen.values())


# -- prompts -------------------------------------------------------------------------------------------------------------


async def _prompt(asked: Asked) -> Answer:
    """A window for the query: the session's turns, and memories that answer, within the caller's tokens."""
    query, given = required(asked.fields, "query"), object_in(asked.fields, "session")
    messages: list[dict[str, Any]] = []
    search = asked.fields.get("long_term_search")
    if search:
        fields = {"limit": 10, **(as_object(search) or {}), "text": query}
        found = (await _found(asked, fields))[: count_in(fields, "limit", 10, _MAX_PAGE)]
        lines = [f"- {one['text']} (ID: {one['id']})" for one in found]
        if lines:
            messages.append(
                _said_by("system", "\n".join(("## Long term memories related to the user's input", *lines)))
            )
    if given:
        messages += await _window_messages(asked, query, given)
    return Answer({"messages": cast("JsonValue", [*messages, _said_by("user", query)])})


async def _window_messages(asked: Asked, query: str, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    asked_for = Asked(
        asked.memory, asked.tenant, asked.user, asked.key_id,
        {name: str(value) for name, value in given.items() if value is not None}, {}, None,
    )  # fmt: skip
    session = await _Session.of(asked_for, required(given, "session_id")).located()
    conversation = await session.conversation()
    if conversation is None:
        return []
    chat = asked.memory.conversation(conversation, user_id=session.owner, tenant=asked.tenant)
    window = await chat.context(query=query, window_tokens=_window(asked_for) or _WINDOW_TOKENS)
    shown = [
        _said_by(str(one["role"]), content)
        for one in window.messages
        if isinstance(content := one.get("content"), str)
    ]
    # The query comes last, after what the session has that is not answered yet.
    return shown[:-1] if shown and shown[-1]["content"]["text"] == query else shown


def _said_by(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": text}}


async def _health(asked: Asked) -> Answer:
    asked.memory.engine.check_open()
    return Answer({"now": asked.memory.engine.clock.now().timestamp()})


async def _unsupported(asked: Asked, **_: str) -> Answer:
    raise unsupported("Pagefile has no summary views and no tasks: it summarizes conversations by itself.")


class AgentMemory(Api):
    prefix = "/agent-memory"
    routes: ClassVar[Mapping[str, Handler]] = {
        "GET /v1/health": _health,
        "GET /v1/working-memory": _sessions,
        "GET /v1/working-memory/{session_id}": _get_session,
        "PUT /v1/working-memory/{session_id}": _put_session,
        "DELETE /v1/working-memory/{session_id}": _delete_session,
        "POST /v1/long-term-memory": _create,
        "DELETE /v1/long-term-memory": _delete,
        "POST /v1/long-term-memory/search": _search,
        "POST /v1/long-term-memory/forget": _forget,
        "GET /v1/long-term-memory/{memory_id}": _get,
        "PATCH /v1/long-term-memory/{memory_id}": _edit,
        "POST /v1/memory/prompt": _prompt,
        "GET /v1/summary-views": _unsupported,
        "POST /v1/summary-views": _unsupported,
        "GET /v1/summary-views/{view_id}": _unsupported,
        "DELETE /v1/summary-views/{view_id}": _unsupported,
        "POST /v1/summary-views/{view_id}/run": _unsupported,
        "POST /v1/summary-views/{view_id}/partitions/run": _unsupported,
        "GET /v1/summary-views/{view_id}/partitions": _unsupported,
        "GET /v1/tasks/{task_id}": _unsupported,
    }
