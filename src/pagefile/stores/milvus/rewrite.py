"""Rewrites collections: those that contained texts, and those in a file from which something was erased.

A row that is deleted stays in the files of Milvus until they are compacted. A server does that by itself, some time later. A Milvus
in a file does not (3.2 merges small files only), so the remaining rows are copied to a new collection and the old one is dropped,
which deletes its files at once.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pagefile.ports import EmbeddingModel
from pagefile.records import Scope
from pagefile.stores.milvus.driver import Client, columns
from pagefile.stores.milvus.names import (
    MAKER_PROPERTY,
    NUMBERS,
    PREFIX,
    REWRITTEN,
    TEXTS,
    WITH_TEXTS,
    collection_of,
    keys_of,
    model_of,
    model_text,
)

Record = dict[str, Any]

_FIELDS = (*(column.name for column in TEXTS), *NUMBERS, "embedding")
_FIELDS_WITH_TEXTS = ("id", "conversation_id", "turn_id", "tenant", "user_id", "seq", "embedding")
#: Rows read together: of 4096 numbers each, they fit into a message of gRPC.
_ROWS = 500
#: The most ids that a server gives at a time.
_IDS = 16_384
_DIGITS = "0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Rewriter:
    client: Client
    timeout_s: float

    def tidy(self) -> None:
        """Finish what a process that died had begun, and copy collections of earlier versions, which have texts, to ones without."""
        names = set(self.client.list_collections(timeout=self.timeout_s))
        for name in sorted(names):
            if name.startswith(PREFIX) and name.endswith(REWRITTEN):
                self._finish(name.removesuffix(REWRITTEN), names)
            elif name.startswith(f"{WITH_TEXTS}_"):
                self._take_texts_out(name)

    def rewrite(self, name: str, model: EmbeddingModel) -> None:
        """Rewrite a collection in a file, so that no deleted row is left in it."""
        new = f"{name}{REWRITTEN}"
        # One that was begun and not finished.
        self.client.drop_collection(new, timeout=self.timeout_s)
        self.create(new, model)
        self._copy(name, new, _FIELDS, dict)
        self.client.drop_collection(name, timeout=self.timeout_s)
        self.client.rename_collection(new, name, timeout=self.timeout_s)

    def create(self, name: str, model: EmbeddingModel) -> None:
        """Create an empty collection for a model's vectors. Two processes may do so at once: a server makes one, without an error."""
        schema, index = columns(TEXTS, NUMBERS, model.dimension)
        self.client.create_collection(
            name,
            schema=schema,
            index_params=index,
            consistency_level="Bounded",
            properties={MAKER_PROPERTY: model_text(model)},
            timeout=self.timeout_s,
        )

    def _finish(self, name: str, names: set[str]) -> None:
        """The old one is dropped once the new one is complete: while it exists, the new one may be incomplete."""
        if name in names:
            self.client.drop_collection(f"{name}{REWRITTEN}", timeout=self.timeout_s)
        else:
            self.client.rename_collection(f"{name}{REWRITTEN}", name, timeout=self.timeout_s)

    def _take_texts_out(self, name: str) -> None:
        model = model_of(self.client.describe_collection(name, timeout=self.timeout_s))
        if model is None or collection_of(model, WITH_TEXTS) != name:
            # Not ours: the collections of `pagefile.standalone` begin with the same word as ours used to.
            return
        new = collection_of(model)
        if not self.client.has_collection(new, timeout=self.timeout_s):
            self.create(new, model)
        self.client.load_collection(name, timeout=self.timeout_s)
        self._copy(name, new, _FIELDS_WITH_TEXTS, _without_texts)
        self.client.drop_collection(name, timeout=self.timeout_s)

    def _copy(self, old: str, new: str, fields: tuple[str, ...], changed: Callable[[Record], Record]) -> None:
        every = self._ids(old)
        while ids := list(islice(every, _ROWS)):
            found = self.client.query(
                old,
                filter=f"id in {json.dumps(ids)}",
                output_fields=list(fields),
                consistency_level="Strong",
                timeout=self.timeout_s,
            )
            records = [changed({field: row[field] for field in fields}) for row in found]
            for record in records:
                # The server returns vectors as another list type.
                record["embedding"] = [float(number) for number in record["embedding"]]
            if records:
                self.client.upsert(new, records, timeout=self.timeout_s)
        # Other processes must be able to count and find these rows before the old collection is dropped.
        self.client.flush(new, timeout=self.timeout_s)

    def _ids(self, name: str, prefix: str = "") -> Iterator[str]:
        """All keys, by prefix: pymilvus's iterator misses rows that a server received a moment ago."""
        for digit in _DIGITS:
            first = prefix + digit
            found = self.client.query(
                name,
                filter=f'id like "{first}%"',
                output_fields=["id"],
                limit=_IDS,
                consistency_level="Strong",
                timeout=self.timeout_s,
            )
            if len(found) < _IDS:
                yield from (row["id"] for row in found)
            else:
                yield from self._ids(name, first)


def _without_texts(record: Record) -> Record:
    scope = Scope(record.pop("tenant"), record.pop("user_id") or None, record["conversation_id"])
    return {**record, **keys_of(scope), "epoch": 0}
