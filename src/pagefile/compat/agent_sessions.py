"""Working memory of redis/agent-memory-server: a session is kept as the client sent it, and its exchanges are recorded as turns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from uuid import uuid4

from pagefile.compat.agent_long_term import MAX_PAGE, NOBODY, said_in, store
from pagefile.compat.api import Answer, Asked, Handler, count_in, number_in, required, text_in
from pagefile.compat.said import exchanges
from pagefile.errors import AccessError, InvalidArgumentError, NotFoundError
from pagefile.ports import OWN_NAMESPACE, ItemKey, ItemWrite, StoredItem
from pagefile.record_json import to_json
from pagefile.records import JsonValue, Scope
from pagefile.shapes.skeleton import as_list, as_object, objects_in

_SESSIONS = (OWN_NAMESPACE, "working memory")
_SUMMARIZE_FROM = 0.7


@dataclass(frozen=True, slots=True)
class Session:
    """One session's working memory."""

    asked: Asked
    id: str
    user: str | None
    namespace: str | None

    @classmethod
    def of(cls, asked: Asked, session_id: str) -> "Session":
        user = asked.query.get("user_id") or text_in(asked.fields, "user_id") or asked.user
        if asked.user not in {None, user}:
            raise AccessError(
                f"This key is for the user {asked.user!r}: it does not open other users' sessions."
            )
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
        return self.user or NOBODY

    async def conversation(self) -> str | None:
        """Where its exchanges are recorded; None if there is no such session. One that was deleted or has expired begins again."""
        item = await self._item()
        if item is None:
            return None
        begun = f"{item.created:%Y%m%dT%H%M%S%f}"
        return said_in(self.asked).conversation(self.owner, self.namespace, self.id, begun)

    async def located(self) -> "Session":
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
        most = window_of(self.asked)
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


def window_of(asked: Asked) -> int | None:
    given = asked.query.get("context_window_max")
    return None if given is None else count_in({"context_window_max": given}, "context_window_max", 1, 10**9)


async def _put_session(asked: Asked, session_id: str) -> Answer:
    session, fields = Session.of(asked, session_id), asked.fields
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


async def _record(session: Session, value: dict[str, Any]) -> None:
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
        said = said_in(session.asked)
        await said.record(session.owner, conversation, turns, keys=keys, metadata=metadata)
    value["recorded"] = [*value["recorded"], *(one["id"] for one in new)]
    for one in new:
        one["discrete_memory_extracted"] = "t"


async def _promote(session: Session, value: dict[str, Any]) -> None:
    """Structured memories of a session become long-term ones when it is saved."""
    now = to_json(session.asked.memory.engine.clock.now())
    promoted: list[dict[str, Any]] = []
    for one in objects_in(value["memories"]):
        if one.get("persisted_at") is None:
            about = {"session_id": session.id, "namespace": session.namespace, "user_id": session.user}
            await store(session.asked, {**about, **one})
            one["persisted_at"] = now
        promoted.append(one)
    value["memories"] = promoted


async def _summary(session: Session, value: dict[str, Any]) -> str | None:
    """What the messages that no longer fit the client's window said; None while all fit."""
    if len(session.shown(value)["messages"]) == len(value["messages"]) or not value["recorded"]:
        return None
    conversation = await session.conversation()
    if conversation is None:
        return None
    chat = session.asked.memory.conversation(conversation, user_id=session.owner, tenant=session.asked.tenant)
    return (await chat.checkpoint()).summary


async def _get_session(asked: Asked, session_id: str) -> Answer:
    session = await Session.of(asked, session_id).located()
    found = await session.read()
    if found is None:
        raise NotFoundError(f"Session {session_id} was not found.")
    return Answer(session.shown(found))


async def _delete_session(asked: Asked, session_id: str) -> Answer:
    session = await Session.of(asked, session_id).located()
    await session.write(None)
    return Answer({"status": "ok"})


async def _sessions(asked: Asked) -> Answer:
    engine, query = asked.memory.engine, asked.query
    session = Session.of(asked, "-")
    prefix = _SESSIONS if session.namespace is None else (*_SESSIONS, session.namespace)
    users = [session.user] if session.user is not None else await _owners(asked)
    found = [
        item.key
        for user in users
        for item in await engine.store.items.under(Scope(asked.tenant, user), prefix, now=engine.clock.now())
    ]
    start, most = count_in(query, "offset", 0, 10**9, 0), count_in(query, "limit", 20, MAX_PAGE)
    return Answer({"sessions": cast("JsonValue", found[start : start + most]), "total": len(found)})


async def _owners(asked: Asked) -> list[str | None]:
    return [one.user for one in await asked.memory.engine.store.items.owners(asked.tenant)]


ROUTES: Mapping[str, Handler] = {
    "GET /v1/working-memory": _sessions,
    "GET /v1/working-memory/{session_id}": _get_session,
    "PUT /v1/working-memory/{session_id}": _put_session,
    "DELETE /v1/working-memory/{session_id}": _delete_session,
}
