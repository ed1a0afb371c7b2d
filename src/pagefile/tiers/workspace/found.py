"""Finds in JSON what is worth remembering: search hits, pages, tables of contents, and where they come from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from pagefile.records import JsonValue
from pagefile.text.scores import number
from pagefile.tiers.workspace.results import KEYS, Plain, read_text


@dataclass(frozen=True, slots=True)
class FoundHit:
    """One search result as its tool gave it."""

    content: str
    source: str
    score: object
    table: bool
    #: Its other fields, without the text.
    extra: Mapping[str, JsonValue]
    #: How far it is from the question, for tools that say this instead of a score.
    distance: float | None = None


def hits(value: Plain, tool: str = "search") -> list[FoundHit]:
    """The search results in it that have a text, in order."""
    found = [hit for item in _listed(value, 0) if (hit := _hit(item, tool)) is not None]
    distances = [hit.distance for hit in found if hit.score is None and hit.distance is not None]
    # Some call a similarity a distance: the best comes first, so it falls from hit to hit.
    nearer_is_less = distances != sorted(distances, reverse=True)
    return [_scored(hit, nearer_is_less=nearer_is_less) for hit in found]


def _scored(hit: FoundHit, *, nearer_is_less: bool) -> FoundHit:
    if hit.score is not None or hit.distance is None:
        return hit
    return replace(hit, score=1 / (1 + abs(hit.distance)) if nearer_is_less else hit.distance)


def _listed(value: Plain, depth: int) -> Sequence[Plain]:
    if isinstance(value, list):
        # One list of hits for each of several questions.
        nested = [inner for inner in value if isinstance(inner, list) and not _is_pair(inner)]
        return list(chain.from_iterable(nested)) if nested and len(nested) == len(value) else value
    if isinstance(value, str):
        return [value] if depth == 0 else []
    if not isinstance(value, dict) or depth > 4:
        return []
    if rows := _rows(value):
        return rows
    known = [key for key in KEYS["lists"] if key in value]
    for key in (*known, *(key for key in value if key not in known and key not in KEYS["asides"])):
        inner = value[key]
        if isinstance(inner, str) and key in known:
            inner = read_text(inner)
        listed = _listed(inner, depth + 1) if isinstance(inner, list | dict) else ()
        if any(_hit(item, "") for item in listed):
            return listed
    return [value] if _content_of(value) else []


def _rows(value: Mapping[str, Plain]) -> list[Plain]:
    """Hits given in columns, as by Chroma: texts, metadata and distances in lists of their own."""
    columns = {name: value.get(key) for key, name in _COLUMNS.items()}
    texts = columns["content"]
    if not isinstance(texts, list) or not isinstance(columns["_id"], list):
        return []
    flat = {name: _flat(column) for name, column in columns.items() if isinstance(column, list)}
    return [
        {name: column[at] for name, column in flat.items() if at < len(column)}
        for at in range(len(flat["content"]))
    ]


_COLUMNS = {"documents": "content", "metadatas": "metadata", "distances": "distance", "ids": "_id"}


def _flat(column: Sequence[Plain]) -> list[Plain]:
    return list(chain.from_iterable(inner if isinstance(inner, list) else [inner] for inner in column))


def _is_pair(item: Sequence[Plain]) -> bool:
    """Whether it is a hit and its score, as some retrievers give them."""
    return len(item) == 2 and isinstance(item[0], dict | str) and number(item[1]) is not None


def _hit(item: Plain, tool: str) -> FoundHit | None:
    if isinstance(item, list) and _is_pair(item):
        hit = _hit(item[0], tool)
        return None if hit is None else replace(hit, score=item[1])
    if isinstance(item, str):
        item = read_text(item)
    if isinstance(item, str):
        item = {"content": item}
    content = _content_of(item) if isinstance(item, dict) else ""
    if not isinstance(item, dict) or not content:
        return None
    places = _places(item)
    extra = {key: inner for key, inner in item.items() if _is_small(inner) and inner != content}
    source = source_of(item) or f"{tool}: {' '.join(content[:24].split())}"
    is_table = bool(item.get("table_id")) or "table" in (item.get(name) for name in KEYS["kind"])
    distance = number(_first_number(places, KEYS["distance"]))
    return FoundHit(content, source, _first_number(places, KEYS["score"]), is_table, extra, distance)


def _content_of(item: Mapping[str, Plain]) -> str:
    return next((text for place in _places(item) if (text := _first_text(place, KEYS["content"]))), "")


def _first_number(places: Iterable[Mapping[str, Plain]], names: Sequence[str]) -> Plain:
    found = (place.get(name) for place in places for name in names)
    return next((value for value in found if number(value) is not None), None)


def _places(item: Mapping[str, Plain]) -> list[Mapping[str, Plain]]:
    """Where a result tells about itself: in its own fields, its metadata, and where search engines put the document."""
    inside = (item.get(key) for key in KEYS["inside"])
    return [item, *(inner for inner in inside if isinstance(inner, dict))]


def source_of(item: Mapping[str, Plain]) -> str:
    """Where a result comes from, such as `angui_2024 P85`; empty if it does not say."""
    places = _places(item)
    # A bare id is the last thing to go by: search engines number their hits.
    for keys in (KEYS["document"][:-1], KEYS["document"]):
        for place in places:
            if named := _first_text(place, KEYS["source"]):
                return " ".join(named.split())
            page = next((place[key] for key in KEYS["page"] if isinstance(place.get(key), int | str)), None)
            document = _first_text(place, keys)
            title = _first_text(place, ("title", "name", "chapter", "section"))
            if page not in (None, ""):
                return f"{document or title} P{str(page).removeprefix('P')}".strip()
            if document:
                return f"{document} {title}".strip()
        if titles := [title for place in places if (title := _first_text(place, ("title", "name")))]:
            return titles[0]
    return ""


def page_text(value: Plain) -> str:
    """The text of one or more pages, joined."""

    def told(value: Plain, depth: int) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, list) and depth <= 4:
            return "\n\n".join(filter(None, (told(inner, depth + 1) for inner in value)))
        inside = (value.get(key) for key in KEYS["pages"]) if isinstance(value, dict) and depth <= 4 else ()
        return next(filter(None, (told(inner, depth + 1) for inner in inside)), "")

    return told(value, 0).strip()


def page_source(value: Plain, given: Plain) -> str:
    """Where a page comes from, according to the tool's result, or else its input."""
    for known in (value, given):
        if isinstance(known, dict):
            document = _first_text(known, KEYS["document"])
            pages = page_range(known, KEYS["first_page"], KEYS["last_page"])
            if document and pages:
                return f"{document} {pages}"
            section = _first_text(known, KEYS["section"])
            if document or section:
                return " ".join(part for part in (document, section or pages) if part)
            if found := source_of(known):
                return found
    return ""


