"""Synopses of JSON: a failure first, then the rows that most of it consists of, values before keys."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from pagefile.records import JsonValue
from pagefile.text.synopsis.failures import WELL, failure_in
from pagefile.text.synopsis.json_rows import Rows, rows_in
from pagefile.text.synopsis.kinds import line_count
from pagefile.text.synopsis.markup import visible
from pagefile.text.synopsis.records import (
    ASKED,
    Flat,
    example,
    extremes,
    failing,
    flat,
    naming,
    notable,
    of_what,
    short,
    show,
    tallies,
)
from pagefile.text.synopsis.wording import Voice, prose, squeeze

#: A string this long is a text to be read, not a value.
_WORTH_READING = 300
#: Longer JSON that something follows is not parsed for a synopsis.
_DECODED_CHARS = 1_000_000
_PAIR = re.compile(r'"([^"\\\n]{1,60})"\s*:\s*"?([^"\\\n{}\[\],]{1,80})')
_KEY = re.compile(r'"([^"\\\n]{1,80})"\s*:')
_TITLE = r"title|summary|subject|标题|主题"
_COUNTS = r"\w*(?:total|count)\w*"
_NAMED = r"\w*(?:query|name|project|city|kind)\w*|名称|地点"
#: Envelope fields to mention first: the length of a list; the number and state of a record (which has a title).
_OF_LISTS, _OF_RECORDS = (
    [re.compile(rf"(?i)(?:{names})=") for names in order]
    for order in (
        (_TITLE, _COUNTS, _NAMED),
        (_TITLE, r"key|number|identifier|short_?id|编号|单号", r"status|state|状态", _COUNTS, _NAMED),
    )
)


def describe_value(value: JsonValue, text: str, say: Voice) -> list[str]:
    """What a parsed JSON value says."""
    if (failure := failure_in(value)) is not None:
        return [say("错误：", "Error: ") + failure, *_longest_text(value, say)]
    rows = rows_in(value)
    if rows is not None and rows.count > 1:
        return describe_rows(rows, value, say)
    if isinstance(value, dict):
        return _describe_object(value, say)
    if isinstance(value, list):
        return _describe_list(value, say)
    return [say(f"JSON：{squeeze(text, 200)}", f"JSON: {squeeze(text, 200)}")]


def describe_rows(rows: Rows, value: JsonValue, say: Voice) -> list[str]:
    flats = [flat(item) for item in rows.items[:ASKED]]
    where = ".".join(rows.path)
    noun = rows.noun
    named = f" {noun}" if noun else say("", " items")
    place = f" ({where})" if where and where != noun else ""
    around = _around(value, rows, say)
    parts = [
        _raised(rows),
        say(f"JSON，{rows.count:,} 条{named}{place}", f"JSON, {rows.count:,}{named}{place}")
        + (say("；", "; ") + around if around else ""),
        (unusual := notable(flats, say) or failing(value, say)),
        say("如：", "E.g. ") + example(flats[0], flats, say, most=130) if flats else "",
        tallies(flats, say, most=150),
        extremes(flats, say) if not unusual else "",
        _next_names(flats, say),
        *_longest_text(value, say),
        say("末项：", "Last: ") + example(flats[-1], flats, say, most=130)
        if len(flats) == rows.count > 2
        else "",
        say("字段：", "Keys: ") + say.listed(flats[0], len(flats[0]), most=150) if flats else "",
    ]
    return [part for part in parts if part]


def _raised(rows: Rows) -> str:
    """An exception among the rows, as notebooks and job runners report it."""
    for item in rows.items[:ASKED]:
        name, said = (item.get(key) for key in ("ename", "evalue"))
        if isinstance(name, str):
            return squeeze(f"{name}: {said}", 160)
    return ""


def _next_names(flats: Sequence[Flat], say: Voice) -> str:
    key = naming(flats)
    names = [show(row.get(key), say) for row in flats[1:40] if row.get(key) not in (None, "")] if key else []
    return (
        say(f"其后 {short(key, flats[0])}：", f"Next {short(key, flats[0])}: ")
        + say.listed(names, 0, most=120, name_chars=50)
        if names
        else ""
    )


def _around(value: JsonValue, rows: Rows, say: Voice) -> str:
    """Totals, names and states outside the rows."""
    told: list[str] = []
    inner = value
    for name in (*rows.path, None):
        if not isinstance(inner, dict):
            break
        # Inside of what holds the rows, objects are rows themselves.
        outside = {
            key: item
            for key, item in inner.items()
            if key != name and (name is not None or not isinstance(item, dict))
        }
        told += [_told(key, show(item, say)) for key, item in flat(outside).items() if _is_worth(key, item)]
        told += [
            f"{key}: {len(item):,}"
            for key, item in outside.items()
            if isinstance(item, list) and len(item) > 1 and isinstance(item[0], dict)
        ]
        inner = inner.get(name) if name is not None else None
    is_record = any(map(_OF_LISTS[0].match, told))
    ranks = _OF_RECORDS if is_record else _OF_LISTS
    told.sort(key=lambda one: next((at for at, rank in enumerate(ranks) if rank.match(one)), len(ranks)))
    return say.listed(dict.fromkeys(told), 0, most=120 if is_record else 90, name_chars=60)


def _told(key: str, value: str) -> str:
    """A field outside the rows; `type.name` is the type."""
    above, _, last = key.rpartition(".")
    name = (
        above.rpartition(".")[2]
        if above and last.casefold() in ("name", "value", "displayname", "label")
        else last
    )
    return f"{name}={value}"


def _is_worth(key: str, value: JsonValue) -> bool:
    if isinstance(value, list | dict) or value is None or isinstance(value, bool):
        return False
    if str(value).casefold() in WELL or re.search(
        r"(?i)token|cursor|request_?id|trace|took|time_?ms|duration|object$|vector|expand|href|self$|api_?version",
        key,
    ):
        return False
    # A title is cut, anything else that long is a text.
    return len(str(value)) <= (400 if _OF_LISTS[0].match(f"{key.rpartition('.')[2]}=") else 80)


def _describe_object(value: Mapping[str, JsonValue], say: Voice) -> list[str]:
    row = flat(value)
    key = naming([row]) if row else ""
    lead = (
        f"{show(row[key], say)}"
        if key and key.rpartition(".")[2] not in ("id", "key", "text", "message")
        else ""
    )
    rest = {name: item for name, item in row.items() if name != key or not lead}
    opening = say("JSON 对象", "JSON object") + (
        say(f"《{lead}》", f' "{lead}"') if lead else say(f"，{len(value)} 个键", f" with {len(value)} keys")
    )
    return [opening + say("：", ": ") + example(rest, [], say, most=260), *_longest_text(value, say)]


def _describe_list(items: Sequence[JsonValue], say: Voice) -> list[str]:
    opening = say(f"JSON 数组，{len(items):,} 项", f"JSON array of {len(items):,} {of_what(items)}")
    objects = [
        item for row in items[:40] if isinstance(row, list) for item in row[:10] if isinstance(item, dict)
    ]
    if objects:
        flats = [flat(item) for item in objects]
        return [
            opening,
            say("如：", "E.g. ") + example(flats[0], flats, say, most=150),
            _next_names(flats, say),
        ]
    first = [item for item in items[:1] if isinstance(item, dict)]
    if first:
        return [opening, *_describe_object(first[0], say)]
    values = [show(item, say) for item in items[:20]]
    return (
        [opening, say("前几项：", "First: ") + say.listed(values, len(values), most=300)]
        if values
        else [opening]
    )


def _longest_text(value: JsonValue, say: Voice) -> list[str]:
    """What the longest text says: tools often put a document beside its properties."""
    longest = max(islice(_strings(value), 2000), key=len, default="")
    if len(longest) < _WORTH_READING or " " not in longest[:200] + " " * (not longest.isascii()):
        return []
    read = visible(longest[:20_000]) if "</" in longest[:20_000] else longest
    return [say("文本内容：", "Text: ") + prose(read, 220)]


def _strings(value: JsonValue, depth: int = 6) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth:
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from _strings(inner, depth - 1)


def describe_unread(text: str, say: Voice) -> list[str]:
    """JSON with something behind it, truncated, or too deep or too large to parse: what can be seen of it."""
    head = text[:20_000]
    if len(text) <= _DECODED_CHARS and (first := _first_value(text)) is not None:
        value, end = first
        rest = say("其后：", "Then: ") + squeeze(text[end:], 120) if text[end:].strip() else ""
        told = describe_value(value, text[:end], say)
        return [*told[:2], rest, *told[2:]]
    keys = list(dict.fromkeys(_KEY.findall(head)))
    array = head.lstrip("\ufeff \t\r\n").startswith("[")
    opening = say(
        f"JSON {'数组' if array else '对象'}，未能完整解析，{len(text):,} 字符",
        f"JSON {'array' if array else 'object'}, not parsed as a whole, {len(text):,} characters",
    )
    shown = [f"{key}={squeeze(value, 50)}" for key, value in islice(_PAIR.findall(head), 40)]
    told = say.listed(shown or keys, len(keys), most=220)
    return [opening, say("开头的键：", "Keys at the beginning: ") + told if keys else ""]


def _first_value(text: str) -> tuple[JsonValue, int] | None:
    start = len(text) - len(text.lstrip("\ufeff \t\r\n"))
    found: tuple[JsonValue, int]
    try:
        found = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return found if found[0] else None


def describe_lines(items: Sequence[JsonValue], text: str, say: Voice) -> list[str]:
    """JSON lines."""
    count = line_count(text.strip())
    opening = say(f"JSON 行数据，共 {count:,} 行", f"JSON lines, {count:,} rows")
    objects = [item for item in items if isinstance(item, dict)]
    if not objects:
        return [opening, *_describe_list(items, say)]
    flats = [flat(item) for item in objects[:ASKED]]
    # The first row is often a header of another shape.
    usual, _ = Counter(tuple(row) for row in flats).most_common(1)[0]
    typical = next(row for row in flats if tuple(row) == usual)
    return [
        opening,
        say("如：", "E.g. ") + example(typical, flats, say, most=140),
        tallies(flats, say, most=140),
        _next_names(flats, say),
    ]
