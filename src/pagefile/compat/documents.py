"""Text documents by path, with every version they had: what Anthropic's memory tool and memory stores keep.

They are items of a user, or of a tenant, so exports, imports and erasures include them. Each change is written together with
its version, and only if the document is still the one that was read: of two writers one gets `ConflictError`.
"""

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, TypeAlias, cast
from uuid import uuid4

from pydantic import TypeAdapter

from pagefile.engine import Memory
from pagefile.errors import ConflictError, InvalidArgumentError, NotFoundError
from pagefile.ports import OWN_NAMESPACE, ItemKey, ItemWrite, Namespace
from pagefile.record_json import to_json
from pagefile.records import JsonValue, Scope

Operation: TypeAlias = Literal["created", "modified", "deleted"]
MAX_PATH_BYTES, MAX_SEGMENTS = 1_024, 20
#: Control and format characters, and the separators of lines and paragraphs: nothing that a reader cannot see is part of a path.
_HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Document:
    id: str
    path: str
    content: str
    created: datetime
    updated: datetime
    #: The id of the version that has this content.
    version: str

    @property
    def sha256(self) -> str:
        return digest(self.content)


@dataclass(frozen=True, slots=True)
class Version:
    """A document as one change left it."""

    id: str
    document: str
    #: None if it was redacted.
    path: str | None
    #: None if the document was deleted, or the version redacted.
    content: str | None
    operation: Operation
    created: datetime
    #: Who made the change, as the caller calls it.
    author: str | None = None
    redacted: datetime | None = None
    redacted_by: str | None = None


_DOCUMENT, _VERSION = TypeAdapter(Document), TypeAdapter(Version)


def digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def checked_path(path: str) -> str:
    """The path, if it is absolute, has no segment that leads elsewhere, and shows all its characters."""
    segments = path.split("/")[1:]
    if not path.startswith("/") or not 1 <= len(segments) <= MAX_SEGMENTS:
        raise InvalidArgumentError(f"The path must begin with / and have 1 to {MAX_SEGMENTS} segments.")
    if any(segment in {"", ".", ".."} for segment in segments):
        raise InvalidArgumentError("A segment of the path must not be empty, `.` or `..`.")
    if any(unicodedata.category(one) in _HIDDEN or 0xD800 <= ord(one) < 0xE000 for one in path):
        raise InvalidArgumentError("The path must not have control or format characters.")
    if unicodedata.normalize("NFC", path) != path:
        raise InvalidArgumentError("The path must be in Unicode Normalization Form C.")
    if len(path.encode()) > MAX_PATH_BYTES:
        raise InvalidArgumentError(f"The path must have at most {MAX_PATH_BYTES} bytes.")
    return path


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of one collection of a user, or of a tenant if the scope names no user."""

    memory: Memory
    scope: Scope
    collection: str
    author: str | None = None

    # -- reading ------------------------------------------------------------------------------------------------------

    async def get(self, document_id: str) -> Document:
        found = await self._value(self._key("documents", document_id))
        if found is None:
            raise NotFoundError(f"There is no memory {document_id!r} here.")
        return _DOCUMENT.validate_python(found)

    async def at(self, path: str) -> Document | None:
        found = await self._value(self._key("paths", path))
        return None if found is None else await self.get(cast("str", found))

    async def all(self) -> list[Document]:
        """Every document, by path."""
        items = await self._items.under(self.scope, self._namespace("documents"), now=self._now())
        found = (_DOCUMENT.validate_python(item.value) for item in items)
        return sorted(found, key=lambda one: one.path)

    async def versions(self, document_id: str | None = None) -> list[Version]:
        """Versions of one document or of all, newest first; those of deleted documents too."""
        items = await self._items.under(self.scope, self._namespace("versions"), now=self._now())
        found = [_VERSION.validate_python(item.value) for item in items]
        wanted = (one for one in found if document_id in {None, one.document})
        return sorted(wanted, key=lambda one: (one.created, one.id), reverse=True)

    async def version(self, version_id: str) -> Version:
        found = await self._value(self._key("versions", version_id))
        if found is None:
            raise NotFoundError(f"There is no version {version_id!r} here.")
        return _VERSION.validate_python(found)

    # -- changing -----------------------------------------------------------------------------------------------------

    async def create(self, path: str, content: str) -> Document:
        now, document_id = self._now(), f"mem_{uuid4().hex}"
        version = self._made(document_id, checked_path(path), content, "created", now)
        document = Document(document_id, path, content, now, now, version.id)
        try:
            await self._write(
                now,
                self._puts(document, version, {"paths": {path: document_id}}),
                {self._key("paths", path): None},
            )
        except ConflictError as error:
            raise ConflictError(f"There is already a memory at {path}.") from error
        return document

    async def change(
        self, before: Document, *, content: str | None = None, path: str | None = None
    ) -> Document:
        """The document with other contents, at another path, or both; `ConflictError` if it is no longer as it was read."""
        now = max(self._now(), before.updated)
        after = replace(
            before,
            content=before.content if content is None else content,
            path=before.path if path is None else checked_path(path),
        )
        if after == before:
            return before
        version = self._made(before.id, after.path, after.content, "modified", now)
        after = replace(after, updated=now, version=version.id)
        expected: dict[ItemKey, JsonValue] = {self._key("documents", before.id): to_json(before)}
        paths: dict[str, JsonValue] = {}
        if after.path != before.path:
            expected[self._key("paths", after.path)] = None
            paths = {before.path: None, after.path: before.id}
        await self._write(now, self._puts(after, version, {"paths": paths}), expected)
        return after

    async def delete(self, *documents: Document) -> None:
        """Remove documents, all or none; their versions stay, and say that they were deleted."""
        now = self._now()
        writes: list[ItemWrite] = []
        for one in documents:
            version = self._made(one.id, one.path, None, "deleted", max(now, one.updated))
            writes += [
                ItemWrite(*self._key("documents", one.id), None),
                ItemWrite(*self._key("paths", one.path), None),
                ItemWrite(*self._key("versions", version.id), to_json(version)),
            ]
        expected = {self._key("documents", one.id): to_json(one) for one in documents}
        await self._write(now, writes, expected)

    async def move(self, documents: Mapping[str, Document]) -> None:
        """Rename several documents to these paths, all or none."""
        now = self._now()
        writes: list[ItemWrite] = []
        expected: dict[ItemKey, JsonValue] = {}
        for path, one in documents.items():
            version = self._made(one.id, checked_path(path), one.content, "modified", max(now, one.updated))
            after = replace(one, path=path, updated=version.created, version=version.id)
            writes += self._puts(after, version, {"paths": {one.path: None, path: one.id}})
            expected |= {
                self._key("documents", one.id): to_json(one),
                self._key("paths", path): None,
            }
        await self._write(now, writes, expected)

    async def redact(self, version_id: str) -> Version:
        """Remove what an earlier version said, for good; the version in force cannot be redacted."""
        before = await self.version(version_id)
        if before.redacted is not None:
            return before
        held = await self._value(self._key("documents", before.document))
        if held is not None and _DOCUMENT.validate_python(held).version == version_id:
            raise ConflictError("This version is in force: change or delete the memory first.")
        now = self._now()
        after = replace(before, path=None, content=None, redacted=now, redacted_by=self.author)
        key = self._key("versions", version_id)
        await self._write(now, [ItemWrite(*key, to_json(after))], {key: to_json(before)})
        return after

    async def remove_all(self) -> None:
        """Every document and every version of this collection."""
        now = self._now()
        found = await self._items.under(self.scope, self._namespace(), now=now)
        await self._items.write(
            self.scope, [ItemWrite(item.namespace, item.key, None) for item in found], now=now
        )

    # -- items --------------------------------------------------------------------------------------------------------

    @property
    def _items(self) -> Any:
        return self.memory.engine.store.items

    def _now(self) -> datetime:
        return self.memory.engine.clock.now()

    def _namespace(self, *kind: str) -> Namespace:
        return (OWN_NAMESPACE, "documents", self.collection, *kind)

    def _key(self, kind: str, key: str) -> ItemKey:
        return self._namespace(kind), key

    async def _value(self, key: ItemKey) -> JsonValue:
        self.memory.engine.check_open()
        (found,) = await self._items.get(self.scope, [key], now=self._now())
        return None if found is None else found.value

    def _made(
        self, document: str, path: str, content: str | None, operation: Operation, now: datetime
    ) -> Version:
        return Version(f"memver_{uuid4().hex}", document, path, content, operation, now, self.author)

    def _puts(
        self, document: Document, version: Version, more: Mapping[str, Mapping[str, JsonValue]]
    ) -> list[ItemWrite]:
        rest = [
            ItemWrite(*self._key(kind, key), value)
            for kind, some in more.items()
            for key, value in some.items()
        ]
        return [
            ItemWrite(*self._key("documents", document.id), to_json(document)),
            ItemWrite(*self._key("versions", version.id), to_json(version)),
            *rest,
        ]

    async def _write(
        self, now: datetime, writes: Sequence[ItemWrite], expected: Mapping[ItemKey, JsonValue]
    ) -> None:
        self.memory.engine.check_open()
        await self._items.write(self.scope, writes, now=now, expected=expected)
