"""Rows of values, whatever they came as: an example, what their columns hold, how often the common values occur."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from pagefile.records import JsonValue
from pagefile.text.synopsis.binary import describe_base64, is_base64
from pagefile.text.synopsis.wording import Voice, squeeze
from pagefile.text.tables import table

#: How many rows are examined.
ASKED = 400
#: How many fields of a row.
_MOST_FIELDS = 60
#: How many states are looked for in nested objects.
_MOST_STATES = 20_000
#: From this field on, a name is brought forward.
_NAMED_LATE = 3
#: A longer string is a text, not a value.
_VALUE_CHARS = 60

#: Fields whose values are worth counting before others.
STATES = re.compile(
    r"(?i)status|state|phase|level|severity|priority|result|outcome|reason|verdict|passed|状态|等级|级别|结果|结论|质检|阶段|优先级|^zt$"
)
#: Fields that name what a row is about, best first.
_NAMES: list[str] = table("pagefile.text.synopsis", "fields")["naming"]
_NO_NEWS = re.compile(r"https?://|\d{4}-\d\d-\d\dT\d")
_DULL = re.compile(r"(?i)^(?:[0-9a-f]{16,}|[0-9a-f]{8}-[0-9a-f-]{27}|null|)$")

#: Fields that name the format of a row.
_FORMAT = frozenset({"type", "object", "kind", "@type"})

Flat = dict[str, JsonValue]


def flat(item: Mapping[str, JsonValue]) -> Flat:
    """An object with the fields of those inside it, by dotted names; of an inner list its first object."""
    return dict(islice(_fields(item, ""), _MOST_FIELDS))


def _fields(item: Mapping[str, JsonValue], above: str, depth: int = 4) -> Iterator[tuple[str, JsonValue]]:
    for key, value in item.items():
        inner = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else value
        if isinstance(inner, dict) and inner and depth:
            yield from _fields(inner, f"{above}{key}.", depth - 1)
        else:
            yield above + key, value


def example(row: Flat, rows: Sequence[Flat], say: Voice, *, most: int) -> str:
    """The fields of a row with their values, those first that differ from row to row."""
    told = [key for key, value in row.items() if _is_telling(value)]
    same = {key for key in told if len(rows) > 2 and all(other.get(key) == row[key] for other in rows[:20])}
    named = naming([row])
    is_late = named in told[_NAMED_LATE:] and named.rpartition(".")[2].casefold() != "id"
    # What names a row comes first if it is late in it. Of what all rows have in common, what format they are in says least; of what tells them apart, addresses do.
    ordered = sorted(
        told,
        key=lambda key: (
            (key in same) + (key in same and key.rpartition(".")[2] in _FORMAT),
            key != named if is_late else False,
            _is_address(row[key]),
        ),
    )
    shown = [f"{short(key, told)}={show(row[key], say)}" for key in ordered]
    return say.listed(shown, len(shown), most=most, name_chars=90)


def short(key: str, keys: Iterable[str]) -> str:
    """A dotted name without what is not needed to tell it from the others."""
    last = key.rpartition(".")[2]
    return last if sum(other.rpartition(".")[2] == last for other in keys) == 1 else key


def _is_address(value: JsonValue) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://"))


def _is_telling(value: JsonValue) -> bool:
    return value not in ([], {}) and not (
        value is None or (isinstance(value, str) and _DULL.match(value.strip()))
    )


def show(value: JsonValue, say: Voice) -> str:
    """A short value as it is, a long one by its beginning or its size."""
    if isinstance(value, str):
        if len(value) > 400 and is_base64(value):
            return describe_base64(value, say)
        return squeeze(value, _VALUE_CHARS)
    if isinstance(value, dict):
        return say(f"对象（{len(value)} 个键）", f"object of {len(value)} keys")
    if isinstance(value, list):
        if len(value) <= 4 and all(not isinstance(item, dict | list) for item in value):
            return squeeze("/".join(show(item, say) for item in value), _VALUE_CHARS)
        return say(f"[{len(value):,} 项]", f"[{len(value):,} {of_what(value)}]")
    return json.dumps(value)


def of_what(items: Sequence[JsonValue]) -> str:
    """What a list has in it, in English, as JSON calls it."""
    kinds = {
        "numbers" if isinstance(item, int | float) and not isinstance(item, bool)
        else "strings" if isinstance(item, str)
        else "objects" if isinstance(item, dict)
        else "lists" if isinstance(item, list)
        else "items"
        for item in items[:ASKED]
    }  # fmt: skip
    return kinds.pop() if len(kinds) == 1 else "items"


def tallies(rows: Sequence[Flat], say: Voice, *, most: int) -> str:
    """How often the common values of a few fields occur, states before others; "" if nothing repeats."""
    if len(rows) < 8:
        return ""
    found: list[tuple[bool, int, str]] = []
    for key in islice(rows[0], 30):
        values = [row.get(key) for row in rows]
        if not all(isinstance(value, str | bool) and len(str(value)) <= 30 for value in values[:20]):
            continue
        counted = Counter(str(value) for value in values if value not in (None, ""))
        if 2 <= len(counted) <= 8 and len(counted) * 2 < len(rows):
            told = say("、", ", ").join(f"{value} {count:,}" for value, count in counted.most_common(6))
            found.append(
                (not STATES.search(key), len(counted), key.rpartition(".")[2] + say("：", ": ") + told)
            )
    kept = [told for _, _, told in sorted(found, key=lambda one: one[:2])[:3]]
    return squeeze(_sampled(rows, say) + say("；", "; ").join(kept), most) if kept else ""


def _sampled(rows: Sequence[Flat], say: Voice) -> str:
    """What is said of many rows is said of the first ones, and says so."""
    return say(f"前 {ASKED} 行：", f"In the first {ASKED}: ") if len(rows) >= ASKED else ""


#: What in a row a reader should know of.
BAD = re.compile(
    r"(?i)(?<!\bno )(?<!\b0 )(?<!\bwithout )(?:crash|error|fail|exited|evicted|killed|oom|critical|fatal|denied|refused|timed? ?out"
    r"|unhealthy)|(?<![无未零])(?<!没有)(?<!未见)(?<!未发现)(?<!没有发现)(?:异常|失败|错误|故障|超时|告警)"
)


def notable(rows: Sequence[Flat], say: Voice, *, most: int = 110) -> str:
    """The first row that tells of a failure, if few do."""
    bad = [
        row
        for row in rows
        if any(isinstance(value, str) and len(value) <= 60 and BAD.search(value) for value in row.values())
    ]
    if not bad or len(bad) * 2 > len(rows):
        return ""
    told = [
        value
        for value in bad[0].values()
        if isinstance(value, str) and _is_telling(value) and len(value) <= most and not _NO_NEWS.match(value)
    ]
    # What is bad about it first, then what says most.
    told.sort(key=lambda value: (BAD.search(value) is None, -len(value)))
    return say("异常：", "Notable: ") + squeeze(" ".join(told), most)


def failing(value: JsonValue, say: Voice, *, most: int = 110) -> str:
    """The first object at any depth whose state tells of a failure, with what names it, if few do."""
    states = list(islice(_states(value, ""), _MOST_STATES))
    bad = [(name, state) for name, state in states if BAD.search(state)]
    if not bad or len(bad) * 4 > len(states):
        return ""
    return say("异常：", "Notable: ") + squeeze(" ".join(filter(None, bad[0])), most)


def _states(value: JsonValue, name: str, depth: int = 10) -> Iterator[tuple[str, str]]:
    """Every short state in a value, with the nearest name around it."""
    if isinstance(value, list) and depth:
        for inner in value:
            yield from _states(inner, name, depth - 1)
    elif isinstance(value, dict) and depth:
        own = next((told for key in _NAMES[:6] if isinstance(told := value.get(key), str) and told), name)
        for key, inner in value.items():
            if isinstance(inner, str):
                if len(inner) <= _VALUE_CHARS and STATES.search(key):
                    yield own, inner
            else:
                yield from _states(inner, own, depth - 1)


_PAIRED = (("name", "value"), ("key", "value"), ("field", "value"), ("Key", "Value"), ("Name", "Value"))


def unpaired(value: JsonValue, depth: int = 12) -> JsonValue:
    """A value in which lists of names and values, as headers and tags come, are objects."""
    if isinstance(value, dict):
        return {key: unpaired(inner, depth - 1) for key, inner in value.items()} if depth else value
    if not isinstance(value, list) or not depth:
        return value
    for name, of in _PAIRED:
        if value and all(isinstance(item, dict) and item.keys() == {name, of} for item in value):
            pairs = [item for item in value if isinstance(item, dict)]
            if all(isinstance(item[name], str) for item in pairs):
                return {str(item[name]): item[of] for item in pairs}
    return [unpaired(item, depth - 1) for item in value]


def extremes(rows: Sequence[Flat], say: Voice, *, most: int = 90) -> str:
    """The rows with the highest value of a column of percentages or measures."""
    for key in islice(rows[0] if rows else {}, 20):
        counts_percent = "%" in key
        if _percent(rows[0].get(key), bare=counts_percent) is None:
            continue
        numbers = [_percent(row.get(key), bare=counts_percent) for row in rows]
        if len(rows) > 1 and all(number is not None for number in numbers):
            top = max(range(len(rows)), key=lambda at: numbers[at] or 0)
            return (
                _sampled(rows, say)
                + say(f"{key} 最高：", f"Highest {key}: ")
                + squeeze(" ".join(str(value) for value in rows[top].values()), most)
            )
    return ""


def _percent(value: JsonValue, *, bare: bool) -> float | None:
    """A percentage; a bare number if its column is called one."""
    sign = "%?" if bare else "%"
    found = re.fullmatch(rf"(\d{{1,3}}(?:\.\d+)?){sign}", value.strip()) if isinstance(value, str) else None
    return float(found[1]) if found else None


def naming(rows: Sequence[Flat]) -> str:
    """The field that names the rows, "" if there is none."""
    lasts: dict[str, str] = {}
    for key in rows[0] if rows else ():
        lasts.setdefault(key.rpartition(".")[2].casefold(), key)
    for name in _NAMES:
        key = lasts.get(name.casefold())
        if key and isinstance(rows[0][key], str | int) and rows[0][key] != "":
            return key
    return next(
        (
            key
            for key in (rows[0] if rows else ())
            if re.search(r"(?i)name|title|名|标题", key.rpartition(".")[2])
        ),
        "",
    )
