"""Anthropic's Memory Stores: `Anthropic(base_url="http://127.0.0.1:8000").beta.memory_stores`.

A store is a collection of documents. Every change is a version; to redact one removes what it said for good.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, cast
from uuid import uuid4

from pagefile.compat.api import Answer, Api, Asked, Handler, Refusal, count_in, required, text_in
from pagefile.compat.documents import Document, Documents, Version, digest
from pagefile.errors import InvalidArgumentError, NotFoundError
from pagefile.ports import OWN_NAMESPACE, ItemWrite, Namespace
from pagefile.record_json import to_json
from pagefile.records import JsonValue, Scope, utc
from pagefile.shapes.skeleton import as_list, as_object

_STORES: Namespace = (OWN_NAMESPACE, "memory stores")
MAX_CONTENT_BYTES = 102_400
_MAX_NAME, _MAX_DESCRIPTION = 255, 1_024
_MAX_PAIRS, _MAX_KEY, _MAX_VALUE = 16, 64, 512
_PAGE, _MAX_PAGE, _MAX_FULL = 20, 100, 20
_MAX_DIGITS = 10
_FULL, _BASIC = "full", "basic"


class _Stores:
    """The stores within a caller's reach: those of the tenant, or of the user whose key it is."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.scope = Scope(asked.tenant, asked.user)
        self.items: Any = asked.memory.engine.store.items

    def now(self) -> datetime:
        return self.asked.memory.engine.clock.now()

    async def get(self, store_id: str) -> dict[str, Any]:
        (found,) = await self.items.get(self.scope, [(_STORES, store_id)], now=self.now())
        if found is None:
            raise NotFoundError(f"Memory store {store_id} was not found.")
        return cast("dict[str, Any]", found.value)

    async def all(self) -> list[dict[str, Any]]:
        found = await self.items.under(self.scope, _STORES, now=self.now())
        return [item.value for item in found]

    async def put(self, before: JsonValue, store: dict[str, Any]) -> dict[str, Any]:
        key = (_STORES, cast("str", store["id"]))
        await self.items.write(self.scope, [ItemWrite(*key, store)], now=self.now(), expected={key: before})
        return store

    async def documents(self, store_id: str, *, change: bool = False) -> Documents:
        store = await self.get(store_id)
        if change and store["archived_at"] is not None:
            raise InvalidArgumentError(
                "This memory store is archived: its memories cannot be created or changed."
            )
        return Documents(self.asked.memory, self.scope, store_id, self.asked.key_id)


# -- stores --------------------------------------------------------------------------------------------------------------


async def _create_store(asked: Asked) -> Answer:
    stores, fields = _Stores(asked), asked.fields
    now = cast("str", to_json(stores.now()))
    store: dict[str, Any] = {
        "id": f"memstore_{uuid4().hex}",
        "type": "memory_store",
        "name": _name(required(fields, "name")),
        "description": _description(text_in(fields, "description") or ""),
        "metadata": _metadata({}, fields.get("metadata")),
        "created_at": now,
        "updated_at": now,
        "archived_at": None,
    }
    return Answer(await stores.put(None, store))


async def _get_store(asked: Asked, store_id: str) -> Answer:
    return Answer(await _Stores(asked).get(store_id))


async def _update_store(asked: Asked, store_id: str) -> Answer:
    stores, fields = _Stores(asked), asked.fields
    before = await stores.get(store_id)
    if before["archived_at"] is not None:
        raise InvalidArgumentError("This memory store is archived and cannot be changed.")
    changed: dict[str, Any] = {}
    if (name := text_in(fields, "name")) is not None:
        changed["name"] = _name(name)
    if (description := text_in(fields, "description")) is not None:
        changed["description"] = _description(description)
    if fields.get("metadata") is not None:
        changed["metadata"] = _metadata(before["metadata"], fields["metadata"])
    return Answer(await stores.put(before, {**before, **changed, "updated_at": to_json(stores.now())}))


async def _list_stores(asked: Asked) -> Answer:
    archived = asked.query.get("include_archived", "").lower() == "true"
    found = [one for one in await _Stores(asked).all() if archived or one["archived_at"] is None]
    return _page(asked, [one for one in found if _in_time(asked, one["created_at"])])


async def _archive_store(asked: Asked, store_id: str) -> Answer:
    stores = _Stores(asked)
    before = await stores.get(store_id)
    now = to_json(stores.now())
    if before["archived_at"] is not None:
        return Answer(before)
    return Answer(await stores.put(before, {**before, "archived_at": now, "updated_at": now}))


async def _delete_store(asked: Asked, store_id: str) -> Answer:
    stores = _Stores(asked)
    documents = await stores.documents(store_id)
    await documents.remove_all()
    await stores.items.write(stores.scope, [ItemWrite(_STORES, store_id, None)], now=stores.now())
    return Answer({"id": store_id, "type": "memory_store_deleted"})


def _name(name: str) -> str:
    if not 1 <= len(name) <= _MAX_NAME or any(ord(one) < 32 or 127 <= ord(one) < 160 for one in name):
        raise InvalidArgumentError("`name` must have 1 to 255 characters and no control characters.")
    return name


