"""A digest of what a row says, so that a change nobody made can be noticed.

It covers what never changes once it is written, and nothing that does: whose a conversation is, pins and loads. A
field that is added later is left out where it is empty, so that rows from before it keep their digest.
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
    """Of what was said, by whom, when, with which tools; None while it goes on. `texts` are its JSON columns, where at hand."""
    if turn.status == "open":
        return None
    texts = turn_texts(turn) if texts is None else texts
    scope = turn.scope
    parts = (
        "turn",
        scope.tenant,
        scope.conversation,
        turn.id,
        turn.status,
        turn.user,
        turn.assistant,
        time_text(turn.at),
        texts["steps"],
        texts["metadata"],
        texts["messages"],
    )
    return _digest(parts)


def record_digest(record: Page | Fact) -> str:
    """Of a tool result (where it came from, what it says in short, the hash of its text) or of a statement as it is held now."""
    said: dict[str, JsonValue] = {"tenant": record.scope.tenant, "user": record.scope.user}
    said["conversation"] = record.scope.conversation
    for field in fields(record):
        if field.name not in _LEFT_OUT:
            value = getattr(record, field.name)
            said[field.name] = time_text(value) if isinstance(value, datetime) else value
    known = {name: value for name, value in said.items() if value not in (None, "")}
    return _digest((type(record).__name__.lower(), to_json(known)))


def _digest(parts: tuple[str | None, ...]) -> str:
    # Every turn that is recorded pays for this: of the ways to write a list unmistakably, this is the fastest.
    return hashlib.sha256(own_json_bytes(parts)).hexdigest()
