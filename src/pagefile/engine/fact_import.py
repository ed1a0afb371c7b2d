"""Imports the facts of another system: deer-flow's `memory.json`."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from os import PathLike
from typing import cast

import anyio

from pagefile.errors import InvalidArgumentError, TransferError
from pagefile.records import JsonValue, Scope
from pagefile.text.fact_data import given_facts, sections
from pagefile.tiers.fact_book import Draft, FactBook

#: Confidence of a profile summary, which a model wrote.
_PROFILE_CONFIDENCE = 0.8


async def import_memory(
    book: FactBook, source: str | PathLike[str] | Mapping[str, JsonValue], scope: Scope
) -> dict[str, int]:
    """Remember every fact and every summary of a memory file; counts the outcomes."""
    data = source if isinstance(source, Mapping) else await read_memory(source)
    if not isinstance(data.get("facts", []), list | tuple) or not data.keys() & {"facts", "user", "history"}:
        raise TransferError("This is not a memory file: it has no list of facts, no user and no history.")
    raw = cast("list[JsonValue]", data.get("facts") or [])
    rejected = sum(1 for fact in raw if not given_facts({"facts": [fact]}))
    counts = {"stored": 0, "duplicate": 0, "superseded": 0, "rejected": rejected}
    for draft in list(_drafts(data)):
        try:
            fact = await book.remember(scope, draft)
        except InvalidArgumentError:
            counts["rejected"] += 1
        else:
            counts[fact.outcome or "stored"] += 1
    return counts


async def read_memory(path: str | PathLike[str]) -> Mapping[str, JsonValue]:
    try:
        data: object = json.loads(await anyio.Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise TransferError(f"Cannot read {str(path)!r} as a memory file: {error}.") from error
    if not isinstance(data, dict):
        raise TransferError(f"{str(path)!r} is not a memory file: it holds no JSON object.")
    return cast("dict[str, JsonValue]", data)


def _drafts(data: Mapping[str, JsonValue]) -> Iterator[Draft]:
    for section in sections(data):
        place = f"{section.part}.{section.name}"
        yield Draft(section.text, "context", _PROFILE_CONFIDENCE, subject="profile", attribute=place)
    for fact in given_facts(data):
        since = _moment(fact.created_at)
        yield Draft(fact.text, fact.category, fact.confidence, source_turn=fact.source, valid_from=since)


def _moment(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