def _description(text: str) -> str:
    if len(text) > _MAX_DESCRIPTION:
        raise InvalidArgumentError("`description` must have at most 1,024 characters.")
    return text


def _metadata(before: Mapping[str, str], given: object) -> dict[str, str]:
    """The pairs with these changes; null removes one."""
    if given is None:
        return dict(before)
    if not isinstance(given, Mapping):
        raise InvalidArgumentError("`metadata` must be an object.")
    after = dict(before)
    for key, value in cast("Mapping[str, Any]", given).items():
        if value is None:
            after.pop(key, None)
        elif not isinstance(value, str) or len(value) > _MAX_VALUE or not 1 <= len(key) <= _MAX_KEY:
            raise InvalidArgumentError("`metadata` has keys of 1 to 64 and values of at most 512 characters.")
        else:
            after[key] = value
    if len(after) > _MAX_PAIRS:
        raise InvalidArgumentError("`metadata` has at most 16 pairs.")
    return after


# -- memories ------------------------------------------------------------------------------------------------------------


async def _create(asked: Asked, store_id: str) -> Answer:
    fields = asked.fields
    documents = await _Stores(asked).documents(store_id, change=True)
    path = required(fields, "path")
    await _check_free(documents, path)
    made = await documents.create(path, _content(text_in(fields, "content") or ""))
    return Answer(_memory(store_id, made, _view(asked, _BASIC)))


async def _get(asked: Asked, store_id: str, memory_id: str) -> Answer:
    found = await (await _Stores(asked).documents(store_id)).get(memory_id)
    return Answer(_memory(store_id, found, _view(asked, _FULL)))


async def _update(asked: Asked, store_id: str, memory_id: str) -> Answer:
    fields = asked.fields
    documents = await _Stores(asked).documents(store_id, change=True)
    before = await documents.get(memory_id)
    if fields.get("precondition") is not None:
        condition = as_object(fields["precondition"]) or {}
        if condition.get("type") != "content_sha256":
            raise InvalidArgumentError("`precondition` must have the type content_sha256.")
        _check_digest(before, condition.get("content_sha256"))
    content, path = text_in(fields, "content"), text_in(fields, "path")
    if path is not None and path != before.path:
        await _check_free(documents, path)
    after = await documents.change(before, content=None if content is None else _content(content), path=path)
    return Answer(_memory(store_id, after, _view(asked, _BASIC)))


async def _delete(asked: Asked, store_id: str, memory_id: str) -> Answer:
    documents = await _Stores(asked).documents(store_id)
    found = await documents.get(memory_id)
    if "expected_content_sha256" in asked.query:
        _check_digest(found, asked.query["expected_content_sha256"])
    await documents.delete(found)
    return Answer({"id": memory_id, "type": "memory_deleted"})


async def _list(asked: Asked, store_id: str) -> Answer:
    prefix, view = asked.query.get("path_prefix", "/"), _view(asked, _BASIC)
    if not prefix.startswith("/") or not prefix.endswith("/"):
        raise InvalidArgumentError("`path_prefix` must begin and end with /.")
    given = asked.query.get("depth", "0")
    if not (given.isascii() and given.isdecimal() and len(given) < _MAX_DIGITS):
        raise InvalidArgumentError("`depth` must be a whole number from 0.")
    depth = int(given)
    documents = await _Stores(asked).documents(store_id)
    listed: dict[str, dict[str, Any]] = {}
    for one in await documents.all():
        if not one.path.startswith(prefix):
            continue
        below = one.path.removeprefix(prefix).split("/")
        if depth and len(below) > depth:
            path = f"{prefix}{'/'.join(below[:depth])}/"
            listed[path] = {"type": "memory_prefix", "path": path}
        else:
            listed[one.path] = _memory(store_id, one, view)
    return _page(asked, list(listed.values()), view, newest_first=False)


def _content(content: str) -> str:
    if len(content.encode()) > MAX_CONTENT_BYTES:
        raise InvalidArgumentError("`content` must have at most 102,400 bytes.")
    return content


async def _check_free(documents: Documents, path: str) -> None:
    if await documents.at(path) is not None:
        raise Refusal(409, f"There is already a memory at {path}.", "memory_path_conflict_error")


def _check_digest(document: Document, expected: object) -> None:
    if document.sha256 != expected:
        raise Refusal(
            409,
            "The memory has other contents than `content_sha256` says: read it again.",
            "memory_precondition_failed_error",
        )


def _memory(store_id: str, document: Document, view: str) -> dict[str, Any]:
    return {
        "id": document.id,
        "type": "memory",
        "memory_store_id": store_id,
        "memory_version_id": document.version,
        "path": document.path,
        "content": document.content if view == _FULL else None,
        "content_sha256": document.sha256,
        "content_size_bytes": len(document.content.encode()),
        "created_at": to_json(document.created),
        "updated_at": to_json(document.updated),
    }


# -- versions ------------------------------------------------------------------------------------------------------------


