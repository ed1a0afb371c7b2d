"""A digest of what a row says, so that a change nobody made can be noticed.

It covers what never changes once it is written, and nothing that does: whose a conversation is, pins and loads. A
field that is added later is left out where it is empty, so that rows from before it keep their digest.
"""

import hashlib
from collections.abc import Mapping

from pagefile.ports import TurnDraft
from pagefile.records import Fact, JsonValue, Page, Turn
from pagefile.stores.encoding import own_json_bytes, time_text, to_json, turn_texts


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


def page_digest(page: Page) -> str:
    """Of a tool result: where it came from, what it says in short, and the hash of its text."""
    scope = page.scope
    fields: dict[str, JsonValue] = {
        "tenant": scope.tenant,
        "user": scope.user,
        "conversation": scope.conversation,
        "uuid": page.uuid,
        "tool": page.tool,
        "input": page.input,
        "query_summary": page.query_summary,
        "result_summary": page.result_summary,
        "length": page.length,
        "sources": page.sources,
        "created": time_text(page.created),
        "content_hash": page.content_hash,
        "call_hash": page.call_hash,
        "thread": page.thread,
    }
    return _of_fields("page", fields)


def fact_digest(fact: Fact) -> str:
    """Of a statement as it is held now."""
    scope = fact.scope
    fields: dict[str, JsonValue] = {
        "tenant": scope.tenant,
        "user": scope.user,
        "conversation": scope.conversation,
        "id": fact.id,
        "text": fact.text,
        "category": fact.category,
        "confidence": float(fact.confidence),
        "valid_from": time_text(fact.valid_from),
        "valid_to": fact.valid_to and time_text(fact.valid_to),
        "recorded": time_text(fact.recorded),
        "retracted": fact.retracted and time_text(fact.retracted),
        "source_turn": fact.source_turn,
        "source_quote": fact.source_quote,
        "subject": fact.subject,
        "attribute": fact.attribute,
        "supersedes": fact.supersedes,
        "project": fact.project,
        "agent": fact.agent,
    }
    return _of_fields("fact", fields)


def _of_fields(kind: str, fields: Mapping[str, JsonValue]) -> str:
    return _digest(
        (kind, to_json({name: value for name, value in fields.items() if value not in (None, "")}))
    )


def _digest(parts: tuple[str | None, ...]) -> str:
    # Every turn that is recorded pays for this: of the ways to write a list unmistakably, this is the fastest.
    return hashlib.sha256(own_json_bytes(parts)).hexdigest()
