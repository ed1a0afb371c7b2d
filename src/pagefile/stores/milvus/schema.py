"""Collections in Milvus: how scopes and models are written there, and how a collection is rewritten.

A row holds ids, a vector, and hashes of its owner: no text, which only the database has, and nothing that identifies a user.
Filters in Milvus are text, without parameters on either server. So no id given by a caller is ever put into one: filters use the
hashes that erasures are noted under.

A row that is deleted stays in the files of Milvus until they are compacted. A server does that by itself, some time later. A Milvus
in a file does not (3.2 merges small files only), so the remaining rows are copied to a new collection and the old one is dropped,
which deletes its files at once.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from pagefile.ports import EmbeddingModel, VectorRow
from pagefile.records import Scope
from pagefile.stores import rules
from pagefile.stores.erasure import scope_key
from pagefile.stores.milvus.driver import Client, columns

Record: TypeAlias = dict[str, Any]
#: A filter for the server, and the same test in Python.
Filter: TypeAlias = tuple[str, Callable[[Mapping[str, str]], bool]]

PREFIX = "pagefile_turns"
#: Collections of earlier versions, which contained the texts of turns.
WITH_TEXTS = "conversation_episodes"
#: A collection that is being rewritten, next to the one it will replace.
REWRITTEN = "_rewritten"
#: A property of the collection that names the model of its vectors.
MAKER_PROPERTY = "pagefile.maker"

#: An id has up to 255 characters.
_ID_BYTES = 1020
_DIGEST_BYTES = 32
_KEY_BYTES = 64

#: Fields with the size of their text in bytes; the first is the key.
TEXTS = {
    "id": _DIGEST_BYTES,
    "conversation_id": _ID_BYTES,
    "turn_id": _ID_BYTES,
    "tenant_key": _KEY_BYTES,
    "user_key": _KEY_BYTES,
    "conversation_key": _KEY_BYTES,
}
#: The most that the texts of a row take.
TEXT_BYTES = sum(TEXTS.values())
#: `epoch` is the number of the last erasure when the vector was made.
NUMBERS = ("seq", "epoch")
#: What a search returns besides the key.
NAMES = ("conversation_id", "seq", "turn_id")
#: Stored as the owner of rows without one.
NOBODY = ""
FIELDS = (*TEXTS, *NUMBERS, "embedding")
_FIELDS_WITH_TEXTS = ("id", "conversation_id", "turn_id", "tenant", "user_id", "seq", "embedding")
#: Rows read together: of 4096 numbers each, they fit into a message of gRPC.
_ROWS = 500
#: The most ids that a server gives at a time.
_IDS = 16_384
_DIGITS = "0123456789abcdef"


def collection_of(model: EmbeddingModel, prefix: str = PREFIX) -> str:
    """The collection of a model's vectors: a name may have letters, digits and underscores only."""
    return f"{prefix}_{_digest(model.key)[:16]}"


def model_of(described: Mapping[str, Any]) -> EmbeddingModel | None:
    """The model that a collection belongs to, None if it is not one of ours."""
    name = described.get("properties", {}).get(MAKER_PROPERTY)
    sizes = [field["params"]["dim"] for field in described["fields"] if field["name"] == "embedding"]
    if not (name and sizes):
        return None
    told: str | list[str] = json.loads(name)
    named, version = (told, "") if isinstance(told, str) else told
    return EmbeddingModel(named, int(sizes[0]), version)


def model_text(model: EmbeddingModel) -> str:
    """The text that `model_of` reads; for a model without a version, the format of earlier releases."""
    return json.dumps([model.name, model.version] if model.version else model.name)


def id_of(row: VectorRow) -> str:
    """The key of a turn's row: turns of two conversations may have the same id."""
    return _digest("turn", row.scope.tenant, rules.conversation_of(row.scope), str(row.seq))


