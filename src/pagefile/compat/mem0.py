"""mem0's REST API: `MemoryClient(api_key=…, host="http://127.0.0.1:8000/mem0")`.

`add` records the messages as turns, and what Pagefile's extractor learns from them are memories, as with mem0. A turn from which
nothing was learnt is found as a memory, too, in the user's own words: what was said is never out of reach for want of a model.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
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
from pagefile.compat.filters import matches, values_of
from pagefile.compat.memories import Entry
from pagefile.compat.said import Said, exchanges, is_said
from pagefile.errors import InvalidArgumentError, NotFoundError
from pagefile.records import JsonValue, Turn
from pagefile.shapes.skeleton import as_list, as_object
from pagefile.tiers.base import off_loop
from pagefile.tiers.fact_book import Draft

_ENTITIES = ("user_id", "agent_id", "app_id", "run_id")
_MAX_PAGE = 1_000
#: More memories are filtered in a thread.
_LARGE = 2_000
#: Attributes that the answers have beside `metadata`.
_OWN = ("run_id", "expiration_date")


@dataclass(frozen=True, slots=True)
class _Owner:
    """Whose memories a request means, as mem0 names them; without a user, an agent, an app or a run has memories of its own."""

    user_id: str | None = None
    agent_id: str | None = None
    app_id: str | None = None
    run_id: str | None = None

    @classmethod
    def of(cls, asked: Asked) -> "_Owner":
        given = {**(as_object(asked.fields.get("filters")) or {}), **asked.query, **asked.fields}
        named = {name: text_in(given, name) for name in _ENTITIES}
        if not any(named.values()):
            named["user_id"] = asked.user
        if not any(named.values()):
            raise InvalidArgumentError(f"At least one of {', '.join(_ENTITIES)} is required.")
        return cls(**named)

    @property
    def user(self) -> str:
        return self.user_id or next(
            f"{name.removesuffix('_id')}:{value}"
            for name in _ENTITIES[1:]
            if (value := getattr(self, name)) is not None
        )


# -- adding --------------------------------------------------------------------------------------------------------------


async def _add(asked: Asked) -> Answer:
    fields, owner = asked.fields, _Owner.of(asked)
    messages = _messages(fields.get("messages"))
    metadata = object_in(fields, "metadata")
    own = {
        name: value for name in _OWN if (value := fields.get(name) or getattr(owner, name, None)) is not None
    }
    attributes: dict[str, JsonValue] = {**own, **({"metadata": metadata} if metadata else {})}
    if fields.get("infer") is False:
        results = [
            _result(await asked.memories.add(owner.user, _draft(owner, text), attributes))
            for _, text in messages
        ]
    else:
        results = await _learned(asked, owner, messages, attributes)
    told = [{"id": one["id"], "memory": one["memory"], "event": "ADD"} for one in results]
    return Answer({"results": cast("JsonValue", told), "status": "SUCCEEDED", "event_id": str(uuid4())})


def _messages(given: object) -> list[tuple[str, str]]:
    """Roles and texts."""
    listed = as_list([{"role": "user", "content": given}] if isinstance(given, str) else given)
    if not listed:
        raise InvalidArgumentError("`messages` must be a list of messages, each with `role` and `content`.")
    found: list[tuple[str, str]] = []
    for one in listed:
        message = as_object(one) or {}
        content = message.get("content")
        if (parts := as_list(content)) is not None:
            objects = [part for given in parts if (part := as_object(given)) is not None]
            content = "\n".join(str(part["text"]) for part in objects if part.get("type") == "text")
        if not isinstance(content, str) or not content.strip():
            raise InvalidArgumentError("Every message needs `role` and a `content` with text.")
        found.append((str(message.get("role") or "user"), content))
    return found


def _draft(owner: _Owner, text: str) -> Draft:
    return Draft(text, agent=owner.agent_id if owner.user_id else None, project=owner.app_id)


async def _learned(
    asked: Asked, owner: _Owner, messages: Sequence[tuple[str, str]], attributes: Mapping[str, JsonValue]
) -> list[dict[str, Any]]:
    """Record the messages, and tell what was learnt; turns where nothing was."""
    turns = exchanges(messages)
    if not turns:
        raise InvalidArgumentError("There is no message of a user or an assistant.")
    about = {"agent_id": owner.agent_id, "app_id": owner.app_id, **attributes}
    metadata = {name: value for name, value in about.items() if value is not None}
    said = _said(asked)
    written = await said.record(
        owner.user,
        said.conversation(owner.user, owner.run_id),
        turns,
        at=_moment(asked.fields.get("timestamp")),
        agent=owner.agent_id,
        metadata=metadata,
    )
    ids = {turn.id for turn in written}
    entries = [one for one in await asked.memories.of([owner.user]) if one.fact.source_turn in ids]
    for entry in entries:
        if attributes:
            await asked.memories.annotate(owner.user, entry.id, {**entry.attributes, **attributes})
    known = await asked.memories.read_turns([owner.user])
    rest = [_turn_result(turn) for turn in written if turn.id not in known and turn.user]
    return [*(_result(entry) for entry in entries), *rest]


def _said(asked: Asked) -> Said:
    return Said(asked.memories, "mem0")


def _moment(value: object) -> datetime | None:
    seconds = number_in({"timestamp": value}, "timestamp")
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidArgumentError("`timestamp` must be in seconds since 1970.") from error


# -- what a memory looks like ----------------------------------------------------------------------------------------------


def _shape(record_id: str, text: str, user: str, about: Mapping[str, Any]) -> dict[str, Any]:
    kind, _, name = user.partition(":")
    other = f"{kind}_id" if name and f"{kind}_id" in _ENTITIES else None
    return {
        "id": record_id,
        "memory": text,
        "user_id": None if other else user,
        "agent_id": None,
        "app_id": None,
        "run_id": None,
        **({other: name} if other else {}),
        "hash": hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": None,
        "categories": [],
        "expiration_date": None,
        **{name: value for name, value in about.items() if value is not None},
    }


def _result(entry: Entry) -> dict[str, Any]:
    fact = entry.fact
    about = {
        **entry.attributes,
        "agent_id": fact.agent,
        "app_id": fact.project,
        "categories": [fact.category] if fact.category else None,
        "created_at": _time(entry.created),
        "updated_at": _time(entry.updated),
    }
    return _shape(entry.id, fact.text, entry.user, about)


def _turn_result(turn: Turn) -> dict[str, Any]:
    times = {"created_at": _time(turn.at), "updated_at": _time(turn.created)}
    return _shape(turn.id, turn.user or "", turn.scope.user or "", {**turn.metadata, **times})


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


# -- reading -------------------------------------------------------------------------------------------------------------


async def _users(asked: Asked, filters: object) -> list[str]:
    """The users that a filter can mean."""
    if not as_object(filters):
        raise InvalidArgumentError(f"`filters` must name at least one of {', '.join(_ENTITIES)}.")
    named = values_of(filters, "user_id")
    if named:
        return [asked.memories.owner(user).user or "" for user in named]
    return await _said(asked).users()


def _passes(asked: Asked, record: Mapping[str, Any]) -> bool:
    fields = asked.fields
    expires = record.get("expiration_date")
    if expires and not fields.get("show_expired"):
        with suppress(ValueError, TypeError):
            if date.fromisoformat(str(expires)[:10]) < asked.memory.engine.clock.now().date():
                return False
    wanted = texts_in(fields, "categories")
    if wanted and not set(wanted) & set(record["categories"]):
        return False
    start, end = text_in(fields, "start_date"), text_in(fields, "end_date")
    made = record["created_at"]
    if (start and made < start) or (end and made[: len(end)] > end):
        return False
    # Two names of mem0's filters for what its answers call otherwise.
    named = {"keywords": record["memory"], "memory_ids": record["id"]}
    return matches(fields.get("filters"), {**record, **named})


async def _list(asked: Asked) -> Answer:
    users = await _users(asked, asked.fields.get("filters"))
    entries = await asked.memories.of(users)
    turns = await _said(asked).of(users)

    def passing() -> list[dict[str, Any]]:
        listed = [*(_result(entry) for entry in reversed(entries)), *map(_turn_result, turns)]
        return [one for one in listed if _passes(asked, one)]

    kept = await off_loop(passing, len(entries) + len(turns), _LARGE)
    given = {**asked.fields, **asked.query}
    page, size = count_in(given, "page", 1, 10**9), count_in(given, "page_size", 100, _MAX_PAGE)
    shown = kept[(page - 1) * size : page * size]
    link = f"{Mem0.prefix}/v3/memories/?page={{}}&page_size={size}"
    more = page * size < len(kept)
    return Answer(
        {
            "count": len(kept),
            "next": link.format(page + 1) if more else None,
            "previous": link.format(page - 1) if page > 1 else None,
            "results": cast("JsonValue", shown),
        }
    )


async def _search(asked: Asked) -> Answer:
    query, fields = required(asked.fields, "query"), asked.fields
    users = await _users(asked, fields.get("filters"))
    most = count_in(fields, "top_k", count_in(fields, "limit", 10, _MAX_PAGE), _MAX_PAGE)
    threshold = number_in(fields, "threshold")
    every, said = await asked.memories.of(users), await _said(asked).of(users)

    def passing() -> tuple[list[Entry], list[Turn]]:
        return (
            [entry for entry in every if _passes(asked, _result(entry))],
            [turn for turn in said if _passes(asked, _turn_result(turn))],
        )

    entries, turns = await off_loop(passing, len(every) + len(said), _LARGE)
    found = [
        {**_result(entry), "score": round(score, 4)}
        for entry, score in await asked.memories.ranked(query, entries)
    ]
    found += [
        {**_turn_result(turn), "score": round(score, 4)}
        for turn, score in await _said(asked).ranked(query, turns, most)
    ]
    ordered = sorted(found, key=lambda one: -one["score"])
    kept = [one for one in ordered if threshold is None or one["score"] >= threshold]
    return Answer({"results": cast("JsonValue", kept[:most])})


async def _get(asked: Asked, memory_id: str) -> Answer:
    if is_said(memory_id):
        return Answer(_turn_result(await _said(asked).get(memory_id)))
    return Answer(_result(await asked.memories.get(memory_id)))


async def _history(asked: Asked, memory_id: str) -> Answer:
    if is_said(memory_id):
        turn = await _said(asked).get(memory_id)
        changes = [(None, turn.user, turn.at)]
    else:
        changes = list(await asked.memories.history(memory_id))
    events = {True: "ADD", False: "UPDATE"}
    told = [
        {
            "id": f"{memory_id}:{place}",
            "memory_id": memory_id,
            "old_memory": before,
            "new_memory": after,
            "event": "DELETE" if after is None else events[before is None],
            "created_at": _time(at),
            "updated_at": _time(at),
        }
        for place, (before, after, at) in enumerate(changes)
    ]
    return Answer(cast("JsonValue", told))


# -- changing ------------------------------------------------------------------------------------------------------------


async def _update(asked: Asked, memory_id: str) -> Answer:
    return Answer(_result(await _updated(asked, memory_id, asked.fields)))


async def _updated(asked: Asked, memory_id: str, fields: Mapping[str, Any]) -> Entry:
    if is_said(memory_id):
        raise unsupported("This memory is what the user said: it can be deleted, not changed.")
    text, attributes = text_in(fields, "text"), None
    changed = {name: fields[name] for name in ("metadata", "expiration_date") if name in fields}
    if changed:
        held = (await asked.memories.get(memory_id)).attributes
        attributes = {name: value for name, value in {**held, **changed}.items() if value is not None}
    if text is None and attributes is None:
        raise InvalidArgumentError("Give at least one of text, metadata and expiration_date.")
    return await asked.memories.update(memory_id, text, attributes)


async def _remove(asked: Asked, memory_id: str) -> None:
    if is_said(memory_id):
        await _said(asked).forget(await _said(asked).get(memory_id))
        return
    entry = await asked.memories.delete(memory_id)
    if asked.query.get("delete_linked", "").lower() == "true" and entry.fact.supersedes is not None:
        with suppress(NotFoundError):
            await _remove(asked, entry.fact.supersedes)


async def _delete(asked: Asked, memory_id: str) -> Answer:
    await _remove(asked, memory_id)
    return Answer({"message": "Memory deleted successfully!"})


async def _delete_all(asked: Asked) -> Answer:
    given = {name: value for name in _ENTITIES if (value := {**asked.fields, **asked.query}.get(name))}
    if not given:
        given = object_in(asked.fields, "filters")
    if not given:
        given = {"user_id": _Owner.of(asked).user}
    await _delete_matching(asked, given)
    return Answer({"message": "Memories deleted successfully!"})


async def _delete_matching(asked: Asked, filters: Mapping[str, Any]) -> None:
    users = await _users(asked, filters)
    for entry in await asked.memories.of(users):
        if matches(filters, _result(entry)):
            await asked.memories.retract(entry)
    for turn in await _said(asked).of(users):
        if matches(filters, _turn_result(turn)):
            await _said(asked).forget(turn)


async def _batch_update(asked: Asked) -> Answer:
    memories = _batch(asked)
    for one in memories:
        await _updated(asked, required(one, "memory_id"), one)
    return Answer({"message": f"Successfully updated {len(memories)} memories"})


async def _batch_delete(asked: Asked) -> Answer:
    memories = _batch(asked)
    for one in memories:
        await _remove(asked, required(one, "memory_id"))
    return Answer({"message": f"Successfully deleted {len(memories)} memories"})


def _batch(asked: Asked) -> list[Mapping[str, Any]]:
    given = asked.fields.get("memories")
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in cast("list[Any]", given)):
        raise InvalidArgumentError("`memories` must be a list of objects with `memory_id`.")
    return cast("list[Mapping[str, Any]]", given)


# -- entities ------------------------------------------------------------------------------------------------------------


async def _entities(asked: Asked) -> Answer:
    found: list[dict[str, Any]] = []
    for user in await _said(asked).users():
        entries, turns = await asked.memories.of([user]), await _said(asked).of([user])
        kind, _, name = user.partition(":")
        other = bool(name) and f"{kind}_id" in _ENTITIES
        created = [*(entry.created for entry in entries), *(turn.at for turn in turns)]
        updated = [*(entry.updated for entry in entries), *(turn.created for turn in turns)]
        times = {
            "created_at": _time(min(created)) if created else None,
            "updated_at": _time(max(updated)) if updated else None,
        }
        found.append(
            {
                "id": user,
                "type": kind if other else "user",
                "name": name if other else user,
                "total_memories": len(created),
                **times,
            }
        )
    return Answer({"count": len(found), "next": None, "previous": None, "results": cast("JsonValue", found)})


async def _delete_entity(asked: Asked, kind: str, name: str) -> Answer:
    """Erased for good, and not only retracted: this is what mem0 offers for a user who wants to be forgotten.

    What an agent, an app or a run has of a user is deleted, as by `delete_all`.
    """
    if f"{kind}_id" not in _ENTITIES:
        raise InvalidArgumentError("An entity is a user, an agent, an app or a run.")
    user = name if kind == "user" else f"{kind}:{name}"
    await asked.memory.forget(user_id=asked.memories.owner(user).user, tenant=asked.tenant)
    if kind != "user":
        await _delete_matching(asked, {f"{kind}_id": name})
    return Answer({"message": "Entity deleted successfully!"})


async def _ping(asked: Asked) -> Answer:
    asked.memory.engine.check_open()
    # The client refuses to start without an organisation and a project.
    return Answer({"status": "ok", "org_id": "pagefile", "project_id": asked.tenant, "user_email": None})


async def _unsupported(asked: Asked, **_: str) -> Answer:
    raise unsupported(
        "Pagefile has no such resource. Exports: `pagefile export`; settings: pagefile.toml; "
        "what differs from mem0 is in docs/howto/other-memories.md."
    )


class Mem0(Api):
    prefix = "/mem0"
    routes: ClassVar[Mapping[str, Handler]] = {
        "GET /v1/ping": _ping,
        "POST /v3/memories/add": _add,
        "POST /v1/memories": _add,
        "POST /v3/memories/search": _search,
        "POST /v2/memories/search": _search,
        "POST /v3/memories": _list,
        "POST /v2/memories": _list,
        "DELETE /v1/memories": _delete_all,
        "GET /v1/memories/{memory_id}": _get,
        "PUT /v1/memories/{memory_id}": _update,
        "DELETE /v1/memories/{memory_id}": _delete,
        "GET /v1/memories/{memory_id}/history": _history,
        "PUT /v1/batch": _batch_update,
        "DELETE /v1/batch": _batch_delete,
        "GET /v1/entities": _entities,
        "DELETE /v2/entities/{kind}/{name}": _delete_entity,
        "GET /v2/entities/user/{name}/profile": _unsupported,
        "POST /v1/exports": _unsupported,
        "POST /v1/exports/get": _unsupported,
        "POST /v1/feedback": _unsupported,
        "POST /v1/summary": _unsupported,
        "POST /v2/profiles/jobs": _unsupported,
        "GET /v2/profiles/settings": _unsupported,
        "PATCH /v2/profiles/settings": _unsupported,
    }
