"""deer-flow's `memory.json`: a profile, a history and facts, whatever state they are in.

Files written by people and models contain blank facts, numbers instead of texts and invalid confidences: what
cannot be read is left out, and nothing here raises.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from pagefile.text.fact_ranking import coerced_confidence, fact_key

#: The confidence of a fact without a usable one, as in deer-flow.
DEFAULT_CONFIDENCE = 0.5

#: Sections of the profile: where they are, and their titles when shown.
SECTIONS: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    (
        "user",
        "User Context",
        (("workContext", "Work"), ("personalContext", "Personal"), ("topOfMind", "Current Focus")),
    ),
    (
        "history",
        "History",
        (("recentMonths", "Recent"), ("earlierContext", "Earlier"), ("longTermBackground", "Background")),
    ),
)


class GivenFact(NamedTuple):
    text: str
    category: str | None
    confidence: float
    created_at: str | None = None
    source: str | None = None


class Section(NamedTuple):
    part: str
    name: str
    title: str
    label: str
    text: str


def given_facts(data: object) -> list[GivenFact]:
    """The facts of memory data, deduplicated by highest confidence; blank and unreadable ones are left out."""
    found: dict[str, GivenFact] = {}
    given = _mapping(data).get("facts")
    listed = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    for raw in cast("Sequence[object]", given) if listed else ():
        if (fact := _fact(raw)) is not None:
            known = found.setdefault(fact_key(fact.text), fact)
            if fact.confidence > known.confidence:
                found[fact_key(fact.text)] = fact
    return list(found.values())


def sections(data: object) -> Iterator[Section]:
    for part, title, names in SECTIONS:
        inside = _mapping(_mapping(data).get(part))
        for name, label in names:
            given = inside.get(name)
            text = given if isinstance(given, str) else _text(_mapping(given).get("summary"))
            if text and text.strip():
                yield Section(part, name, title, label, " ".join(text.split()))


def _fact(raw: object) -> GivenFact | None:
    fields = {"content": raw} if isinstance(raw, str) else _mapping(raw)
    text = (_text(fields.get("content")) or "").strip()
    if not text:
        return None
    return GivenFact(
        text,
        _text(fields.get("category")),
        coerced_confidence(fields.get("confidence"), DEFAULT_CONFIDENCE),
        _text(fields.get("createdAt")),
        _text(fields.get("source")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
