"""How scopes, makers and texts are written in Milvus.

A filter of Milvus is a text, and neither server knows parameters in it. So no id of a caller ever stands in one: beside the
ids a row has short digests of them, and filters name those.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from pagefile.ports import Maker, VectorRow
from pagefile.records import Scope
from pagefile.stores import rules
from pagefile.stores.milvus.driver import Column

PREFIX = "conversation_episodes"
#: A property of the collection that says what made its vectors.
MAKER_PROPERTY = "pagefile.maker"

#: An id has up to 255 characters.
_ID_BYTES = 1020
_TEXT_BYTES = 65_535
_DIGEST_BYTES = 32

#: Document 002's fields, then ours; the first is the key.
TEXTS = (
    Column("id", _DIGEST_BYTES),
    Column("conversation_id", _ID_BYTES),
    Column("user_message", _TEXT_BYTES),
    Column("assistant_message", _TEXT_BYTES),
    Column("tenant", _ID_BYTES),
    Column("user_id", _ID_BYTES),
    Column("turn_id", _ID_BYTES),
    Column("tenant_key", _DIGEST_BYTES),
    Column("user_key", _DIGEST_BYTES),
    Column("conversation_key", _DIGEST_BYTES),
)
NUMBERS = ("created_at", "seq")
#: What a search asks for beside the key.
NAMES = ("conversation_id", "seq", "turn_id")
#: The owner of what nobody owns.
NOBODY = ""


def collection_of(maker: Maker) -> str:
    """The collection of a maker's vectors: a name may have letters, digits and underscores only."""
    return f"{PREFIX}_{_digest(maker.key)[:16]}"


def maker_of(described: Mapping[str, Any]) -> Maker | None:
    """The maker that a collection belongs to, None if it is not one of ours."""
    name = described.get("properties", {}).get(MAKER_PROPERTY)
    sizes = [field["params"]["dim"] for field in described["fields"] if field["name"] == "embedding"]
    if not (name and sizes):
        return None
    told: str | list[str] = json.loads(name)
    named, version = (told, "") if isinstance(told, str) else told
    return Maker(named, int(sizes[0]), version)


def maker_text(maker: Maker) -> str:
    """What `maker_of` reads; a maker without a version as it always was."""
    return json.dumps([maker.name, maker.version] if maker.version else maker.name)


def id_of(row: VectorRow) -> str:
    """The key of a turn's row: turns of two conversations may have the same id."""
    return _digest("turn", row.scope.tenant, rules.conversation_of(row.scope), str(row.seq))


def keys_of(scope: Scope) -> dict[str, str]:
    """The digests of a row's tenant, owner and conversation."""
    return {
        "tenant_key": _digest("tenant", scope.tenant),
        "user_key": NOBODY if scope.user is None else _digest("user", scope.tenant, scope.user),
        "conversation_key": _digest("conversation", scope.tenant, rules.conversation_of(scope)),
    }


def filter_of(scope: Scope) -> tuple[str, Callable[[Mapping[str, str]], bool]]:
    """What a row of this scope has, for the server and for us."""
    if scope.conversation is None and scope.user is None:
        return _equal("tenant_key", _digest("tenant", scope.tenant))
    if scope.conversation is None:
        return _equal("user_key", _digest("user", scope.tenant, scope.user or ""))
    return _of_conversation(scope, keys_of(scope)["user_key"])


def erased_with(scope: Scope) -> tuple[str, Callable[[Mapping[str, str]], bool]]:
    """What goes with this scope: of a conversation also rows from before it had an owner, which once came late."""
    if scope.conversation is None:
        return filter_of(scope)
    keys = keys_of(scope)
    if scope.user is None:
        return _equal("conversation_key", keys["conversation_key"])
    return _of_conversation(scope, keys["user_key"], NOBODY)


def clipped(text: str, size: int) -> str:
    """The text in so many bytes; the whole of it is in the log."""
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")


def _of_conversation(scope: Scope, *owners: str) -> tuple[str, Callable[[Mapping[str, str]], bool]]:
    text, within = _equal("conversation_key", keys_of(scope)["conversation_key"])
    quoted = ", ".join(f'"{owner}"' for owner in owners)
    return f"{text} and user_key in [{quoted}]", lambda row: within(row) and row["user_key"] in owners


def _equal(field: str, value: str) -> tuple[str, Callable[[Mapping[str, str]], bool]]:
    return f'{field} == "{value}"', lambda row: row[field] == value


def _digest(*parts: str) -> str:
    text = json.dumps(parts)
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES // 2).hexdigest()
