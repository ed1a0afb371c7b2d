"""Synopses of data: JSON, JSON lines, tables of values, YAML."""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from pagefile.records import JsonValue
from pagefile.text.synopsis.kinds import delimiter
from pagefile.text.synopsis.markup import visible
from pagefile.text.synopsis.telling import listed, pick, prose, squeeze

#: How many elements of an array are examined for their keys.
_ASKED = 100
#: Keys that distinguish objects, best first.
_NAMING = ("title", "name", "标题", "名称", "label", "key", "id", "path", "message", "text")
#: A string this long is a text to be read, not a value.
_WORTH_READING = 300
_KEY = re.compile(r'"([^"\\\n]{1,80})"\s*:')
_YAML_TOP = re.compile(r"^[\"']?([A-Za-z_][\w./-]*)[\"']?:", re.MULTILINE)

_KINDS = {
    "null": ("空", "null"),
    "boolean": ("布尔", "boolean"),
    "number": ("数字", "number"),
    "string": ("文本", "string"),
    "array": ("数组", "array"),
    "object": ("对象", "object"),
}


def describe_json(text: str, value: JsonValue, *, zh: bool) -> list[str]:
    """The shape of JSON: what it contains, how much, under which keys, and how it begins."""
    if isinstance(value, list):
        return [*_describe_array(value, "JSON ", zh=zh), *_read_longest(value, zh=zh)]
    if isinstance(value, dict):
        return [*_describe_object(value, zh=zh), *_read_longest([value], zh=zh)]
    return _describe_unread(text, zh=zh)


def describe_jsonl(text: str, value: JsonValue, *, zh: bool) -> list[str]:
    """The number of rows, their keys, and the first row."""
    rows = _line_count(text)
    first = list(islice(_parsed_lines(text), _ASKED))
    opening = pick(f"JSON 行数据，共 {rows:,} 行", f"JSON lines, {rows:,} rows", zh=zh)
    return [opening, *_describe_items(first, zh=zh)]


def describe_csv(text: str, value: JsonValue, *, zh: bool) -> list[str]:
    """The number of rows, the columns, the first row."""
    mark = delimiter(text)
    rows = _rows(text, mark)
    header, first = [*islice(rows, 2), [], []][:2]
    count, exact = _count_rows(text, mark)
    name = "TSV" if mark == "\t" else "CSV"
    about = "" if exact else pick("约 ", "about ", zh=zh)
    columns = listed(header, len(header), most=260, zh=zh, name_chars=40)
    values = [f"{column}={squeeze(field, 40)}" for column, field in zip(header, first, strict=False)]
    return [
        pick(f"{name} 表格，{about}{count:,} 行数据", f"{name} table, {about}{count:,} rows", zh=zh)
        + pick(f"，{len(header)} 列：{columns}", f", {len(header)} columns: {columns}", zh=zh),
        pick("首行：", "First row: ", zh=zh) + listed(values, len(values), most=200, zh=zh) if values else "",
    ]


def describe_yaml(text: str, value: JsonValue, *, zh: bool) -> list[str]:
    """The top-level keys, and the number of lines."""
    keys = list(dict.fromkeys(islice((match[1] for match in _YAML_TOP.finditer(text)), 1000)))
    lines = _line_count(text)
    shown = listed(keys, len(keys), most=300, zh=zh)
    return [
        pick(
            f"YAML，{lines:,} 行，{len(keys)} 个顶层键：{shown}",
            f"YAML, {lines:,} lines, {len(keys)} keys at the top: {shown}",
            zh=zh,
        )
    ]


# -- JSON --------------------------------------------------------------------------------------------------------------


def _describe_array(items: Sequence[JsonValue], name: str, *, zh: bool) -> list[str]:
    what = _of_what(items, zh=zh)
    opening = pick(f"{name}数组，{len(items):,} 个{what}", f"{name}array of {len(items):,} {what}", zh=zh)
    return [opening, *_describe_items(items[:_ASKED], zh=zh)]


def _describe_items(items: Sequence[JsonValue], *, zh: bool) -> list[str]:
    objects = [item for item in items if isinstance(item, dict)]
    if not objects and any(isinstance(item, list) for item in items):
        objects = [
            item for row in items if isinstance(row, list) for item in row[:10] if isinstance(item, dict)
        ]
    if not objects:
        values = [_show(item, zh=zh) for item in items[:20]]
        return (
            [pick("前几项：", "First: ", zh=zh) + listed(values, len(values), most=300, zh=zh)]
            if values
            else []
        )
    kinds: dict[str, str] = {}
    for item in objects:
        for key, value in item.items():
            if kinds.get(key, "null") == "null":
                kinds[key] = _kind(value)
    keys = [pick(f"{key}（{_word(kind, zh=zh)}）", f"{key} ({kind})", zh=zh) for key, kind in kinds.items()]
    parts = [pick("字段：", "Keys: ", zh=zh) + listed(keys, len(keys), most=220, zh=zh)]
    parts.append(pick("首项：", "First: ", zh=zh) + _fields(objects[0], most=160, zh=zh))
    naming = next((key for key in _NAMING if key in kinds), None)
    if naming is not None and len(objects) > 1:
        names = [_show(item.get(naming), zh=zh) for item in objects[1:]]
        parts.append(pick(f"其后 {naming}：", f"Next {naming}: ", zh=zh) + listed(names, 0, most=200, zh=zh))
    return parts


