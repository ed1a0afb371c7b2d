"""Runs of tests, builds and checks: how they ended, what failed, and why."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pagefile.text.synopsis.traces import Trace, trace_in
from pagefile.text.synopsis.wording import Voice, squeeze
from pagefile.text.tables import table

#: The lines that are read: runs end with what matters.
_FIRST_LINES, _LAST_LINES = 4_000, 300
#: How many lines at each end decide whether compilers or linters wrote them.
_ASKED_LINES = 40
_LINE_CHARS = 400

_TABLE = table("pagefile.text.synopsis", "runs")


_OUTCOMES = {name: [re.compile(one) for one in told] for name, told in _TABLE["outcomes"].items()}
_FAILING = [re.compile(one) for one in _TABLE["failing"]["names"]]
_ERRORS = [re.compile(one) for one in _TABLE["errors"]["fatal"]]
_DIAGNOSTIC = re.compile(_TABLE["diagnostics"]["line"])
_ONE_TEST = re.compile(r"\s*--- (PASS|FAIL): |(ok|not ok) \d+\b")
#: Words without one of which no line counts anything or names what failed.
_WORTH = (
    "pass", "fail", "err", "test", "found", "build", "plan:", "apply", "warn", "vulnerab", "problem", "example", "finished", "package",
    "success", "fatal", "conflict", "no changes", "exception", "checks", "reformatted", "total", "❯", "×", "✗", "✕", "✖", "●", "✘",
    "not ok", "undefined", "unresolved", "multiple", "duplicate", "cannot find", "e: ", "***", "ninja", "destroyed", "replaced", "rated", "失败", "成功", "错误", "测试", "用例", "警告", "通过", "ok", "e  ",
)  # fmt: skip


class Run(NamedTuple):
    """What a run says about itself."""

    outcomes: Sequence[str]
    failing: Sequence[str]
    errors: Sequence[str]
    #: The kinds of diagnostics with their numbers, and the files they are about.
    diagnostics: Counter[str]
    files: int
    trace: Trace | None
    #: Its first lines, which tell what was run, and its last.
    begins: str
    ends: str


def run_in(text: str) -> Run | None:
    """What a run of tests, a build or a check says about itself; None if the text is none."""
    every = text.splitlines()
    last = _worth_reading(every[-_LAST_LINES:])
    outcomes = _outcomes(last)
    asked = [line[:_LINE_CHARS] for line in (*every[:_ASKED_LINES], *every[-_ASKED_LINES:])]
    if (
        not outcomes
        and not any(map(_ONE_TEST.match, asked))
        and sum(bool(_DIAGNOSTIC.match(line)) for line in asked) < max(2, 0.2 * len(asked))
    ):
        return None
    lines = _worth_reading(every[:_FIRST_LINES]) + (last if len(every) > _FIRST_LINES else [])
    outcomes = [*_counted(lines), *outcomes]
    diagnosed = [match for line in lines if (match := _DIAGNOSTIC.match(line))]
    if not outcomes and not diagnosed:
        return None
    kinds = Counter(
        "warning" if match[2] in ("warning", "警告") else "note" if match[2] in ("note", "info") else "error"
        for match in diagnosed
    )
    failing = list(dict.fromkeys(_first(_FAILING, lines)))
    return Run(
        outcomes,
        failing,
        _errors(lines),
        kinds,
        len({match[1] for match in diagnosed}),
        trace_in(text),
        _joined(every[:12], slice(2), 100),
        _joined(every[-12:], slice(-5, None), 250),
    )


def describe_run(run: Run, say: Voice) -> list[str]:
    parts = [say("；", "; ").join(run.outcomes[:3])]
    if run.diagnostics and not any(re.search(r"\d", one) for one in run.outcomes[:3]):
        parts.insert(0, _diagnosed(run, say))
    if run.failing:
        parts.append(
            say("失败：", "Failing: ") + say.listed(run.failing, len(run.failing), most=150, name_chars=90)
        )
    said = " ".join(parts)
    parts += [squeeze(line, 150) for line in run.errors[:3] if line[:40] not in said]
    if run.trace and run.trace.raised[:30] not in " ".join(parts):
        parts.append(squeeze(run.trace.raised, 130))
    if not run.failing and not run.errors:
        parts += [say("开头：", "Begins: ") + run.begins, say("结尾：", "Ends: ") + run.ends]
    return parts


#: How diagnostics are counted, the gravest first.
_DIAGNOSTICS = {"error": "个错误", "warning": "个警告", "note": "条说明"}


def _diagnosed(run: Run, say: Voice) -> str:
    counted = [
        (run.diagnostics[kind], kind, zh) for kind, zh in _DIAGNOSTICS.items() if run.diagnostics[kind]
    ]
    told = say("、", ", ").join(say(f"{n:,} {zh}", _plural(n, kind)) for n, kind, zh in counted)
    return say(f"{run.files:,} 个文件中 {told}", f"{told} in {_plural(run.files, 'file')}")


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _joined(lines: Sequence[str], some: slice, max_chars: int) -> str:
    """Some of the lines that say anything, on one line."""
    told = [line for line in (" ".join(line[:_LINE_CHARS].split()).strip("=- ") for line in lines) if line]
    return squeeze(" | ".join(told[some]), max_chars)


def _worth_reading(lines: Sequence[str]) -> list[str]:
    cut = (line[:_LINE_CHARS].rstrip() for line in lines)
    return [line for line in cut if any(map(line.casefold().__contains__, _WORTH))]


def _counted(lines: Sequence[str]) -> list[str]:
    """The numbers of a run that counts nothing itself: of `go test`, and of TAP."""
    marks = Counter(match[1] or match[2] for line in lines if (match := _ONE_TEST.match(line)))
    bad, good = marks["FAIL"] + marks["not ok"], marks["PASS"] + marks["ok"]
    return (
        [f"FAIL: {bad:,} failed, {good:,} passed"] if bad else [f"PASS: {good:,} passed"] if good > 1 else []
    )


def _outcomes(lines: Sequence[str]) -> list[str]:
    """The last lines that count, at most two of a kind: those of tests, else of checks, then of builds."""
    found: list[str] = []
    for name, patterns in _OUTCOMES.items():
        if name in ("checks", "others") and found:
            continue
        told = list(dict.fromkeys(_first(patterns, lines)))
        bad = [
            one
            for one in told
            if re.search(r"(?i)fail(?!\w*[=:] ?0\b)|(?<!\b0 )error|unreachable=[1-9]|失败|错误", one)
        ]
        found += told if len(told) <= 2 else (bad or told)[-2:]
    return [squeeze(one.strip("= "), 120) for one in found]


def _errors(lines: Sequence[str]) -> list[str]:
    """The first error lines, the most informative kind first."""
    for pattern in _ERRORS:
        found = [match[1].strip() for line in lines if (match := pattern.match(line))]
        if found:
            return list(dict.fromkeys(found))[:3]
    return []


def _first(patterns: Sequence[re.Pattern[str]], lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        for pattern in patterns:
            if match := pattern.match(line):
                yield match[1].strip()
                break
