"""Synopses of searches: how many hits, for what, and their titles."""

import re
from collections.abc import Iterator, Mapping, Sequence

from pagefile.records import JsonValue
from pagefile.text.sources import references, sources
from pagefile.text.synopsis.json_rows import Rows, rows_in
from pagefile.text.synopsis.records import Flat, flat, show
from pagefile.text.synopsis.wording import Voice, prose, squeeze
from pagefile.text.tables import table

_FIELDS: Mapping[str, list[str]] = table("pagefile.text.synopsis", "fields")["hits"]
_TITLES, _TEXTS = _FIELDS["titles"], _FIELDS["texts"]
_ASKED = 50
#: What else one might search for.
_NOT_ASKED = re.compile(r"related|suggest|(?:people_?)?also|did_?you")


def hits_in(value: JsonValue) -> Rows | None:
    """The rows of a value that are hits of a search: most have a title and an address, or a score and a text."""
    rows = rows_in(value)
    if rows is None or not rows.items:
        return None
    asked = [item for item in rows.items[:_ASKED] if item.get("type") != "image"]
    found = sum(_is_hit(flat(item)) for item in asked)
    if not found or found * 2 < len(asked):
        return None
    pictures = sum(item.get("type") == "image" for item in rows.items)
    return Rows(
        [item for item in rows.items if item.get("type") != "image"], rows.count - pictures, rows.path
    )


def _is_hit(row: Flat) -> bool:
    named = bool(_of(row, _TITLES))
    texts = bool(_of(row, _TEXTS))
    addressed = bool(_of(row, _FIELDS["addresses"])) and (bool(_of(row, _TITLES[:4])) and len(row) < 40)
    # What has a state is a thing of its own, such as a ticket, not a page that was found.
    addressed = addressed and not any(key in row for key in ("state", "status", "number"))
    scored = any(key.rpartition(".")[2].casefold() in _FIELDS["scores"] for key in row)
    return (addressed and (texts or len(row) <= 4)) or (scored and (texts or named))


def describe_hits(rows: Rows, value: JsonValue, say: Voice) -> list[str]:
    flats = [flat(item) for item in rows.items[:_ASKED]]
    titles = list(dict.fromkeys(filter(None, (_title(row, say) for row in flats))))
    known: dict[str, str] = {}
    for name, told in _about(value):
        known.setdefault(name, told)
    asked = known.get("query", "")
    total = known.get("total", "")
    of_all = say(f"（共 {total}）", f" of {total}") if total and total != str(rows.count) else ""
    query = say(f"，查询“{squeeze(asked, 50)}”", f' for "{squeeze(asked, 50)}"') if asked else ""
    texts = "\n".join(filter(None, (_of(row, _TEXTS)[:300] for row in flats[:8])))
    return [
        say(
            f"检索结果，{rows.count:,} 条{of_all}{query}：",
            f"Search results, {rows.count:,} hits{of_all}{query}: ",
        )
        + say.listed(titles, len(titles), most=170 if texts else 300, name_chars=70),
        prose(texts, 240),
    ]


def describe_references(text: str, say: Voice) -> list[str]:
    """Hits in text, and answers with a list of references."""
    named = sources(text)
    names = say.listed([_without_address(source) for source in named], len(named), most=150)
    opening = say("检索结果", "Search results")
    if names:
        opening += say(f"，{len(named):,} 个来源：", f", {len(named):,} sources: ") + names
    # What precedes the list of references, if that is more than a line.
    end = next((start for start, _ in references(text) if start > 200), len(text))
    return [opening, prose(text[:end], 240)]


def _title(row: Flat, say: Voice) -> str:
    named = _of(row, _TITLES)
    return (
        squeeze(named, 70)
        if named
        else squeeze((_of(row, _TEXTS) or show(row.get("id"), say)).lstrip("# "), 60)
    )


def _of(row: Flat, names: Sequence[str]) -> str:
    """The first of these fields that holds a text, wherever it is inside the row."""
    lasts: dict[str, str] = {}
    for key, value in row.items():
        if isinstance(value, str) and value.strip():
            lasts.setdefault(key.rpartition(".")[2].casefold(), value)
    return next((lasts[name.casefold()] for name in names if name.casefold() in lasts), "")


def _about(value: JsonValue, depth: int = 4) -> Iterator[tuple[str, str]]:
    """The query and the number of all hits, where the answer says them."""
    if not isinstance(value, Mapping) or not depth:
        return
    for key, inner in value.items():
        name = key.casefold()
        if _NOT_ASKED.match(name):
            continue
        if name in _FIELDS["queries"] and isinstance(inner, str) and inner.strip():
            yield "query", inner
        elif name in _FIELDS["totals"] and isinstance(inner, int | str) and re.fullmatch(r"\d+", str(inner)):
            yield "total", str(inner)
        elif name in _FIELDS["totals"] and isinstance(inner, dict) and isinstance(inner.get("value"), int):
            yield "total", str(inner["value"])
        elif isinstance(inner, dict):
            yield from _about(inner, depth - 1)
        elif isinstance(inner, list) and len(inner) == 1:
            yield from _about(inner[0], depth - 1)


def _without_address(source: str) -> str:
    """The name of a source; its URL if it has no name."""
    name, _, rest = source.rpartition(" (")
    return name if name and rest.startswith(("http", "ftp")) else source
