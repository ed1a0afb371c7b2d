"""Which period a question refers to: 上周, "last May", "three weeks ago", 3月中旬, 2025-03-05.

Only what can be determined without a calendar of holidays and without guessing: a month without a year is the
latest one that has begun, and "may" is a month only if capitalised. What is not understood is left to the
words.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

_DAY = timedelta(days=1)
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_ENGLISH_NUMBERS = {
    word: number
    for number, words in enumerate(
        (
            "",
            "a an one",
            "two couple",
            "three few",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        )
    )
    for word in words.split()
}
_DIGITS = {digit: number for number, digit in enumerate("〇一二三四五六七八九")} | {"两": 2, "几": 3}
#: The parts of a Chinese month: first and last day, limited by the length of the month.
_PARTS = {
    "初": (1, 10),
    "上旬": (1, 10),
    "中旬": (11, 20),
    "中": (11, 20),
    "下旬": (21, 31),
    "底": (21, 31),
    "末": (21, 31),
}

_LONG_MONTH = "january|february|april|june|july|august|september|october|november|december"
_MONTH = rf"(?:{_LONG_MONTH}|march|may|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.?)"
_BIG = "[一二三四五六七八九十]"
_YEAR = r"(?:19|20)\d\d"
#: 目前天气, 以前年轻, 晚上月亮: what follows these characters belongs to them.
_NOT_BEFORE = "(?<![目之以从早晚])"
_COUNT = rf"\d{{1,3}}|{'|'.join(_ENGLISH_NUMBERS)}"
_WEEKDAY = "(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"


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

    def taken(match: re.Match[str], read: Callable[[re.Match[str], date], Period]) -> str:
        try:
            found.append(replace(read(match, today), rough=read in _ROUGH))
        except (ValueError, OverflowError):  # the 31st of February, the year 0
            return match.group()
        return " "

    for pattern, read in _READERS:
        text = pattern.sub(lambda match, read=read: taken(match, read), text)
    return found, text


def _number(word: str) -> int:
    """Digits, an English number word, or a Chinese number below a hundred."""
    if word.isdecimal():
        return int(word)
    lowered = word.lower()
    if lowered in _ENGLISH_NUMBERS:
        return _ENGLISH_NUMBERS[lowered]
    tens, ten, ones = word.rpartition("十")
    return (_DIGITS.get(tens, 1) * 10 if ten else 0) + _DIGITS.get(ones, 0)


def _month_number(word: str) -> int:
    return _MONTH_NAMES.index(word[:3].lower()) + 1


def _month(year: int, month: int) -> Period:
    """A month; numbers beyond twelve carry over into the next years."""
    years, month = divmod(month - 1, 12)
    after, next_month = divmod(month + 1, 12)
    return Period(date(year + years, month + 1, 1), date(year + years + after, next_month + 1, 1) - _DAY)


def _latest_month(year: str | None, month: int, today: date) -> Period:
    """A month of a year, or the last such month that has begun."""
    if not 1 <= month <= 12:
        raise ValueError(month)
    return _month(int(year) if year else today.year - (month > today.month), month)


def _day(year: str | None, month: int, day: int, today: date) -> Period:
    """A day of a year, or the last such day that has begun."""
    if year:
        there = date(int(year), month, day)
    else:
        there = date(today.year, month, day)
        there = there if there <= today else date(today.year - 1, month, day)
    return Period(there, there)


def _numeric_date(match: re.Match[str], today: date) -> Period:
    return _day(match["year"], int(match["month"]), int(match["day"]), today)


def _chinese_date(match: re.Match[str], today: date) -> Period:
    year, month, day, part = match["year"], _number(match["month"]), match["day"], match["part"]
    if match["before"]:
        year = str(today.year - "今去前".index(match["before"]))
    if day:
        return _day(year, month, _number(day), today)
    whole = _latest_month(year, month, today)
    if part is None:
        return whole
    first, last = _PARTS[part]
    return Period(whole.first.replace(day=first), min(whole.last, whole.first + (last - 1) * _DAY))


def _english_day_first(match: re.Match[str], today: date) -> Period:
    return _day(match["year"], _month_number(match["month"]), int(match["day"]), today)


def _english_month(match: re.Match[str], today: date) -> Period:
    """A month by name; "last June", said in June, is a year ago."""
    whole = _latest_month(match["year"], _month_number(match["month"]), today)
    if match["last"] and not match["year"] and whole.first == today.replace(day=1):
        whole = _month(whole.first.year - 1, whole.first.month)
    return whole


def _season(match: re.Match[str], today: date) -> Period:
    month = _SEASONS[match["season"].lower()]
    year = int(match["year"]) if match["year"] else today.year - (date(today.year, month, 1) > today)
    if match["last"] and not match["year"] and _month(year, month + 2).last >= today:
        year -= 1
    return Period(date(year, month, 1), _month(year, month + 2).last)


def _quarter(match: re.Match[str], today: date) -> Period:
    month = 3 * _number(match["number"]) - 2
    year = int(match["year"]) if match["year"] else today.year
    return Period(date(year, month, 1), _month(year, month + 2).last)


def _year(match: re.Match[str], today: date) -> Period:
    del today
    year = int(match["year"])
    return Period(date(year, 1, 1), date(year, 12, 31))


def _ago(match: re.Match[str], today: date) -> Period:
    """A point in the past, give or take half of the unit: "two months ago" is not meant to the day."""
    count, unit = _number(match["count"]), match["unit"].lower()
    if unit[0] in "d天日":
        there = today - count * _DAY
        return Period(there, there) if count < 4 else Period(there - _DAY, there + _DAY)
    if unit[0] in "w周星礼":
        there = today - 7 * count * _DAY
        return Period(there - 3 * _DAY, there + 3 * _DAY)
    if unit[0] in "m个月":
        there = _month(today.year, today.month - count).first + (min(today.day, 28) - 1) * _DAY
        return Period(there - 15 * _DAY, there + 15 * _DAY)
    there = today.year - count
    return Period(date(there, 1, 1), date(there, 12, 31))


def _near_day(match: re.Match[str], today: date) -> Period:
    back = {"today": 0, "今": 0, "yesterday": 1, "昨": 1, "前": 2, "大前": 3}[match["day"].lower()]
    return Period(today - back * _DAY, today - back * _DAY)


def _week(match: re.Match[str], today: date) -> Period:
    monday = today - today.weekday() * _DAY
    which = match["which"].lower()
    weeks = {"last": 1, "previous": 1, "past": 1, "上": 1, "上上": 2}.get(which, 0)
    first = monday - 7 * weeks * _DAY
    if match["day"]:
        there = first + ("一二三四五六日天".index(match["day"]) % 7 if match["day"] != "天" else 6) * _DAY
        return Period(there, there)
    if (match["end"] or "").lower() in {"end", "末"}:
        return Period(first + 5 * _DAY, first + 6 * _DAY)
    return Period(first, first + 6 * _DAY)


def _weekday(match: re.Match[str], today: date) -> Period:
    back = (today.weekday() - _WEEKDAYS.index(match["day"][:3].lower())) % 7 or 7
    return Period(today - back * _DAY, today - back * _DAY)


def _near_month(match: re.Match[str], today: date) -> Period:
    which = match["which"].lower()
    back = {"last": 1, "previous": 1, "past": 1, "上": 1, "上个": 1, "上上个": 2}.get(which, 0)
    return _month(today.year, today.month - back)


def _near_year(match: re.Match[str], today: date) -> Period:
    which = match["which"].lower()
    year = today.year - {"last": 1, "previous": 1, "past": 1, "去": 1, "前": 2}.get(which, 0)
    return Period(date(year, 1, 1), date(year, 12, 31))


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


#: Readers of periods counted back from today instead of named.
_ROUGH = frozenset({_ago, _near_day, _week, _weekday, _near_month, _near_year})

#: In order of precedence: longer, more specific patterns come first, and what was read is removed for the
#: rest.
_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Period]], ...] = (
    (
        _compiled(rf"(?<!\d)(?P<year>{_YEAR})([-/.])(?P<month>\d{{1,2}})\2(?P<day>\d{{1,2}})(?!\d)"),
        _numeric_date,
    ),
    (
        _compiled(
            rf"(?:(?<!\d)(?P<year>{_YEAR})年|{_NOT_BEFORE}(?P<before>[今去前])年的?)?(?P<month>(?<!\d)\d{{1,2}}|{_BIG}{{1,2}})月"
            rf"(?:(?P<day>\d{{1,2}}|{_BIG}{{1,3}})[日号]|份?(?P<part>初|上旬|中旬|下旬|底|末))?份?"
        ),
        _chinese_date,
    ),
    (
        _compiled(
            rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month>{_MONTH}),?(?: (?P<year>{_YEAR}))?\b"
        ),
        _english_day_first,
    ),
    (
        _compiled(
            rf"\b(?P<month>{_MONTH}) (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,? (?P<year>{_YEAR})\b)?"
        ),
        _english_day_first,
    ),
    (
        re.compile(
            rf"\b(?:(?P<last>[Ll]ast|[Pp]revious) )?(?P<month>(?i:{_LONG_MONTH})|March|May)(?:,? (?:of )?(?P<year>{_YEAR}))?\b"
        ),
        _english_month,
    ),
    (
        _compiled(
            rf"\b(?:(?P<last>last) )?(?P<season>spring|summer|autumn|fall|winter)(?: (?:of |in )?(?P<year>{_YEAR}))\b"
        ),
        _season,
    ),
    (_compiled(r"\b(?P<last>last) (?P<season>spring|summer|autumn|fall|winter)\b(?P<year>)"), _season),
    (_compiled(rf"(?:(?P<year>{_YEAR})年)?第?(?P<number>[一二三四1-4])季度"), _quarter),
    (_compiled(rf"\b(?P<count>{_COUNT}) (?:of )?(?P<unit>days?|weeks?|months?|years?) ago\b"), _ago),
    (
        _compiled(
            rf"(?P<count>(?<!\d)\d{{1,3}}|[{''.join(_DIGITS)}十]{{1,3}})(?P<unit>天|日|周|个?星期|个?礼拜|个月|年)(?:之|以)?前"
        ),
        _ago,
    ),
    (_compiled(r"\b(?P<day>yesterday|today)\b"), _near_day),
    (_compiled(rf"{_NOT_BEFORE}(?P<day>大前|前|昨|今)(?:天|日|晚)"), _near_day),
    (_compiled(r"\b(?P<which>last|previous|past|this) week(?P<end>end)?\b(?P<day>)"), _week),
    (
        _compiled(
            rf"{_NOT_BEFORE}(?P<which>上上|上|本|这)个?(?:周|星期|礼拜)(?:(?P<end>末)|(?P<day>[一二三四五六日天]))?"
        ),
        _week,
    ),
    (_compiled(rf"\blast (?P<day>{_WEEKDAY})\b"), _weekday),
    (_compiled(r"\b(?P<which>last|previous|past|this) month\b"), _near_month),
    (_compiled(rf"{_NOT_BEFORE}(?P<which>上上个|上个?|本|这个)月"), _near_month),
    (_compiled(r"\b(?P<which>last|previous|past|this) year\b"), _near_year),
    (_compiled(rf"{_NOT_BEFORE}(?P<which>[今去前])年"), _near_year),
    (_compiled(rf"(?<![\d.,#$€£¥-])(?P<year>{_YEAR})(?:年|(?![\w-]|[.,]\d))"), _year),
)
