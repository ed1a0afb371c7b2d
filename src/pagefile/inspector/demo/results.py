"""Made-up results of the demo's tools: tables, logs, web pages and papers of any length."""

import json
from collections.abc import Callable, Iterator, Mapping

from pagefile.inspector.demo.data import read
from pagefile.inspector.demo.picks import Picks

_WORDS = read("results")


def paper(seed: int, topic: str, chars: int) -> str:
    """A report with headings, numbers and sources."""
    picks = Picks(seed)
    lines = [f"# {topic.capitalize()}", "", f"Source: https://example.org/reports/{seed}", ""]
    size = 0
    while size < chars:
        lines += [f"## {picks.one(_WORDS['headings'])} {picks.number(1, 9)}.{picks.number(1, 9)}", ""]
        for _ in range(picks.number(2, 4)):
            text = " ".join(_finding(picks) for _ in range(picks.number(3, 6)))
            lines += [text, ""]
            size += len(text)
    return "\n".join(lines)


def _finding(picks: Picks) -> str:
    number = picks.number(40, 9000)
    return picks.one(_WORDS["findings"]).format(
        site=picks.one(_WORDS["sites"]),
        subject=picks.one(_WORDS["subjects"]),
        number=number,
        less=number * picks.number(40, 90) // 100,
        percent=picks.number(2, 48),
        weeks=picks.number(2, 60),
        years=picks.number(1, 9),
        table=picks.number(1, 14),
    )


def hits(seed: int, topic: str, chars: int) -> str:
    """Web search results as JSON."""
    picks = Picks(seed)
    found: list[dict[str, object]] = []
    size = 0
    while size < chars:
        text = " ".join(_finding(picks) for _ in range(5))
        number = len(found) + 1
        url = f"https://example.org/{picks.one(_WORDS['sites']).lower()}/{picks.number(100, 999)}"
        found.append({"rank": number, "title": f"{topic}, part {number}", "url": url, "snippet": text})
        size += len(text)
    return json.dumps({"query": topic, "results": found}, indent=1)


def orders(seed: int, chars: int) -> str:
    """An export of orders as CSV."""
    picks = Picks(seed)

    def row() -> str:
        day = f"2026-{picks.number(1, 6):02}-{picks.number(1, 28):02}"
        cents = picks.number(1990, 329_900)
        return ",".join(
            (
                picks.code(),
                day,
                picks.one(_WORDS["products"]),
                picks.one(_WORDS["cities"]),
                f"{cents / 100:.2f}",
                picks.one(_WORDS["states"]),
            )
        )

    return _lines("order,date,product,city,amount,state", row, chars)


def order(seed: int, code: str) -> str:
    """One order as JSON."""
    picks = Picks(seed)
    value = {
        "order": code,
        "product": picks.one(_WORDS["products"]),
        "city": picks.one(_WORDS["cities"]),
        "amount": picks.number(1990, 329_900) / 100,
        "state": picks.one(_WORDS["states"]),
        "history": [{"day": day, "state": picks.one(_WORDS["states"])} for day in range(1, 6)],
    }
    return json.dumps(value, indent=1)


def log(seed: int, chars: int) -> str:
    """A service's log."""
    picks = Picks(seed)
    clock = [0]

    def row() -> str:
        clock[0] += picks.number(1, 40)
        at = f"2026-05-{4 + clock[0] // 86_400:02} {clock[0] // 3600 % 24:02}:{clock[0] // 60 % 60:02}:{clock[0] % 60:02}"
        level = "ERROR" if picks.number(0, 30) == 0 else picks.one(("INFO", "INFO", "DEBUG", "WARN"))
        event = picks.one(_WORDS["events"]).format(
            number=picks.number(3, 900), small=picks.number(2, 5), code=picks.code("IJ")
        )
        return f"{at} {level:<5} {picks.one(_WORDS['modules'])}: {event}"

    return _lines("", row, chars).lstrip("\n")


