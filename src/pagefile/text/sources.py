"""Where a tool's result comes from: the documents and URLs it names, for the placeholder and for citations."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import itemgetter

from pagefile.records import JsonValue
from pagefile.text.code import code_language, is_settings, is_yaml
from pagefile.text.sentences import cut

#: The maximum number kept: few readers need more, and a page of links would be nothing but sources.
MOST = 50
#: The maximum length of one.
MAX_CHARS = 200
#: How much of a text is searched: result lists are at its beginning, reference lists at its end.
_HEAD_CHARS = 300_000
_TAIL_CHARS = 200_000
#: JSON longer than this is not parsed for its sources.
_MAX_JSON_CHARS = 2_000_000
#: How many objects of a JSON list are searched.
_MOST_OBJECTS = 500

#: The name and URL of a source, either of which may be empty.
_Found = tuple[str, str]

_URL = r"(?:https?|ftp)://[^\s<>\"'，。；！？（）「」【】()]+"
_LEAD = r"[ \t>*+-]*+(?:\[\d{1,4}\]|\d{1,4}[.)、])?+[ \t]*+"
_LABEL = (
    r"文档标题|文档名称|文档地址|文档来源|标题|来源|出处|链接|网址|地址|document|title|url|link|sources?|href"
)
#: A name after `[1]`, up to its URL or the end of the line.
_NUMBERED = re.compile(r"\n[ \t]*+[-*+]?+[ \t]*+\[\d{1,4}\][ \t]*+([^\n]{1,600})")
_ADDRESS = re.compile(rf"[(（][ \t]*({_URL})[ \t]*[)）]|({_URL})")
_LABELLED = re.compile(rf"\n{_LEAD}\**+({_LABEL})\**+[ \t]*+[:：]\**+[ \t]*+([^\n]{{1,600}})", re.IGNORECASE)
_SECOND_LABEL = re.compile(
    rf"[ \t]*+[/|,，;；][ \t]*+\**+(?:{_LABEL})\**+[ \t]*+[:：]\**+[ \t]*+", re.IGNORECASE
)
_FIRST_LABEL = re.compile(rf"\**+(?:{_LABEL})\**+[ \t]*+[:：]\**+[ \t]*+", re.IGNORECASE)
_LINKED = re.compile(
    rf"\n[ \t]*+(?:[-*+]|\d{{1,3}}[.)]|#{{1,6}})[ \t]++\**+\[([^\[\]\n]{{1,300}})\]\(<?({_URL})"
)
_NAMES = frozenset({"文档标题", "文档名称", "标题", "title", "document"})
#: What a field of a program or a schema has instead of a source.
_TYPE = re.compile(
    r"[\"']?(?:str|string|int|bool|bytes|any|object|none|null|true|false)\b.*|.*(?:[|=;{}]|,$|\(.*)",
    re.IGNORECASE,
)
#: An address of something, not of the API that was asked.
_REACHABLE = re.compile(r"://|^www\.|\.\w{2,5}(?:$|[/?#])")
_HEADING = re.compile(r"\n#{1,6} ")
#: Headings of reference lists: literal, because searching for these is cheap.
_REFERENCES = ("Reference Document List", "-----References-----", "来源文档", "参考文档", "参考来源")
_HASHES = re.compile(r"[ \t]*+#{1,6} *\Z")

_JSON_ADDRESSES = ("url", "link", "href", "html_url", "web_url", "permalink", "uri")
_JSON_NAMES = ("title", "name", "source", "document", "doc", "file_name", "file_path")
#: Fields that hold the name of a document whatever else there is.
_JSON_DOCUMENTS = ("source", "document", "doc", "file_name", "file_path")
_JSON_CONTENTS = ("content", "text", "snippet", "description", "summary", "body", "abstract", "raw_content")
_JSON_PAYLOADS = ("payload", "entity", "metadata", "_source", "properties")
#: Where tools put the text of an answer if they wrap it in JSON.
_JSON_TEXTS = ("text", "content", "output", "result")


def sources(text: str) -> list[str]:
    """The sources that a tool's result names, as `name (address)` or either alone, in order, without duplicates.

    A reference list comes first, if there is one. At most 50, each with at most 200 characters.
    """
    value = _read(text)
    found = _in_text(text) if value is None else _in_json(value)
    named: dict[str, str] = {}
    for name, address in found:
        if shown := _render(name, address):
            named.setdefault(address or shown, shown)
        if len(named) == MOST:
            break
    return list(dict.fromkeys(named.values()))


def _render(name: str, address: str) -> str:
    name = re.sub(r"\s+", " ", name.encode("utf-8", "replace").decode()).strip(" *_`-:：,，;；/|")
    address = address.encode("utf-8", "replace").decode()
    if not address or name == address:
        return cut(name or address, MAX_CHARS)
    room = MAX_CHARS - len(address) - 3
    if not name or room < 8:
        return cut(address, MAX_CHARS)
    return f"{cut(name, room)} ({address})"


def references(text: str) -> list[tuple[int, int]]:
    """Where the headings of reference lists begin and end; LightRAG writes its own without `##`."""
    found: list[tuple[int, int]] = []
    for name in _REFERENCES:
        place = text.find(name)
        while place >= 0 and len(found) < 10:
            line = text.rfind("\n", max(0, place - 20), place) + 1 or max(0, place - 20)
            bare = name.isascii() and line == place
            if bare or _HASHES.match(text, line, place):
                end = text.find("\n", place)
                found.append((line, end if end >= 0 else len(text)))
            place = text.find(name, place + 1)
    return sorted(found)


# -- in text -----------------------------------------------------------------------------------------------------------


def _in_text(text: str) -> Iterator[_Found]:
    for _, start in references(text):
        # The entries below a heading that announces references, up to the next heading.
        end = _HEADING.search(text, start, start + _TAIL_CHARS)
        yield from _in_order(text[start : end.start() if end else start + _TAIL_CHARS], addressed=False)
    found = _in_order(text[:_HEAD_CHARS])
    if found and not _is_program(text):
        # The title in a configuration is that of what is configured.
        yield from (one for one in found if one[1]) if is_yaml(text) else found


def _is_program(text: str) -> bool:
    """Whether a `url:` in it is a field, not a source; also in a change to a program."""
    return "\n@@ -" in text[:20_000] or is_settings(text) or bool(code_language(text))


def _in_order(text: str, *, addressed: bool = True) -> list[_Found]:
    lines = "\n" + text
    links = islice(_LINKED.finditer(lines), MOST * 2)
    linked = [(match.start(), (match[1], _tidy(match[2]))) for match in links]
    found = [*_numbered(lines, addressed=addressed), *linked, *_labelled(lines)]
    return [source for _, source in sorted(found, key=itemgetter(0))]


def _numbered(text: str, *, addressed: bool) -> Iterator[tuple[int, _Found]]:
    """`[1] name (address)`; outside a reference list only with an address, since `[1]` may be anything there."""
    for match in islice(_NUMBERED.finditer(text), MOST * 4):
        entry = match[1]
        if _FIRST_LABEL.match(entry):
            continue  # its label says more
        name, address = _parted(entry)
        if address or not addressed:
            yield match.start(), (name, address)


def _labelled(text: str) -> Iterator[tuple[int, _Found]]:
    """`Title: …` with the `URL: …` that follows it, on the same line or the next, or either alone."""
    name, place = "", 0
    for match in islice(_LABELLED.finditer(text), MOST * 4):
        label, entry = match[1].casefold(), match[2]
        title, address = _parted(entry)
        if not address and _TYPE.fullmatch(entry.strip()):
            continue
        if label not in _NAMES:
            yield (place if name else match.start()), (name or title, address)
            name = ""
            continue
        if name:
            yield place, (name, "")
        name, place = entry, match.start()
        if second := _SECOND_LABEL.search(entry):
            title, address = entry[: second.start()], address or entry[second.end() :]
        if second or address:
            yield place, (title, address)
            name = ""
    if name:
        yield place, (name, "")


def _parted(entry: str) -> _Found:
    """What precedes the address in an entry, and the address; all of it if there is none."""
    address = _ADDRESS.search(entry)
    return (entry[: address.start()], _tidy(address[1] or address[2])) if address else (entry, "")


def _tidy(address: str) -> str:
    return address.rstrip(".,;:!?")


# -- in JSON -----------------------------------------------------------------------------------------------------------


def _read(text: str) -> JsonValue:
    """The value of a text that is JSON of a reasonable size, else None."""
    if len(text) > _MAX_JSON_CHARS or text[:100].lstrip("\ufeff \t\r\n")[:1] not in ("[", "{"):
        return None
    try:
        return json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None


def _in_json(value: JsonValue) -> Iterator[_Found]:
    """Sources of the objects in lists, at most two levels down; then those of texts wrapped in JSON."""
    objects = list(islice(_objects(value, 2), _MOST_OBJECTS))
    for item in objects:
        name, address = _first(item, _JSON_NAMES), _first(item, _JSON_ADDRESSES)
        address = address if _REACHABLE.search(address) else ""
        if re.match(_URL, name) and not address:
            name, address = "", name
        # A title alone is a source only if there is something of what it is the title of: not that of a chapter.
        if (
            address
            or _first(item, _JSON_DOCUMENTS)
            or (_first(item, ("title",)) and _first(item, _JSON_CONTENTS))
        ):
            yield name, address
    texts = (text for item in objects if len(text := _first(item, _JSON_TEXTS)) > 20)
    for text in islice(texts, 20):
        yield from _in_text(text)


def _objects(value: JsonValue, depth: int) -> Iterator[dict[str, JsonValue]]:
    if isinstance(value, list):
        inner = value[0] if len(value) == 1 and isinstance(value[0], list) else value
        yield from (_with_payload(item) for item in inner if isinstance(item, dict))
    elif isinstance(value, dict):
        yield value
        if depth:
            for inner in value.values():
                yield from _objects(inner, depth - 1)


def _with_payload(item: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """A hit with the fields of what was stored, which vector databases keep one level down."""
    for key in _JSON_PAYLOADS:
        if isinstance(stored := item.get(key), dict):
            return {**stored, **item}
    return item


def _first(item: dict[str, JsonValue], keys: Iterable[str]) -> str:
    return next((value for key in keys if isinstance(value := item.get(key), str) and value.strip()), "")
