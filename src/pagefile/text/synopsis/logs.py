"""Synopses of logs: what went wrong first, then how much of what there is."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

from pagefile.records import JsonValue
from pagefile.text.synopsis.kinds import PATTERNS, TABLE, line_count, lines_of
from pagefile.text.synopsis.traces import trace_in
from pagefile.text.synopsis.wording import Voice, squeeze
from pagefile.text.tables import table

#: How many lines of a log are examined; in a longer one, this many at the beginning and a tenth as many at
#: the end.
MOST_LINES = 20_000
_PER_MESSAGE = 2000
_LAST_CHARS = 400_000

_ERRORS = frozenset({"ERROR", "FATAL"})
_VARIABLE = re.compile(r"0x[0-9a-fA-F]+|\d[\d.,:-]*|[0-9a-f]{8,}")
_ANSWERED = re.compile(r'"(?:[A-Z]{3,7}) (\S+)[^"]*" (\d{3}) ')
#: Words of a failure in lines that have no level.
_BAD = re.compile(
    r"(?i)\b(?:error|failed|failure|fatal|panic|denied|refused|timed? ?out|out of memory|oom|segfault|killed)\b|失败|错误|异常|告警|超时|故障"
)
#: The end of a program says that something failed, the lines before it say what.
_GENERIC = re.compile(
    r"(?i)\b(?:exit(?:ed)?|completed|finished|terminated) with\b|exit (?:code|status)|退出码|返回码"
)
_HAS_WORDS = re.compile(r"[^\W\d_]{3}")
_FIELDS: Mapping[str, list[str]] = table("pagefile.text.synopsis", "fields")["logs"]


def describe_log(text: str, say: Voice) -> list[str]:
    total = line_count(text)
    lines = [line[:1000] for line in islice(filter(None, lines_of(text)), MOST_LINES)]
    levels = [_level(line) for line in lines]
    span = _time_span(lines, text)
    counted = Counter(level for level in levels if level)
    shown = [f"{level} {count:,}" for level, count in counted.most_common(6)]
    seen = "" if len(lines) >= total else say(f"（前 {len(lines):,} 行）", f" (first {len(lines):,} lines)")
    trace = trace_in(text)
    parts = [
        squeeze(lines[0], 70) if lines and not _is_entry(lines[0]) else "",
        say(f"日志，{total:,} 行", f"Log, {total:,} lines"),
        answered := _statuses(lines, say),
        squeeze(trace.raised, 110) if trace else "",
        *_error_lines(lines, levels, text, say),
        say("级别：", "Levels: ") + ", ".join(shown) + seen if shown else "",
        span,
        "" if trace else _closing_line(text, say),
        "" if answered else _most_frequent(lines, say),
    ]
    return [part for part in parts if part]


def _closing_line(text: str, say: Voice) -> str:
    """The last line, if it is none of the entries but sums them up; what is indented continues an entry."""
    last = text[-1000:].rstrip().rpartition("\n")[2]
    summed_up = last and not last[0].isspace() and not _is_entry(last)
    return say("结尾：", "Ends: ") + squeeze(last, 100) if summed_up else ""


def has_levels(text: str) -> bool:
    """Whether the first lines of a log say how grave they are."""
    return any(map(_level, islice(lines_of(text), 60)))


def describe_log_rows(rows: Sequence[JsonValue], total: int, say: Voice) -> list[str] | None:
    """A log of JSON lines; None if the rows have no levels."""
    objects = [row for row in rows if isinstance(row, dict)]
    key = next(
        (
            name
            for name in _FIELDS["levels"]
            if objects and all(isinstance(row.get(name), str) for row in objects[:20])
        ),
        None,
    )
    if key is None:
        return None
    levels = Counter(str(row.get(key)).upper() for row in objects)
    shown = ", ".join(f"{level} {count:,}" for level, count in levels.most_common(6))
    bad = [
        row
        for row in objects
        if TABLE["levels"].get(str(row.get(key)).upper(), str(row.get(key)).upper()) in _ERRORS
    ]
    parts = [
        say(
            f"日志（JSON 行），{total:,} 行，级别：{shown}",
            f"Log in JSON lines, {total:,} lines. Levels: {shown}",
        )
    ]
    for label, row in zip(
        (say("首个错误：", "First error: "), say("最后错误：", "Last error: ")),
        dict.fromkeys([0, len(bad) - 1]) if bad else (),
        strict=False,
    ):
        parts.append(label + squeeze(_message(bad[row], key), 150))
    usual = Counter(_VARIABLE.sub("#", _message(row, key)) for row in objects).most_common(1)
    return [*parts, say("最常见：", "Most frequent: ") + squeeze(usual[0][0], 100) if usual else ""]


def _message(row: dict[str, JsonValue], level: str) -> str:
    said = next((value for name in _FIELDS["messages"] if isinstance(value := row.get(name), str)), "")
    rest = [
        f"{name}={value}"
        for name, value in row.items()
        if name not in (level, *_FIELDS["messages"]) and isinstance(value, str | int | float)
    ]
    return f"{said} {' '.join(rest[1:])}" if said else " ".join(rest)


def _statuses(lines: Sequence[str], say: Voice) -> str:
    """The answers in the log of a web server, failures with what was asked for."""
    answered = [match for line in lines if (match := _ANSWERED.search(line))]
    if len(answered) * 2 < len(lines):
        return ""
    counted = Counter(match[2] for match in answered)
    told = ", ".join(f"{status} ×{count:,}" for status, count in sorted(counted.items(), reverse=True)[:7])
    failed = Counter(f"{match[2]} {match[1]}" for match in answered if match[2] >= "500")
    worst = (
        say("；最多失败：", "; failing most: ") + squeeze(failed.most_common(1)[0][0], 70) if failed else ""
    )
    return say(f"请求 {len(answered):,} 个：{told}", f"{len(answered):,} requests: {told}") + worst


def _level(line: str) -> str:
    word = PATTERNS["level_word"].search(line, 0, 120)
    if word and (word.start() == 0 or not line[word.start() - 1].isalnum()):
        name = word.group()
    else:
        match = PATTERNS["level"].search(line, 0, 120)
        name = match[match.lastindex or 0].upper() if match else ""
    return TABLE["levels"].get(name, name)


def _time_span(lines: Sequence[str], text: str) -> str:
    first = next((match[0] for line in lines[:20] if (match := PATTERNS["stamp"].search(line, 0, 80))), "")
    tail = [line for line in text[-4000:].splitlines()[::-1] if line]
    last = next((match[0] for line in tail[:20] if (match := PATTERNS["stamp"].search(line, 0, 80))), "")
    return f"{first} – {last}" if first and last and first != last else first


def _error_lines(lines: Sequence[str], levels: Sequence[str], text: str, say: Voice) -> list[str]:
    bad = [level in _ERRORS for level in levels]
    tail = [line[:1000] for line in text[-_LAST_CHARS:].splitlines()[-MOST_LINES // 10 :] if line]
    worse = [_level(line) in _ERRORS for line in tail]
    if not any(bad):
        # What was requested may be called so.
        bad, worse = (
            [bool(_BAD.search(line) and not _ANSWERED.search(line)) for line in each]
            for each in (lines, tail)
        )
    if not any(bad):
        return []
    first = _entry(lines, bad.index(True))
    last = _entry(tail, len(worse) - 1 - worse[::-1].index(True)) if any(worse) else first
    parts = [say("首个错误：", "First error: ") + squeeze(first, 130)]
    if last != first:
        parts.append(say("最后错误：", "Last error: ") + squeeze(last, 150))
    return parts


def _is_entry(line: str) -> bool:
    return bool(_level(line) or PATTERNS["stamp"].search(line, 0, 80))


def _entry(lines: Sequence[str], at: int) -> str:
    """What an entry says, without its time: with the lines below it that go on, or the cause above a bare exit code."""
    said = PATTERNS["stamp"].sub("", lines[at], count=1).strip(" -[]|:")
    if _GENERIC.search(said):
        above = [
            line for line in lines[max(0, at - 8) : at] if _BAD.search(line) and not _GENERIC.search(line)
        ]
        said = " | ".join([*(PATTERNS["stamp"].sub("", line, count=1).strip() for line in above[-1:]), said])
    elif lines[at].rstrip()[-1:] in (":", "："):
        below = [
            line.strip() for line in lines[at + 1 : at + 9] if _HAS_WORDS.search(line) and not _is_entry(line)
        ]
        level = _level(lines[at])
        said = " ".join([level, *(line for line in below if len(line) > 14)][:4]) if below else said
    return said


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