def tests(seed: int, failing: int, chars: int) -> str:
    """The output of a test run."""
    picks = Picks(seed)
    count = [0]

    def row() -> str:
        count[0] += 1
        state = "FAILED" if count[0] % 37 == 0 and count[0] // 37 <= failing else "PASSED"
        module = picks.one(_WORDS["modules"]).replace(".", "/")
        return f"tests/{module}_test.py::test_{picks.one(('rounds', 'refuses', 'keeps', 'retries'))}_{count[0]} {state}"

    body = _lines("collected 640 items", row, chars)
    detail = "\n".join(
        f"E   AssertionError: expected {picks.number(10, 99)}.{picks.number(10, 99)}, got {picks.number(10, 99)}.00"
        for _ in range(failing)
    )
    return f"{body}\n{detail}\n{failing} failed, {count[0] - failing} passed"


def source(seed: int, path: str, chars: int) -> str:
    """A source file."""
    picks = Picks(seed)
    verbs, nouns = (
        ("load", "check", "round", "merge", "post", "apply"),
        ("invoice", "tax", "ledger", "rate", "batch"),
    )

    def function() -> str:
        name, what = f"{picks.one(verbs)}_{picks.one(nouns)}_{picks.number(1, 99)}", picks.one(nouns)
        return "\n".join(
            (
                f"def {name}({what}: Decimal, *, places: int = {picks.number(0, 4)}) -> Decimal:",
                f'    """{picks.one(verbs).title()} the {what} and say how far it was off."""',
                f"    rate = RATES[{picks.number(1, 40)}]",
                f"    if {what} < {picks.number(1, 900)}:",
                f"        return {what}.quantize(rate)",
                f"    return ({what} * rate).quantize(Decimal(10) ** -places)",
                "",
                "",
            )
        )

    return _lines(f"# {path}\nfrom decimal import Decimal\n", function, chars)


def lab_report(seed: int, chars: int) -> str:
    """A laboratory report in Chinese: tables and remarks."""
    picks = Picks(seed)

    def section() -> str:
        day = f"2026-{picks.number(1, 6):02}-{picks.number(1, 28):02}"
        rows = [f"## 检验日期 {day}", "", "| 项目 | 结果 | 单位 | 参考区间 |", "|---|---|---|---|"]
        for item, unit, low, high in _WORDS["items"]:
            value = picks.number(low * 8 // 10, high * 12 // 10) / 10
            rows.append(f"| {item} | {value} | {unit} | {low / 10}–{high / 10} |")
        remark = picks.one(_WORDS["remarks"]).format(
            item=picks.one(_WORDS["items"])[0],
            way=picks.one(("升高", "下降", "持平")),
            weeks=picks.number(2, 12),
        )
        return "\n".join([*rows, "", f"审核意见：{remark}", ""])

    return _lines("# 检验报告汇总", section, chars)


def trains(seed: int, place: str, chars: int) -> str:
    """Train connections and hotels, in two languages."""
    picks = Picks(seed)

    def row() -> str:
        hour, minute = picks.number(6, 21), picks.number(0, 59)
        return (
            f"G{picks.number(100, 999)} {place} {hour:02}:{minute:02} → {picks.one(('杭州东', '苏州', '南京南', '绍兴北'))} "
            f"{hour + 1:02}:{picks.number(0, 59):02} ¥{picks.number(73, 480)} 余票 {picks.number(0, 40)} "
            f"hotel {picks.one(('西湖', 'Canal', '拙政园', 'Lake'))} {picks.number(200, 1200)} CNY"
        )

    return _lines(f"{place}: connections 车次与酒店", row, chars)


def _lines(head: str, row: Callable[[], str], chars: int) -> str:
    return "\n".join([head, *_until(row, chars)])


def _until(row: Callable[[], str], chars: int) -> Iterator[str]:
    size = 0
    while size < chars:
        line = row()
        size += len(line)
        yield line


#: By the name used in the data.
RESULTS: Mapping[str, Callable[..., str]] = {
    made.__name__: made for made in (paper, hits, orders, order, log, tests, source, lab_report, trains)
}