def _describe_object(value: Mapping[str, JsonValue], *, zh: bool) -> list[str]:
    opening = pick(f"JSON 对象，{len(value)} 个键：", f"JSON object with {len(value)} keys: ", zh=zh)
    parts = [opening + _fields(value, most=320, zh=zh)]
    longest = max((inner for inner in value.values() if isinstance(inner, list)), key=len, default=None)
    if longest:
        key = next(key for key, inner in value.items() if inner is longest)
        parts += _describe_array(longest, f"{key}: ", zh=zh)
    return parts


def _read_longest(items: Sequence[JsonValue], *, zh: bool) -> list[str]:
    """What the longest text among the first objects says: tools often wrap a document in JSON."""
    objects = [item for item in items[:20] if isinstance(item, dict)]
    objects += [inner for item in objects[:1] for inner in item.values() if isinstance(inner, dict)]
    texts = [value for item in objects for value in item.values() if isinstance(value, str)]
    longest = max(texts, key=len, default="")
    if len(longest) < _WORTH_READING:
        return []
    read = visible(longest[:20_000]) if "</" in longest[:20_000] else longest
    return [pick("文本内容：", "Text: ", zh=zh) + prose(read, 220)]


def _describe_unread(text: str, *, zh: bool) -> list[str]:
    """JSON that is truncated, or too deep or too large to parse: what can be seen of it."""
    head = text[:20_000]
    keys = list(dict.fromkeys(_KEY.findall(head)))
    shown = listed(keys, len(keys), most=220, zh=zh)
    array = head.lstrip("\ufeff \t\r\n").startswith("[")
    opening = pick(
        f"JSON {'数组' if array else '对象'}，未能完整解析，{len(text):,} 字符",
        f"JSON {'array' if array else 'object'}, not parsed as a whole, {len(text):,} characters",
        zh=zh,
    )
    return [opening, pick("开头的键：", "Keys at the beginning: ", zh=zh) + shown if keys else ""]


def _fields(item: Mapping[str, JsonValue], *, most: int, zh: bool) -> str:
    shown = [
        f"{key}{'=' if _is_short(value) else ': '}{_show(value, zh=zh)}"
        for key, value in islice(item.items(), 40)
    ]
    return listed(shown, len(item), most=most, zh=zh, name_chars=100)


def _show(value: JsonValue, *, zh: bool) -> str:
    """A short value as it is, a long one by its kind and size."""
    if isinstance(value, str):
        if _is_short(value):
            return squeeze(value, 60)
        return pick(f"{len(value):,} 字文本", f"string of {len(value):,} characters", zh=zh)
    if isinstance(value, dict):
        keys = listed(list(islice(value, 5)), len(value), most=60, zh=zh, name_chars=20)
        return pick(f"对象（{keys}）", f"object ({keys})", zh=zh)
    if isinstance(value, list):
        return pick(
            f"{len(value):,} 个{_of_what(value, zh=zh)}",
            f"array of {len(value):,} {_of_what(value, zh=zh)}",
            zh=zh,
        )
    return json.dumps(value)


def _is_short(value: JsonValue) -> bool:
    return len(value) <= 60 if isinstance(value, str) else not isinstance(value, dict | list)


def _of_what(items: Sequence[JsonValue], *, zh: bool) -> str:
    kinds = {_kind(item) for item in items[:_ASKED]}
    kind = kinds.pop() if len(kinds) == 1 else ""
    if not kind:
        return pick("元素", "items", zh=zh)
    return _word(kind, zh=zh) if zh else f"{kind}s"


def _kind(value: JsonValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _word(kind: str, *, zh: bool) -> str:
    return pick(*_KINDS[kind], zh=zh)


# -- rows --------------------------------------------------------------------------------------------------------------

#: Beyond this, rows are counted by line ends.
_COUNTED_CHARS = 2_000_000


def _line_count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _parsed_lines(text: str) -> Iterator[JsonValue]:
    place = 0
    while place < len(text):
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        line = text[place:end].strip("\ufeff \t\r")
        place = end + 1
        try:
            if line:
                yield json.loads(line)
        except (ValueError, RecursionError):
            continue


def _rows(text: str, mark: str) -> Iterator[list[str]]:
    """The rows at the beginning, up to the first that cannot be parsed."""
    try:
        yield from (
            row
            for row in csv.reader(text[:64_000].lstrip("\ufeff").splitlines(keepends=True), delimiter=mark)
            if row
        )
    except csv.Error:
        return


def _count_rows(text: str, mark: str) -> tuple[int, bool]:
    """The number of rows below the header, and whether it is exact."""
    lines = _line_count(text.strip("\n")) - 1
    if '"' not in text:
        return lines, True
    if len(text) > _COUNTED_CHARS:
        return lines, False
    try:
        rows = sum(1 for row in csv.reader(text.splitlines(keepends=True), delimiter=mark) if row)
    except csv.Error:
        return lines, False
    return rows - 1, True
