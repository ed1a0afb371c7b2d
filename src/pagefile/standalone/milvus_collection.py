"""Document 002's Milvus collection, through the caller's own client: calling it, reading all of it, and erasing from it.

Its fields are the document's and include text, so erasing has to reach the files. Embedded Milvus never physically removes deleted
rows: the remaining ones are copied to a new collection, and the old one is dropped with its files. A server removes them later.
"""

import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from importlib import import_module
from typing import Any

from pagefile.errors import MissingExtraError, StoreError
from pagefile.standalone.user_code import called

#: Milvus' limit for a text field, and ours for an id, in bytes.
MAX_FIELD_BYTES = 65_535
_MAX_ID_BYTES = 1020
#: The suffix of a collection being rewritten, before it replaces the original.
_REWRITTEN = "_rewritten"
#: The most rows a server returns at once.
_MOST_ROWS = 16_384
#: Rows copied at a time: each may have two texts of 64 kB.
_ROWS = 100
#: After every timestamp.
_END = 2**40
#: Keys in an index description that are not parameters: what it is, and its state.
_INDEX = ("index_type", "metric_type", "field_name", "index_name")
_STATE = ("state", "total_rows", "indexed_rows", "pending_index_rows", "mmap_enabled")
LEFT = (
    "texts of document 002's episodes in the files of Milvus: until it has compacted them and collected its garbage, "
    "and its message queue has let go of them"
)

Row = dict[str, Any]


class MilvusCollection:
    """One collection over a `MilvusClient` or an `AsyncMilvusClient`."""

    def __init__(self, client: Any, name: str) -> None:
        self.client = client
        self.name = name
        self._new = f"{name}{_REWRITTEN}"
        #: Whether it is in a file of this process; None until checked.
        self._in_file: bool | None = None

    async def call(self, verb: str, **arguments: Any) -> Any:
        """Call a method of the client for this collection; its errors become ours."""
        return await self.ask(verb, **{"collection_name": self.name, **arguments})

    async def ask(self, verb: str, **arguments: Any) -> Any:
        try:
            return await called(getattr(self.client, verb), **arguments)
        except _milvus_errors() as error:
            raise StoreError(f"Milvus could not {verb} in {self.name!r}: {error}") from error

    async def in_file(self) -> bool:
        """Whether Milvus is embedded in this process and manages its own files."""
        if self._in_file is None:
            # The server wheel reports "v2.3.5-lite" but is not embedded.
            self._in_file = str(await self.ask("get_server_version")).startswith("milvus_lite")
        return self._in_file

    async def is_there(self) -> bool:
        """Whether the collection exists, after completing a rewrite that a crashed process left behind."""
        if await self.call("has_collection", collection_name=self._new):
            # The old one is dropped once the new one is complete: while both exist, the new one may be incomplete.
            if await self.call("has_collection"):
                await self.call("drop_collection", collection_name=self._new)
            else:
                await self.ask("rename_collection", old_name=self._new, new_name=self.name)
        return bool(await self.call("has_collection"))

    async def create(self, dimension: int) -> None:
        """Create it with the document's fields, and room for others."""
        kinds = _pymilvus().DataType
        schema = self.client.create_schema(auto_id=False, enable_dynamic_field=True)
        schema.add_field("id", kinds.VARCHAR, is_primary=True, max_length=_MAX_ID_BYTES)
        schema.add_field("conversation_id", kinds.VARCHAR, max_length=_MAX_ID_BYTES)
        for name in ("user_message", "assistant_message"):
            schema.add_field(name, kinds.VARCHAR, max_length=MAX_FIELD_BYTES)
        schema.add_field("embedding", kinds.FLOAT_VECTOR, dim=dimension)
        schema.add_field("created_at", kinds.INT64)
        index = self.client.prepare_index_params()
        index.add_index("embedding", index_type="AUTOINDEX", metric_type="COSINE")
        await self.call("create_collection", schema=schema, index_params=index, consistency_level="Strong")

    async def rows(self, fields: Sequence[str], first: int = 0, end: int = _END) -> AsyncIterator[Row]:
        """These fields of every row, by creation time: a server limits the number of results and does not order them."""
        found = await self._query(f"created_at >= {first} and created_at < {end}", fields, limit=_MOST_ROWS)
        if len(found) < _MOST_ROWS or end - first < 2:
            for row in found:
                yield row
            return
        middle = (first + end) // 2
        for begin, until in ((first, middle), (middle, end)):
            async for row in self.rows(fields, begin, until):
                yield row

    async def some(self, ids: Sequence[str], fields: Sequence[str]) -> AsyncIterator[list[Row]]:
        """These fields of the rows with the given ids, in batches, since rows may be large."""
        for part in _parts(ids):
            yield await self._query(f"id in [{', '.join(map(quoted, part))}]", fields)

    async def _query(self, wanted: str, fields: Sequence[str], **more: Any) -> list[Row]:
        asked = {"filter": wanted, "output_fields": list(fields), "consistency_level": "Strong"}
        return await self.call("query", **asked, **more)

    async def remove(self, gone: Sequence[str], kept: Sequence[str]) -> str:
        """Remove the rows with the given ids, where all others are `kept`; says what remains of them in the files."""
        described = await self.call("describe_collection")
        if await self.in_file() and not described.get("auto_id"):
            await self._rewrite(described, kept)
            return ""
        for ids in _parts(gone):
            await self.call("delete", ids=ids)
        await self.call("flush")
        await self.call("compact")
        return LEFT

    async def _rewrite(self, described: Row, kept: Sequence[str]) -> None:
        new: Row = {"collection_name": self._new}
        await self.call(
            "create_collection",
            **new,
            schema=_pymilvus().CollectionSchema.construct_from_dict(described),
            index_params=await self._indexes(),
            consistency_level=described.get("consistency_level_name", "Strong"),
            properties=dict(described.get("properties") or {}),
        )
        async for rows in self.some(kept, ["*"]):
            await self.call("insert", **new, data=[dict(row) for row in rows])
        await self.call("drop_collection")
        await self.ask("rename_collection", old_name=self._new, new_name=self.name)
        await self.call("load_collection")

    async def _indexes(self) -> Any:
        made = self.client.prepare_index_params()
        for name in await self.call("list_indexes"):
            told = await self.call("describe_index", index_name=name)
            made.add_index(
                told["field_name"],
                index_type=told["index_type"],
                index_name=name,
                metric_type=told.get("metric_type", ""),
                params={key: value for key, value in told.items() if key not in (*_INDEX, *_STATE)},
            )
        return made


def quoted(text: str) -> str:
    """A text as a literal in a Milvus filter, with any content: embedded Milvus has no filter parameters."""
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    return f'"{text}"'


def _pymilvus() -> Any:
    try:
        # An untyped extra that takes three seconds to import.
        return import_module("pymilvus")
    except ImportError as error:
        raise MissingExtraError.of("milvus", "An episodic memory in Milvus") from error


def _milvus_errors() -> tuple[type[Exception], ...]:
    """The errors of pymilvus; none if it was never imported, because then the client is another."""
    known = [(sys.modules.get("pymilvus"), "MilvusException"), (sys.modules.get("grpc"), "RpcError")]
    return tuple(getattr(module, name) for module, name in known if module is not None)


def _parts(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _ROWS):
        yield list(ids[start : start + _ROWS])