def page_range(known: Mapping[str, Plain], first: Sequence[str], last: Sequence[str]) -> str:
    """The pages named under some keys, such as `P3` or `P3-5`; empty if there are none."""
    start = next((known[key] for key in first if is_whole(known.get(key))), None)
    end = next((known[key] for key in last if is_whole(known.get(key))), None)
    if start is None:
        return ""
    return f"P{start}" if end is None or end == start else f"P{start}-{end}"


def document_of(value: Plain, given: Plain) -> str:
    """The id of the document a table of contents belongs to; empty if unknown."""
    names = (*KEYS["document"], *KEYS["source"], "title", "name")
    told = (_first_text(known, names) for known in (given, value) if isinstance(known, dict))
    return next(filter(None, told), given.strip() if isinstance(given, str) else "")


def toc_of(value: Plain) -> dict[str, Plain]:
    """A table of contents as a mapping, whatever form it came in."""
    if isinstance(value, dict):
        return value
    return {"items": value} if isinstance(value, list) else {"text": value}


def _first_text(item: Mapping[str, Plain], names: Sequence[str]) -> str:
    for name in names:
        found = item.get(name)
        if isinstance(found, str) and found.strip():
            return found.strip()
        if name in KEYS["document"] and is_whole(found):
            return str(found)
    return ""


def _is_small(value: Plain) -> bool:
    return len(value) <= 200 if isinstance(value, str) else not isinstance(value, list | dict)


def is_whole(value: Plain) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
