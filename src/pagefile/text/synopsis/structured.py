"""Synopses of data: JSON, JSON lines, tables of values, YAML."""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from types import NoneType

from pagefile.records import JsonValue
from pagefile.text.synopsis.kinds import delimiter, line_count, rows
from pagefile.text.synopsis.markup import visible
from pagefile.text.synopsis.wording import Voice, prose, squeeze

#: How many elements of an array are examined for their keys.
_ASKED = 100
#: Keys that distinguish objects, best first.
_NAMING = ("title", "name", "标题", "名称", "label", "key", "id", "path", "message", "text")
#: A string this long is a text to be read, not a value.
_WORTH_READING = 300
_KEY = re.compile(r'"([^"\\\n]{1,80})"\s*:')
_YAML_TOP = re.compile(r"^[\"']?([A-Za-z_][\w./-]*)[\"']?:", re.MULTILINE)

#: The kinds of JSON values, and their names in Chinese.
_KINDS = ("null", "boolean", "number", "number", "string", "array", "object")
_KIND_OF: dict[type, str] = dict(zip((NoneType, bool, int, float, str, list, dict), _KINDS, strict=True))
_CHINESE: dict[str, str] = dict(
    zip(_KINDS, ("空", "布尔", "数字", "数字", "文本", "数组", "对象"), strict=True)
)


def describe_json(text: str, value: JsonValue, say: Voice) -> list[str]:
    if isinstance(value, list):
        return [*_describe_array(value, "JSON ", say), *_read_longest(value, say)]
    if isinstance(value, dict):
        return [*_describe_object(value, say), *_read_longest([value], say)]
    return _describe_unread(text, say)


def describe_jsonl(text: str, value: JsonValue, say: Voice) -> list[str]:
    count = line_count(text)
    first = list(islice(_parsed_lines(text), _ASKED))
    opening = say(f"JSON 行数据，共 {count:,} 行", f"JSON lines, {count:,} rows")
    return [opening, *_describe_items(first, say)]


def describe_csv(text: str, value: JsonValue, say: Voice) -> list[str]:
    mark = delimiter(text)
    header, first = [*islice(_rows(text, mark), 2), [], []][:2]
    count, exact = _count_rows(text, mark)
    name = "TSV" if mark == "\t" else "CSV"
    about = "" if exact else say("约 ", "about ")
    columns = say.listed(header, len(header), most=260, name_chars=40)
    values = [f"{column}={squeeze(field, 40)}" for column, field in zip(header, first, strict=False)]
    return [
        say(f"{name} 表格，{about}{count:,} 行数据", f"{name} table, {about}{count:,} rows")
        + say(f"，{len(header)} 列：{columns}", f", {len(header)} columns: {columns}"),
        say("首行：", "First row: ") + say.listed(values, len(values), most=200) if values else "",
    ]


def describe_yaml(text: str, value: JsonValue, say: Voice) -> list[str]:
    keys = list(dict.fromkeys(islice((match[1] for match in _YAML_TOP.finditer(text)), 1000)))
    lines = line_count(text)
    shown = say.listed(keys, len(keys), most=300)
    chinese = f"YAML，{lines:,} 行，{len(keys)} 个顶层键：{shown}"
    return [say(chinese, f"YAML, {lines:,} lines, {len(keys)} keys at the top: {shown}")]


# -- JSON --------------------------------------------------------------------------------------------------------------


def _describe_array(items: Sequence[JsonValue], name: str, say: Voice) -> list[str]:
    what = _of_what(items, say)
    opening = say(f"{name}数组，{len(items):,} 个{what}", f"{name}array of {len(items):,} {what}")
    return [opening, *_describe_items(items[:_ASKED], say)]


def _describe_items(items: Sequence[JsonValue], say: Voice) -> list[str]:
    objects = [item for item in items if isinstance(item, dict)]
    if not objects:
        nested = (item for row in items if isinstance(row, list) for item in row[:10])
        objects = [item for item in nested if isinstance(item, dict)]
    if not objects:
        values = [_show(item, say) for item in items[:20]]
        return [say("前几项：", "First: ") + say.listed(values, len(values), most=300)] if values else []
    kinds: dict[str, str] = {}
    for item in objects:
        for key, value in item.items():
            if kinds.get(key, "null") == "null":
                kinds[key] = _KIND_OF[type(value)]
    keys = [say(f"{key}（{_CHINESE[kind]}）", f"{key} ({kind})") for key, kind in kinds.items()]
    parts = [say("字段：", "Keys: ") + say.listed(keys, len(keys), most=220)]
    parts.append(say("首项：", "First: ") + _fields(objects[0], say, most=160))
    naming = next((key for key in _NAMING if key in kinds), None)
    if naming is not None and len(objects) > 1:
        names = [_show(item.get(naming), say) for item in objects[1:]]
        parts.append(say(f"其后 {naming}：", f"Next {naming}: ") + say.listed(names, 0, most=200))
    return parts


