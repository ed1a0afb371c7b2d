"""Which period a question refers to: 上周, "last May", "three weeks ago", 3月中旬, 2025-03-05.

Only what can be determined without a calendar of holidays and without guessing: a month without a year is the
latest one that has begun, and "may" is a month only if capitalised. What is not understood is left to the
words. How periods are named is in `times.toml`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from typing import TypeAlias

from pagefile.text.tables import filled, table

_DAY = timedelta(days=1)
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TABLE = table("pagefile.text", "times")


@dataclass(frozen=True, slots=True)
class Period:
    """From the first day to the last, inclusive."""

    first: date
    last: date
    #: Whether it is counted back from a day, as people do from memory: "a week ago" is rarely exactly seven
    #: days.
    rough: bool = field(default=False, compare=False)


def periods(text: str, today: date) -> tuple[list[Period], str]:
    """The periods a text names, relative to a day, and the text without the words that name them."""
    found: list[Period] = []

    def taken(match: re.Match[str], name: str) -> str:
        try:
            read = _ROUGH.get(name) or _NAMED[name]
            found.append(replace(read(match, today), rough=name in _ROUGH))
        except (ValueError, OverflowError):  # the 31st of February, the year 0
            return match.group()
        return " "

    for pattern, name in _READERS:
        text = pattern.sub(partial(taken, name=name), text)
    return found, text


def _number(word: str) -> int:
    """Digits, an English number word, or a Chinese number below a hundred."""
    if word.isdecimal():
        return int(word)
    if word.lower() in _TABLE["numbers"]:
        return _TABLE["numbers"][word.lower()]
    digits = _TABLE["digits"]
    tens, ten, ones = word.rpartition("十")
    return (digits.get(tens, 1) * 10 if ten else 0) + digits.get(ones, 0)


def _month_number(word: str) -> int:
    return int(word) if word.isdecimal() else _MONTH_NAMES.index(word[:3].lower()) + 1


def _back(match: re.Match[str]) -> int:
    return _TABLE["back"].get(match["which"].lower(), 0)


def _days(first: date, number: int) -> Period:
    return Period(first, first + (number - 1) * _DAY)


def _months(year: int, month: int, number: int = 1) -> Period:
    """Consecutive months; numbers beyond twelve carry over into the next years."""
    first, after = (date(year + (at - 1) // 12, (at - 1) % 12 + 1, 1) for at in (month, month + number))
    return Period(first, after - _DAY)


def _latest_month(year: str | None, month: int, today: date) -> Period:
    """A month of a year, or the last such month that has begun."""
    if not 1 <= month <= 12:
        raise ValueError(month)
    return _months(int(year) if year else today.year - (month > today.month), month)


def _latest_day(year: str | None, month: int, day: int, today: date) -> Period:
    """A day of a year, or the last such day that has begun."""
    there = date(int(year) if year else today.year, month, day)
    if not year and there > today:
        there = date(today.year - 1, month, day)
    return _days(there, 1)


def _chinese_date(match: re.Match[str], today: date) -> Period:
    year, month, part = match["year"], _number(match["month"]), match["part"]
    if match["before"]:
        year = str(today.year - "今去前".index(match["before"]))
    if match["day"]:
        return _latest_day(year, month, _number(match["day"]), today)
    whole = _latest_month(year, month, today)
    if part is None:
        return whole
    first, last = _TABLE["month_parts"][part]
    return Period(whole.first.replace(day=first), min(whole.last, whole.first + (last - 1) * _DAY))


def _english_month(match: re.Match[str], today: date) -> Period:
    """A month by name; "last June", said in June, is a year ago."""
    whole = _latest_month(match["year"], _month_number(match["month"]), today)
    if match["last"] and not match["year"] and whole.first == today.replace(day=1):
        whole = _months(whole.first.year - 1, whole.first.month)
    return whole


def _season(match: re.Match[str], today: date) -> Period:
    month = _TABLE["seasons"][match["season"].lower()]
    if match["year"]:
        return _months(int(match["year"]), month, 3)
    found = _months(today.year - (date(today.year, month, 1) > today), month, 3)
    if match["last"] and found.last >= today:
        found = _months(found.first.year - 1, month, 3)
    return found


def _ago(match: re.Match[str], today: date) -> Period:
    """A point in the past, give or take half of the unit: "two months ago" is not meant to the day."""
    count, unit = _number(match["count"]), match["unit"][0].lower()
    if unit in "d天日":
        there = today - count * _DAY
        return _days(there, 1) if count < 4 else _days(there - _DAY, 3)
    if unit in "w周星礼":
        return _days(today - (7 * count + 3) * _DAY, 7)
    if unit in "m个月":
        there = _months(today.year, today.month - count).first + (min(today.day, 28) - 1) * _DAY
        return _days(there - 15 * _DAY, 31)
    return _months(today.year - count, 1, 12)


def _week(match: re.Match[str], today: date) -> Period:
    first = today - (today.weekday() + 7 * _back(match)) * _DAY
    if match["day"]:
        return _days(first + min("一二三四五六日天".index(match["day"]), 6) * _DAY, 1)
    return _days(first + 5 * _DAY, 2) if match["end"] else _days(first, 7)


def _weekday(match: re.Match[str], today: date) -> Period:
    back = (today.weekday() - _WEEKDAYS.index(match["day"][:3].lower())) % 7 or 7
    return _days(today - back * _DAY, 1)


_Reader: TypeAlias = Callable[[re.Match[str], date], Period]
_NAMED: dict[str, _Reader] = {
    "day": lambda m, today: _latest_day(m["year"], _month_number(m["month"]), int(m["day"]), today),
    "chinese_date": _chinese_date,
    "english_month": _english_month,
    "season": _season,
    "quarter": lambda m, today: _months(int(m["year"] or today.year), 3 * _number(m["number"]) - 2, 3),
    "year": lambda m, today: _months(int(m["year"]), 1, 12),
}
#: Readers of periods counted back from today instead of named.
_ROUGH: dict[str, _Reader] = {
    "ago": _ago,
    "near_day": lambda m, today: _days(today - _back(m) * _DAY, 1),
    "week": _week,
    "weekday": _weekday,
    "near_month": lambda m, today: _months(today.year, today.month - _back(m)),
    "near_year": lambda m, today: _months(today.year - _back(m), 1, 12),
}
_READERS = tuple((re.compile(filled(pattern, _TABLE["parts"])), name) for name, pattern in _TABLE["periods"])