async def _versions(asked: Asked, store_id: str) -> Answer:
    query, view = asked.query, _view(asked, _BASIC)
    documents = await _Stores(asked).documents(store_id)
    found = [
        _version(store_id, one, view)
        for one in await documents.versions(query.get("memory_id"))
        if query.get("operation") in {None, one.operation}
        and query.get("api_key_id") in {None, one.author}
        and not {"session_id", "service_account_id"} & set(query)
    ]
    return _page(asked, [one for one in found if _in_time(asked, one["created_at"])], view)


async def _get_version(asked: Asked, store_id: str, version_id: str) -> Answer:
    found = await (await _Stores(asked).documents(store_id)).version(version_id)
    return Answer(_version(store_id, found, _view(asked, _FULL)))


async def _redact(asked: Asked, store_id: str, version_id: str) -> Answer:
    redacted = await (await _Stores(asked).documents(store_id)).redact(version_id)
    return Answer(_version(store_id, redacted, _FULL))


def _version(store_id: str, version: Version, view: str) -> dict[str, Any]:
    content = version.content
    return {
        "id": version.id,
        "type": "memory_version",
        "memory_store_id": store_id,
        "memory_id": version.document,
        "operation": version.operation,
        "path": version.path,
        "content": content if view == _FULL else None,
        "content_sha256": None if content is None else digest(content),
        "content_size_bytes": None if content is None else len(content.encode()),
        "created_at": to_json(version.created),
        "created_by": _actor(version.author),
        "redacted_at": None if version.redacted is None else to_json(version.redacted),
        "redacted_by": _actor(version.redacted_by),
    }


def _actor(key_id: str | None) -> dict[str, Any] | None:
    return None if key_id is None else {"type": "api_actor", "api_key_id": key_id}


# -- pages ---------------------------------------------------------------------------------------------------------------


def _view(asked: Asked, default: str) -> str:
    view = asked.query.get("view", default)
    if view not in {_BASIC, _FULL}:
        raise InvalidArgumentError("`view` must be basic or full.")
    return view


def _in_time(asked: Asked, made: str) -> bool:
    moment = datetime.fromisoformat(made)
    try:
        since, until = (
            None
            if (given := asked.query.get(f"created_at[{end}]")) is None
            else utc(datetime.fromisoformat(given))
            for end in ("gte", "lte")
        )
    except ValueError as error:
        raise InvalidArgumentError("`created_at` must be a time in RFC 3339.") from error
    return (since is None or moment >= since) and (until is None or moment <= until)


def _page(
    asked: Asked, found: Sequence[dict[str, Any]], view: str = _BASIC, *, newest_first: bool = True
) -> Answer:
    limit = count_in(asked.query, "limit", _PAGE, _MAX_FULL if view == _FULL else _MAX_PAGE)
    ordered, page = sorted(found, key=_place, reverse=newest_first), asked.query.get("page")
    if page is not None:
        # After a place and not after a number: entries come and go between two pages, also the last one of a page.
        last = _read_place(page)
        ordered = [one for one in ordered if (_place(one) < last if newest_first else _place(one) > last)]
    shown = ordered[:limit]
    following = _place_text(shown[-1]) if limit < len(ordered) else None
    return Answer({"data": cast("JsonValue", shown), "next_page": following})


def _place(one: Mapping[str, Any]) -> list[str]:
    """Where an entry is in its list: memories by path, everything else by age."""
    by_path = one["type"] in {"memory", "memory_prefix"}
    return [one["path"]] if by_path else [one["created_at"], one["id"]]


def _place_text(one: Mapping[str, Any]) -> str:
    return json.dumps(_place(one)).encode().hex()


def _read_place(page: str) -> list[str]:
    try:
        place = as_list(json.loads(bytes.fromhex(page)))
    except (ValueError, RecursionError):
        place = None
    if not place or not all(isinstance(one, str) for one in place):
        raise InvalidArgumentError("`page` is not the `next_page` of an earlier list.")
    return place


class MemoryStores(Api):
    prefix = "/v1/memory_stores"
    routes: ClassVar[Mapping[str, Handler]] = {
        "POST ": _create_store,
        "GET ": _list_stores,
        "GET /{store_id}": _get_store,
        "POST /{store_id}": _update_store,
        "DELETE /{store_id}": _delete_store,
        "POST /{store_id}/archive": _archive_store,
        "POST /{store_id}/memories": _create,
        "GET /{store_id}/memories": _list,
        "GET /{store_id}/memories/{memory_id}": _get,
        "POST /{store_id}/memories/{memory_id}": _update,
        "DELETE /{store_id}/memories/{memory_id}": _delete,
        "GET /{store_id}/memory_versions": _versions,
        "GET /{store_id}/memory_versions/{version_id}": _get_version,
        "POST /{store_id}/memory_versions/{version_id}/redact": _redact,
    }
    _KINDS: ClassVar[Mapping[int, str]] = {
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        409: "conflict_error",
        413: "request_too_large",
        429: "rate_limit_error",
    }

    @classmethod
    def problem(cls, status: int, message: str, kind: str | None = None) -> JsonValue:
        if kind is None:
            kind = cls._KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
