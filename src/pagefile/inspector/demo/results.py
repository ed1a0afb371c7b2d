"""Made-up results of the demo's tools: tables, logs, web pages and papers of any length, by deterministic choices from data files."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from pagefile.text.tables import table

T = TypeVar("T")
#: A table of the data.
Data: TypeAlias = Mapping[str, Any]


read = partial(table, "pagefile.inspector.demo")


class Picks:
    """Makes pseudo-random choices: the same seed gives the same ones on every machine and Python version."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._state = seed * 2_654_435_761 % 2**32 or 1

    def number(self, least: int, most: int) -> int:
        """A whole number, both ends included."""
        self._state = (1_664_525 * self._state + 1_013_904_223) % 2**32
        return least + (self._state >> 8) % (most - least + 1)

    def one(self, options: Sequence[T]) -> T:
        return options[self.number(0, len(options) - 1)]

    def slots(self, kinds: Data, lists: Data | None = None) -> dict[str, Any]:
        """A value for each placeholder: one of several texts, in place or of a named list, or a number in a range."""
        slots: dict[str, Any] = {}
        for name, kind in kinds.items():
            match kind:
                case {"code": letters}:
                    slots[name] = f"{self.one(letters)}-{self.number(1000, 9999)}"
                case {"hex": [least, most]}:
                    slots[name] = f"{self.number(least, most):x}"
                case {"tenths": [least, most], "below": other}:
                    slots[name] = round(slots[other] - self.number(least, most) / 10, 1)
                case {"tenths": [least, most]}:
                    slots[name] = self.number(least, most) / 10
                case {"hundredths": [least, most]}:
                    slots[name] = self.number(least, most) / 100
                case {"one_more_than": other}:
                    slots[name] = slots[other] + 1
                case [int(least), int(most)]:
                    slots[name] = self.number(least, most)
                case str():
                    slots[name] = self.one((lists or {})[kind])
                case _:
                    slots[name] = self.one(kind)
        return slots


_WORDS = read("results")


def _paper(picks: Picks, topic: str, chars: int) -> str:
    lines = [f"# {topic.capitalize()}", "", f"Source: https://example.org/reports/{picks.seed}", ""]
    size = 0
    while size < chars:
        lines += [f"## {picks.one(_WORDS['headings'])} {picks.number(1, 9)}.{picks.number(1, 9)}", ""]
        for _ in range(picks.number(2, 4)):
            text = _findings(picks, picks.number(3, 6))
            lines += [text, ""]
            size += len(text)
    return "\n".join(lines)


def _findings(picks: Picks, count: int) -> str:
    def finding() -> str:
        number, text = picks.number(40, 9000), picks.one(_WORDS["findings"])
        told = {"site": picks.one(_WORDS["sites"]), "subject": picks.one(_WORDS["subjects"])}
        less = number * picks.number(40, 90) // 100
        return text.format(**told, number=number, less=less, **picks.slots(_WORDS["numbers"]))

    return " ".join(finding() for _ in range(count))


def _hits(picks: Picks, topic: str, chars: int) -> str:
    found: list[dict[str, object]] = []
    for rank, text in enumerate(_until(lambda: _findings(picks, 5), chars), 1):
        url = f"https://example.org/{picks.one(_WORDS['sites']).lower()}/{picks.number(100, 999)}"
        found.append({"rank": rank, "title": f"{topic}, part {rank}", "url": url, "snippet": text})
    return json.dumps({"query": topic, "results": found}, indent=1)


def _order(picks: Picks, code: str) -> str:
    value = {"order": code, **picks.slots(_WORDS["order"], _WORDS)}
    value["history"] = [{"day": day, "state": picks.one(_WORDS["states"])} for day in range(1, 6)]
    return json.dumps(value, indent=1)


def _log(picks: Picks, chars: int) -> str:
    seconds = 0

    def row() -> str:
        nonlocal seconds
        seconds += picks.number(1, 40)
        at = f"2026-05-{4 + seconds // 86_400:02} {seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        level = "ERROR" if picks.number(0, 30) == 0 else picks.one(("INFO", "INFO", "DEBUG", "WARN"))
        event = picks.one(_WORDS["events"]).format(**picks.slots(_WORDS["event"]))
        return f"{at} {level:<5} {picks.one(_WORDS['modules'])}: {event}"

    return "\n".join(_until(row, chars))


def _tests(picks: Picks, failing: int, chars: int) -> str:
    count = 0

    def row() -> str:
        nonlocal count
        count += 1
        state = "FAILED" if count % 37 == 0 and count // 37 <= failing else "PASSED"
        module = picks.one(_WORDS["modules"]).replace(".", "/")
        return f"tests/{module}_test.py::test_{picks.one(('rounds', 'refuses', 'keeps', 'retries'))}_{count} {state}"

    def detail() -> str:
        expected, got = f"{picks.number(10, 99)}.{picks.number(10, 99)}", f"{picks.number(10, 99)}.00"
        return f"E   AssertionError: expected {expected}, got {got}"

    lines = ["collected 640 items", *_until(row, chars), *(detail() for _ in range(failing))]
    return "\n".join([*lines, f"{failing} failed, {count - failing} passed"])


def _lab_report(picks: Picks, chars: int) -> str:
    def section() -> str:
        day = f"2026-{picks.number(1, 6):02}-{picks.number(1, 28):02}"
        rows = [f"## 检验日期 {day}", "", "| 项目 | 结果 | 单位 | 参考区间 |", "|---|---|---|---|"]
        for item, unit, low, high in _WORDS["items"]:
            value = picks.number(low * 8 // 10, high * 12 // 10) / 10
            rows.append(f"| {item} | {value} | {unit} | {low / 10}–{high / 10} |")
        remark, item = picks.one(_WORDS["remarks"]), picks.one(_WORDS["items"])[0]
        way, weeks = picks.one(("升高", "下降", "持平")), picks.number(2, 12)
        return "\n".join([*rows, "", f"审核意见：{remark.format(item=item, way=way, weeks=weeks)}", ""])

    return "\n".join(["# 检验报告汇总", *_until(section, chars)])


def _rows(kind: str, picks: Picks, chars: int, **given: str) -> str:
    """Lines of one kind, each drawn from its slots: orders, connections, functions."""
    data = _WORDS[kind]

    def row() -> str:
        return data["row"].format(**given, **picks.slots(data["slots"], _WORDS))

    return "\n".join([data["head"].format(**given), *_until(row, chars)])


def _until(row: Callable[[], str], chars: int) -> Iterator[str]:
    size = 0
    while size < chars:
        line = row()
        size += len(line)
        yield line


#: By the name used in the data; each draws from the picks it is given.
RESULTS: Mapping[str, Callable[..., str]] = {
    "paper": _paper,
    "hits": _hits,
    "order": _order,
    "log": _log,
    "tests": _tests,
    "lab_report": _lab_report,
    **{kind: partial(_rows, kind) for kind in ("orders", "source", "trains")},
}