def _describe_object(value: Mapping[str, JsonValue], say: Voice) -> list[str]:
    opening = say(f"JSON 对象，{len(value)} 个键：", f"JSON object with {len(value)} keys: ")
    parts = [opening + _fields(value, say, most=320)]
    longest = max((inner for inner in value.values() if isinstance(inner, list)), key=len, default=None)
    if longest:
        key = next(key for key, inner in value.items() if inner is longest)
        parts += _describe_array(longest, f"{key}: ", say)
    return parts


def _read_longest(items: Sequence[JsonValue], say: Voice) -> list[str]:
    """What the longest text among the first objects says: tools often wrap a document in JSON."""
    objects = [item for item in items[:20] if isinstance(item, dict)]
    objects += [inner for item in objects[:1] for inner in item.values() if isinstance(inner, dict)]
    texts = [value for item in objects for value in item.values() if isinstance(value, str)]
    longest = max(texts, key=len, default="")
    if len(longest) < _WORTH_READING:
        return []
    read = visible(longest[:20_000]) if "</" in longest[:20_000] else longest
    return [say("文本内容：", "Text: ") + prose(read, 220)]


def _describe_unread(text: str, say: Voice) -> list[str]:
    """JSON that is truncated, or too deep or too large to parse: what can be seen of it."""
    head = text[:20_000]
    keys = list(dict.fromkeys(_KEY.findall(head)))
    shown = say.listed(keys, len(keys), most=220)
    array = head.lstrip("\ufeff \t\r\n").startswith("[")
    opening = say(
        f"JSON {'数组' if array else '对象'}，未能完整解析，{len(text):,} 字符",
        f"JSON {'array' if array else 'object'}, not parsed as a whole, {len(text):,} characters",
    )
    return [opening, say("开头的键：", "Keys at the beginning: ") + shown if keys else ""]


def _fields(item: Mapping[str, JsonValue], say: Voice, *, most: int) -> str:
    shown = [
        f"{key}{'=' if _is_short(value) else ': '}{_show(value, say)}"
        for key, value in islice(item.items(), 40)
    ]
    return say.listed(shown, len(item), most=most, name_chars=100)


def _show(value: JsonValue, say: Voice) -> str:
    """A short value as it is, a long one by its kind and size."""
    if isinstance(value, str):
        if _is_short(value):
            return squeeze(value, 60)
        return say(f"{len(value):,} 字文本", f"string of {len(value):,} characters")
    if isinstance(value, dict):
        keys = say.listed(list(islice(value, 5)), len(value), most=60, name_chars=20)
        return say(f"对象（{keys}）", f"object ({keys})")
    if isinstance(value, list):
        what = _of_what(value, say)
        return say(f"{len(value):,} 个{what}", f"array of {len(value):,} {what}")
    return json.dumps(value)


def _is_short(value: JsonValue) -> bool:
    return len(value) <= 60 if isinstance(value, str) else not isinstance(value, dict | list)


def _of_what(items: Sequence[JsonValue], say: Voice) -> str:
    kinds = {_KIND_OF[type(item)] for item in items[:_ASKED]}
    if len(kinds) != 1:
        return say("元素", "items")
    (kind,) = kinds
    return say(_CHINESE[kind], f"{kind}s")


# -- rows --------------------------------------------------------------------------------------------------------------

#: Beyond this, rows are counted by line ends.
_COUNTED_CHARS = 2_000_000


def _parsed_lines(text: str) -> Iterator[JsonValue]:
    for line in rows(text):
        with suppress(ValueError, RecursionError):
            yield json.loads(line)


def _rows(text: str, mark: str) -> Iterator[list[str]]:
    """The rows at the beginning, up to the first that cannot be parsed."""
    lines = text[:64_000].lstrip("\ufeff").splitlines(keepends=True)
    with suppress(csv.Error):
        yield from filter(None, csv.reader(lines, delimiter=mark))


def _count_rows(text: str, mark: str) -> tuple[int, bool]:
    """The number of rows below the header, and whether it is exact."""
    lines = line_count(text.strip("\n")) - 1
    if '"' not in text:
        return lines, True
    if len(text) <= _COUNTED_CHARS:
        with suppress(csv.Error):
            return sum(map(bool, csv.reader(text.splitlines(keepends=True), delimiter=mark))) - 1, True
    return lines, False
