"""A digest of a row's content, so that corruption or an edit made outside Pagefile is noticed.

It covers the fields that never change once written, and none that do: a conversation's owner, pins and loads. A
field added later is left out where it is empty, so that older rows keep their digest.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime

from pagefile.ports import TurnDraft
from pagefile.records import Fact, JsonValue, Page, Turn
from pagefile.stores.encoding import own_json_bytes, time_text, to_json, turn_texts

#: Fields of pages and facts that change, or that another tokenizer would count differently.
_LEFT_OUT = frozenset(
    {"scope", "tokens", "counter", "pinned", "loads", "last_load", "purged", "stored_bytes", "outcome"}
)


def turn_digest(turn: Turn | TurnDraft, texts: Mapping[str, str | None] | None = None) -> str | None:
    """The digest of what was said, by whom, when, with which tools; None while open. `texts` are its JSON columns, if known."""
    if turn.status == "open":
        return None
    texts = turn_texts(turn) if texts is None else texts
    place = "turn", turn.scope.tenant, turn.scope.conversation, turn.id, turn.status
    said = turn.user, turn.assistant, time_text(turn.at)
    return _digest((*place, *said, texts["steps"], texts["metadata"], texts["messages"]))


def record_digest(record: Page | Fact) -> str:
    """The digest of a tool result (its source, its summary, the hash of its text) or of a fact as it is now."""
    said: dict[str, JsonValue] = {"tenant": record.scope.tenant, "user": record.scope.user}
    said["conversation"] = record.scope.conversation
    for field in fields(record):
        if field.name not in _LEFT_OUT:
            value = getattr(record, field.name)
            said[field.name] = time_text(value) if isinstance(value, datetime) else value
    known = {name: value for name, value in said.items() if value not in (None, "")}
    return _digest((type(record).__name__.lower(), to_json(known)))


def _digest(parts: tuple[str | None, ...]) -> str:
    # Every recorded turn pays for this: of the unambiguous ways to write a list, this is the fastest.
    return hashlib.sha256(own_json_bytes(parts)).hexdigest()
