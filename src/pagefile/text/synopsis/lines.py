"""Synopses of line-based text: logs, source code, lists of search results."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice

from pagefile.records import JsonValue
from pagefile.text.sources import references, sources
from pagefile.text.synopsis.kinds import PATTERNS, TABLE, hits, line_count, lines_of
from pagefile.text.synopsis.wording import Voice, prose, squeeze

#: How many lines of a log are examined; in a longer one, this many at the beginning and a tenth as many at
#: the end.
MOST_LINES = 20_000
_PER_MESSAGE = 2000
_LAST_CHARS = 400_000

_ERRORS = frozenset({"ERROR", "FATAL"})
_VARIABLE = re.compile(r"0x[0-9a-fA-F]+|\d[\d.,:-]*|[0-9a-f]{8,}")

_LANGUAGES = {name: re.compile(pattern) for name, pattern in TABLE["languages"].items()}


# -- logs --------------------------------------------------------------------------------------------------------------


def describe_log(text: str, value: JsonValue, say: Voice) -> list[str]:
    total = line_count(text)
    lines = [line[:1000] for line in islice(filter(None, lines_of(text)), MOST_LINES)]
    levels = [_level(line) for line in lines]
    span = _time_span(lines, text)
    counted = Counter(level for level in levels if level)
    shown = [f"{level} {count:,}" for level, count in counted.most_common(6)]
    seen = "" if len(lines) >= total else say(f"（前 {len(lines):,} 行）", f" (first {len(lines):,} lines)")
    parts = [
        say(f"日志，{total:,} 行{span and '，' + span}", f"Log, {total:,} lines{span and ', ' + span}"),
        say("级别：", "Levels: ") + ", ".join(shown) + seen if shown else "",
        *_error_lines(lines, levels, text, say),
        _most_frequent(lines, say),
    ]
    return [part for part in parts if part]


def _level(line: str) -> str:
    word = PATTERNS["level_word"].search(line, 0, 120)
    if word and (word.start() == 0 or not line[word.start() - 1].isalnum()):
        name = word.group()
    else:
        match = PATTERNS["level"].search(line, 0, 120)
        name = (match[1] or match[2] or match[3]).upper() if match else ""
    return TABLE["levels"].get(name, name)


def _time_span(lines: Sequence[str], text: str) -> str:
    first = next((match[0] for line in lines[:20] if (match := PATTERNS["stamp"].search(line, 0, 80))), "")
    tail = [line for line in text[-4000:].splitlines()[::-1] if line]
    last = next((match[0] for line in tail[:20] if (match := PATTERNS["stamp"].search(line, 0, 80))), "")
    return f"{first} – {last}" if first and last and first != last else first


def _error_lines(lines: Sequence[str], levels: Sequence[str], text: str, say: Voice) -> list[str]:
    first = next((line for line, level in zip(lines, levels, strict=True) if level in _ERRORS), "")
    if not first:
        return []
    tail = text[-_LAST_CHARS:].splitlines()[::-1][: MOST_LINES // 10]
    last = next((line for line in tail if _level(line) in _ERRORS), first)
    parts = [say("首个错误：", "First error: ") + squeeze(first, 130)]
    if last != first:
        parts.append(say("最后错误：", "Last error: ") + squeeze(last, 130))
    return parts


def _most_frequent(lines: Sequence[str], say: Voice) -> str:
    """The message that most lines share once times and numbers are removed."""
    sample = lines[:: max(1, len(lines) // _PER_MESSAGE)]
    behind_stamps = (PATTERNS["stamp"].sub("", line[:300], count=1) for line in sample)
    messages = Counter(_VARIABLE.sub("#", behind).strip(" -[]|:#") for behind in behind_stamps)
    message, count = messages.most_common(1)[0] if messages else ("", 0)
    if count < 2 or not message:
        return ""
    share = count / len(sample)
    return say(f"最常见（{share:.0%}）：", f"Most frequent ({share:.0%}): ") + squeeze(message, 120)


# -- code --------------------------------------------------------------------------------------------------------------


def describe_code(text: str, value: JsonValue, say: Voice) -> list[str]:
    head = text[:20_000]
    scores = {name: len(pattern.findall(head)) for name, pattern in _LANGUAGES.items()}
    best = max(scores, key=lambda name: scores[name])
    guess = best if scores[best] else say("未知语言", "unknown language")
    names = list(dict.fromkeys(islice((match[1] for match in PATTERNS["named"].finditer("\n" + text)), 5000)))
    lines = line_count(text)
    parts = [say(f"代码（{guess}），{lines:,} 行", f"Code ({guess}), {lines:,} lines")]
    if names:
        parts.append(say("定义：", "Defines: ") + say.listed(names, len(names), most=260))
    if comment := PATTERNS["comment"].search(head):
        parts.append(say("注释：", "Says: ") + squeeze(comment[1], 150))
    return parts


# -- search results ----------------------------------------------------------------------------------------------------


def describe_search(text: str, value: JsonValue, say: Voice) -> list[str]:
    found = hits(value)
    named = sources(text)
    number = len(found) or len(named)
    names = say.listed([_without_address(source) for source in named], number, most=230)
    opening = say("检索结果", "Search results")
    if names:
        opening += say(f"，{number:,} 个来源：", f", {number:,} sources: ") + names
    # Without snippets, what precedes the list of references, if that is more than a line.
    end = next((start for start, _ in references(text) if start > 200), len(text))
    said = "\n".join(_snippet(item) for item in found[:8]) if found else text[:end]
    return [opening, prose(said, 240)]


def _without_address(source: str) -> str:
    """The name of a source; its URL if it has no name."""
    name, _, rest = source.rpartition(" (")
    return name if name and rest.startswith(("http", "ftp")) else source


def _snippet(item: dict[str, JsonValue]) -> str:
    values = (item.get(key) for key in ("snippet", "description", "summary", "content", "text", "body"))
    return next((value[:300] for value in values if isinstance(value, str) and value.strip()), "")
