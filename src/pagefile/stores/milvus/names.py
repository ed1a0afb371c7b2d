"""How scopes and models are written in Milvus.

A row holds ids, a vector, and hashes of its owner: no text, which only the database has, and nothing that identifies a user.
Filters in Milvus are text, without parameters on either server. So no id given by a caller is ever put into one: filters use the
hashes that erasures are noted under.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pagefile.ports import EmbeddingModel, VectorRow
from pagefile.records import Scope
from pagefile.stores import rules
from pagefile.stores.erasure import scope_key
from pagefile.stores.milvus.driver import Column

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

#: The first is the key.
TEXTS = (
    Column("id", _DIGEST_BYTES),
    Column("conversation_id", _ID_BYTES),
    Column("turn_id", _ID_BYTES),
    Column("tenant_key", _KEY_BYTES),
    Column("user_key", _KEY_BYTES),
    Column("conversation_key", _KEY_BYTES),
)
#: `epoch` is the number of the last erasure when the vector was made.
NUMBERS = ("seq", "epoch")
#: What a search returns besides the key.
NAMES = ("conversation_id", "seq", "turn_id")
#: Stored as the owner of rows without one.
NOBODY = ""


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


def filter_of(scope: Scope) -> tuple[str, Callable[[Mapping[str, str]], bool]]:
    """What rows of this scope have in common: a filter for the server, and the same test in Python."""
    if scope.conversation is None and scope.user is None:
        return _equal("tenant_key", scope_key(scope.tenant))
    if scope.conversation is None:
        return _equal("user_key", scope_key(scope.tenant, scope.user))
    return _of_conversation(scope, keys_of(scope)["user_key"])


def erased_with(scope: Scope) -> tuple[str, Callable[[Mapping[str, str]], bool]]:
    """The rows erased with this scope: for a conversation, also those written before it had an owner, as older versions allowed."""
    if scope.conversation is None:
        return filter_of(scope)
    keys = keys_of(scope)
    if scope.user is None:
        return _equal("conversation_key", keys["conversation_key"])
    return _of_conversation(scope, keys["user_key"], NOBODY)


def erased_filter(keys: Iterable[str], epoch: int) -> str:
    """The rows of scopes with these keys that were written before the erasure of this number."""
    named = json.dumps(sorted(keys))
    one_of = " or ".join(f"{field} in {named}" for field in ("tenant_key", "user_key", "conversation_key"))
    return f"({one_of}) and epoch < {epoch}"


def _of_conversation(scope: Scope, *owners: str) -> tuple[str, Callable[[Mapping[str, str]], bool]]:
    text, within = _equal("conversation_key", keys_of(scope)["conversation_key"])
    quoted = ", ".join(f'"{owner}"' for owner in owners)
    return f"{text} and user_key in [{quoted}]", lambda row: within(row) and row["user_key"] in owners


def _equal(field: str, value: str) -> tuple[str, Callable[[Mapping[str, str]], bool]]:
    return f'{field} == "{value}"', lambda row: row[field] == value


def _digest(*parts: str) -> str:
    text = json.dumps(parts)
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES // 2).hexdigest()
