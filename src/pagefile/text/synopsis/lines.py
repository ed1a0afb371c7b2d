"""Synopses of line-based text: logs, source code, lists of search results."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice

from pagefile.records import JsonValue
from pagefile.text.sources import sources
from pagefile.text.synopsis.kinds import LEVEL, STAMP, hits, references
from pagefile.text.synopsis.telling import listed, pick, prose, squeeze

#: How many lines of a log are examined; in a longer one, this many at the beginning and a tenth as many at
#: the end.
MOST_LINES = 20_000
_PER_MESSAGE = 2000
_LAST_CHARS = 400_000

#: The common case of `LEVEL`, seven times as fast.
_LEVEL_WORD = re.compile(r"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|ERR|FATAL|CRITICAL|SEVERE|PANIC)\b")
_LEVEL_NAMES = {
    "WARNING": "WARN",
    "ERR": "ERROR",
    "SEVERE": "ERROR",
    "CRITICAL": "FATAL",
    "PANIC": "FATAL",
}
_ERRORS = frozenset({"ERROR", "FATAL"})
_VARIABLE = re.compile(r"0x[0-9a-fA-F]+|\d[\d.,:-]*|[0-9a-f]{8,}")

_LANGUAGES = {
    "Python": r"^[ \t]*+(?:async )?def \w+\(.*:|^[ \t]*+class \w+.*:[ \t]*$|^(?:from [\w.]+ )?import [\w., ]+$|\bself\.",
    "TypeScript": r"^(?:export )?(?:interface|type) \w+|: (?:string|number|boolean)\b|\bas const\b",
    "JavaScript": r"\b(?:const|let|var) \w+ =|\bfunction\b|=>|\brequire\(|^export |===",
    "Java": r"\bpublic (?:class|static|void|interface)\b|^import java|@Override|\bnew [A-Z]\w+\(",
    "Go": r"^package \w+$|^func |:=|\berr != nil",
    "Rust": r"\bfn \w+|\blet mut\b|\bimpl\b|^use \w+::|\bpub (?:fn|struct)",
    "C/C++": r"^#include|\bint main\(|std::|->\w+|\bvoid \w+\(",
    "SQL": r"(?i:^[ \t]*+(?:select|create table|insert into|update|delete from|alter table)\b)",
    "Shell": r"^#!.*sh\b|^[ \t]*+(?:fi|done|esac)$|\becho \"|\$\{?\w+",
}
_LANGUAGE_MARKS = {name: re.compile(pattern, re.MULTILINE) for name, pattern in _LANGUAGES.items()}
_NAMED = re.compile(
    r"\n[ \t]*+(?:export +|default +|public +|private +|protected +|static +|async +|pub +|abstract +|final +)*"
    r"(?:def|class|function|func|fn|struct|interface|enum|trait|impl|type|create table)[ \t]++(?:\([^()\n]*+\)[ \t]*+)?+([\w.$]+)",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"(?:#(?!!|include)|//|/\*+|\"\"\"|--)\s?(\w[^\n]{10,300})")


# -- logs --------------------------------------------------------------------------------------------------------------


def describe_log(text: str, value: JsonValue, *, zh: bool) -> list[str]:
    """The number of lines, the time span, the levels, the first and the last error, and what repeats."""
    total = text.count("\n") + (not text.endswith("\n"))
    lines = _first_lines(text)
    levels = [_level(line) for line in lines]
    span = _time_span(lines, text)
    counted = Counter(level for level in levels if level)
    shown = [f"{level} {count:,}" for level, count in counted.most_common(6)]
    seen = (
        ""
        if len(lines) >= total
        else pick(f"（前 {len(lines):,} 行）", f" (first {len(lines):,} lines)", zh=zh)
    )
    parts = [
        pick(
            f"日志，{total:,} 行{span and '，' + span}", f"Log, {total:,} lines{span and ', ' + span}", zh=zh
        ),
        pick("级别：", "Levels: ", zh=zh) + ", ".join(shown) + seen if shown else "",
        *_error_lines(lines, levels, text, zh=zh),
        _most_frequent(lines, zh=zh),
    ]
    return [part for part in parts if part]


def _first_lines(text: str) -> list[str]:
    """The first lines, without splitting twenty megabytes."""
    lines: list[str] = []
    place = 0
    while place < len(text) and len(lines) < MOST_LINES:
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        if end > place:
            lines.append(text[place : min(end, place + 1000)])
        place = end + 1
    return lines


def _level(line: str) -> str:
    word = _LEVEL_WORD.search(line, 0, 120)
    if word and (word.start() == 0 or not line[word.start() - 1].isalnum()):
        name = word.group()
    else:
        match = LEVEL.search(line, 0, 120)
        name = (match[1] or match[2] or match[3]).upper() if match else ""
    return _LEVEL_NAMES.get(name, name)


def _time_span(lines: Sequence[str], text: str) -> str:
    first = next((match[0] for line in lines[:20] if (match := STAMP.search(line, 0, 80))), "")
    tail = [line for line in text[-4000:].splitlines()[::-1] if line]
    last = next((match[0] for line in tail[:20] if (match := STAMP.search(line, 0, 80))), "")
    return f"{first} – {last}" if first and last and first != last else first


def _error_lines(lines: Sequence[str], levels: Sequence[str], text: str, *, zh: bool) -> list[str]:
    first = next((line for line, level in zip(lines, levels, strict=True) if level in _ERRORS), "")
    if not first:
        return []
    tail = text[-_LAST_CHARS:].splitlines()[::-1][: MOST_LINES // 10]
    last = next((line for line in tail if _level(line) in _ERRORS), first)
    parts = [pick("首个错误：", "First error: ", zh=zh) + squeeze(first, 130)]
    if last != first:
        parts.append(pick("最后错误：", "Last error: ", zh=zh) + squeeze(last, 130))
    return parts


def _most_frequent(lines: Sequence[str], *, zh: bool) -> str:
    """The message that most lines share once times and numbers are removed."""
    step = max(1, len(lines) // _PER_MESSAGE)
    sample = lines[::step]
    messages = Counter(_message(line) for line in sample)
    message, count = messages.most_common(1)[0] if messages else ("", 0)
    if count < 2 or not message:
        return ""
    share = count / len(sample)
    return pick(f"最常见（{share:.0%}）：", f"Most frequent ({share:.0%}): ", zh=zh) + squeeze(message, 120)


def _message(line: str) -> str:
    behind = STAMP.sub("", line[:300], count=1)
    return _VARIABLE.sub("#", behind).strip(" -[]|:#")


# -- code --------------------------------------------------------------------------------------------------------------


def describe_code(text: str, value: JsonValue, *, zh: bool) -> list[str]:
    """The language, the number of lines, what is defined, and what the first comment says."""
    head = text[:20_000]
    scores = {name: len(pattern.findall(head)) for name, pattern in _LANGUAGE_MARKS.items()}
    best = max(scores, key=lambda name: scores[name])
    guess = best if scores[best] else pick("未知语言", "unknown language", zh=zh)
    names = list(dict.fromkeys(islice((match[1] for match in _NAMED.finditer("\n" + text)), 5000)))
    lines = text.count("\n") + (not text.endswith("\n"))
    parts = [pick(f"代码（{guess}），{lines:,} 行", f"Code ({guess}), {lines:,} lines", zh=zh)]
    if names:
        parts.append(pick("定义：", "Defines: ", zh=zh) + listed(names, len(names), most=260, zh=zh))
    comment = _COMMENT.search(head)
    if comment:
        parts.append(pick("注释：", "Says: ", zh=zh) + squeeze(comment[1], 150))
    return parts


# -- search results ----------------------------------------------------------------------------------------------------


def describe_search(text: str, value: JsonValue, *, zh: bool) -> list[str]:
    """The number of hits, their titles or sources, and what the first ones say."""
    found = hits(value)
    named = sources(text)
    number = len(found) or len(named)
    names = listed([_without_address(source) for source in named], number, most=230, zh=zh)
    parts = [
        pick(f"检索结果，{number:,} 个来源：", f"Search results, {number:,} sources: ", zh=zh) + names
        if names
        else pick("检索结果", "Search results", zh=zh)
    ]
    if found:
        snippets = [_snippet(item) for item in found[:8]]
        parts += [prose("\n".join(snippets), 240)]
    else:
        # What precedes the list of references, if that is more than a line.
        end = next((start for start, _ in references(text) if start > 200), len(text))
        parts += [prose(text[:end], 240)]
    return parts


def _without_address(source: str) -> str:
    """The name of a source; its URL if it has no name."""
    name, _, rest = source.rpartition(" (")
    return name if name and rest.startswith(("http", "ftp")) else source


def _snippet(item: dict[str, JsonValue]) -> str:
    for key in ("snippet", "description", "summary", "content", "text", "body"):
        value = item.get(key)
        if isinstance(value, str) and value.strip():
            return value[:300]
    return ""