def keys_of(scope: Scope) -> dict[str, str]:
    """The keys that erasures of a row's tenant, owner and conversation are noted under."""
    return {
        "tenant_key": scope_key(scope.tenant),
        "user_key": NOBODY if scope.user is None else scope_key(scope.tenant, scope.user),
        "conversation_key": scope_key(scope.tenant, None, rules.conversation_of(scope)),
    }


def filter_of(scope: Scope, *, of_any_owner: bool = False) -> Filter:
    """What rows of this scope have in common; `of_any_owner`: those of a conversation whose owner it does not name, too."""
    if scope.conversation is not None:
        wanted = keys_of(scope)
        if of_any_owner and scope.user is None:
            del wanted["user_key"]
    elif scope.user is not None:
        wanted = {"user_key": scope_key(scope.tenant, scope.user)}
    else:
        wanted = {"tenant_key": scope_key(scope.tenant)}
    text = " and ".join(f'{field} == "{value}"' for field, value in wanted.items())
    return text, lambda row: wanted.items() <= row.items()


def erased_filter(keys: Iterable[str], epoch: int) -> str:
    """The rows of scopes with these keys that were written before the erasure of this number."""
    named = json.dumps(sorted(keys))
    one_of = " or ".join(f"{field} in {named}" for field in ("tenant_key", "user_key", "conversation_key"))
    return f"({one_of}) and epoch < {epoch}"


def query(
    client: Client, name: str, text: str, fields: Iterable[str], timeout_s: float, **limit: int
) -> list[Record]:
    """The rows that a filter selects, with all that was written: a read that misses a write would be wrong here."""
    options = {"output_fields": list(fields), "consistency_level": "Strong", "timeout": timeout_s, **limit}
    return [dict(row) for row in client.query(name, filter=text, **options)]


def _digest(*parts: str) -> str:
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=_DIGEST_BYTES // 2).hexdigest()


@dataclass(frozen=True, slots=True)
class Rewriter:
    client: Client
    timeout_s: float

    def tidy(self) -> None:
        """Finish what a process that died had begun, and copy collections of earlier versions, which have texts, to ones without."""
        names = set(self.client.list_collections(timeout=self.timeout_s))
        for name in sorted(names):
            if name.startswith(PREFIX) and name.endswith(REWRITTEN):
                # The old one is dropped once the new one is complete: while it exists, the new one may be incomplete.
                if (old := name.removesuffix(REWRITTEN)) in names:
                    self.client.drop_collection(name, timeout=self.timeout_s)
                else:
                    self.client.rename_collection(name, old, timeout=self.timeout_s)
            elif name.startswith(f"{WITH_TEXTS}_"):
                self._take_texts_out(name)

    def rewrite(self, name: str, model: EmbeddingModel) -> None:
        """Rewrite a collection in a file, so that no deleted row is left in it."""
        new = f"{name}{REWRITTEN}"
        # One that was begun and not finished.
        self.client.drop_collection(new, timeout=self.timeout_s)
        self.create(new, model)
        self._copy(name, new, FIELDS, dict)
        self.client.drop_collection(name, timeout=self.timeout_s)
        self.client.rename_collection(new, name, timeout=self.timeout_s)

    def create(self, name: str, model: EmbeddingModel) -> None:
        """Create an empty collection for a model's vectors. Two processes may do so at once: a server makes one, without an error."""
        schema, index = columns(TEXTS, NUMBERS, model.dimension)
        made = {"schema": schema, "index_params": index, "properties": {MAKER_PROPERTY: model_text(model)}}
        self.client.create_collection(name, **made, consistency_level="Bounded", timeout=self.timeout_s)

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
            found = query(self.client, old, f"id in {json.dumps(ids)}", fields, self.timeout_s)
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
            found = query(self.client, name, f'id like "{first}%"', ["id"], self.timeout_s, limit=_IDS)
            if len(found) < _IDS:
                yield from (row["id"] for row in found)
            else:
                yield from self._ids(name, first)


def _without_texts(record: Record) -> Record:
    scope = Scope(record.pop("tenant"), record.pop("user_id") or None, record["conversation_id"])
    return {**record, **keys_of(scope), "epoch": 0}
