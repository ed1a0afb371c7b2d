"""Long-term memories of redis/agent-memory-server: facts, and what a user said."""

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, cast

from pagefile.compat.api import (
    Answer,
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
from pagefile.compat.said import Said, is_said
from pagefile.errors import ConflictError, InvalidArgumentError, NotFoundError
from pagefile.record_json import to_json
from pagefile.records import Fact, JsonValue, Turn, utc
from pagefile.shapes.skeleton import as_list, as_object
from pagefile.tiers.base import off_loop
from pagefile.tiers.fact_book import Draft

#: Whose memories those are that name no user.
NOBODY = "agent-memory:no-user"
MAX_PAGE = 1_000
#: More memories are filtered in a thread.
_LARGE = 2_000
#: What a memory has beside its text, as the client sent it.
_ATTRIBUTES = ("session_id", "namespace", "topics", "entities", "memory_type", "event_date", "extracted_from")
_MAX_DAYS = 365_000
_TIMES: Mapping[str, Callable[[Any, Any], bool]] = {
    "gte": operator.ge,
    "lte": operator.le,
    "eq": operator.eq,
    "gt": operator.gt,
    "lt": operator.lt,
}


def said_in(asked: Asked) -> Said:
    """What users said through these routes."""
    return Said(asked.memories, "agent-memory")


async def _create(asked: Asked) -> Answer:
    given = as_list(asked.fields.get("memories"))
    if given is None:
        raise InvalidArgumentError("`memories` must be a list of memories.")
    for one in given:
        await store(asked, as_object(one) or {})
    return Answer({"status": "ok"})


async def store(asked: Asked, given: Mapping[str, Any]) -> None:
    """A memory whose id is known is overwritten."""
    text, memory_id = required(given, "text"), text_in(given, "id")
    attributes = {name: given[name] for name in _ATTRIBUTES if given.get(name) is not None}
    user = text_in(given, "user_id") or asked.user or NOBODY
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
        "user_id": None if user == NOBODY else user,
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
        return Answer(_message_of(await said_in(asked).get(memory_id)))
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
        await said_in(asked).forget(await said_in(asked).get(memory_id))
    else:
        await asked.memories.delete(memory_id)


async def _search(asked: Asked) -> Answer:
    found = await found_in(asked, asked.fields)
    start = count_in(asked.fields, "offset", 0, 10**9, 0)
    most = count_in(asked.fields, "limit", 10, MAX_PAGE)
    shown = found[start : start + most]
    following = start + most if start + most < len(found) else None
    return Answer({"memories": cast("JsonValue", shown), "total": len(found), "next_offset": following})


async def found_in(asked: Asked, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Memories that pass the filters, with their distance to the text; without a text, the newest first."""
    users = await _users(asked, fields)
    chosen = _Filter(fields)
    every, said = await asked.memories.of(users), await said_in(asked).of(users)

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
        for one, score in await said_in(asked).ranked(text, turns, MAX_PAGE)
    ]
    most = number_in(fields, "distance_threshold")
    return sorted((one for one in found if most is None or one["dist"] <= most), key=lambda one: one["dist"])


async def _users(asked: Asked, fields: Mapping[str, Any]) -> list[str]:
    given = object_in(fields, "user_id")
    named = [*([given["eq"]] if isinstance(given.get("eq"), str) else []), *texts_in(given, "in_")]
    if named:
        return [cast("str", asked.memories.owner(user).user) for user in named]
    return await said_in(asked).users()


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
    found = [one for one in await found_in(asked, query) if one["id"] not in pinned]
    allowed = texts_in(policy, "memory_type_allowlist")
    scanned = [one for one in found if not allowed or one["memory_type"] in allowed]
    chosen = _outdated(scanned, policy, asked.memory.engine.clock.now())
    chosen = chosen[: count_in(asked.query, "limit", len(chosen) or 1, MAX_PAGE)]
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


ROUTES: Mapping[str, Handler] = {
    "POST /v1/long-term-memory": _create,
    "DELETE /v1/long-term-memory": _delete,
    "POST /v1/long-term-memory/search": _search,
    "POST /v1/long-term-memory/forget": _forget,
    "GET /v1/long-term-memory/{memory_id}": _get,
    "PATCH /v1/long-term-memory/{memory_id}": _edit,
}
