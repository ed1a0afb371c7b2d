"""Which period a question refers to: 上周, "last May", "three weeks ago", 3月中旬, 国庆节前, "since Monday", 2025-03-05.

Questions to a memory look back: what is named without a year is the latest that has begun, and what lies ahead
("next Monday") or recurs ("on Mondays") is not a period. "may" is a month only where a month can be. What is
not understood is left to the words. How periods are named is in `times.toml`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache, lru_cache, partial
from typing import NamedTuple, TypeAlias

from pagefile.text.tables import filled, table

_DAY = timedelta(days=1)
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TABLE = table("pagefile.text", "times")
#: "Before Christmas" means about this long.
_SHORTLY = timedelta(days=14)
#: The first day that "before May" may mean.
_EARLIEST = date(1970, 1, 1)
#: The first year of the feasts that follow another calendar.
_MOVING_FROM = 2018
#: Where a period was read, one of these characters is put in its place while the rest is read; texts do not contain them.
_FIRST_MARK, _LAST_MARK = 0xF0000, 0xFFFFD
#: A year in Chinese digits.
_SPELLED = str.maketrans("零〇○一二三四五六七八九", "000123456789")
_SPELLED_YEAR = re.compile(r"[一二][零〇○一二三四五六七八九]{3}(?=年)")
#: Whether words are a period does not depend on the day they are read, if the feasts of its year are known.
_ANY_DAY = date(2024, 6, 15)
#: Messages whose periods are cached: ranking, gate and notes read the same one.
_MESSAGES = 32
#: Years that share their preposition.
_YEARS = re.compile(r"(?i)\b(in|during)((?: (?:19|20)\d\d,?)+) (?:and|or) ((?:19|20)\d\d)\b")


@dataclass(frozen=True, slots=True)
class Period:
    """From the first day to the last, inclusive."""

    first: date
    last: date
    #: Whether it is counted back from a day, as people do from memory: "a week ago" is rarely exactly seven
    #: days.
    rough: bool = field(default=False, compare=False)


_Match: TypeAlias = "re.Match[str]"
_Reader: TypeAlias = Callable[[_Match, date], Period]


class _Read(NamedTuple):
    """A period as it was named; without one if the words only look like it."""

    words: str
    period: Period | None
    feast: bool


def periods(text: str, today: date) -> tuple[list[Period], str]:
    """The periods a text names, relative to a day, and the text without the words that name them."""
    found, rest = _periods(text, today)
    return [*found], rest


def forget_times() -> None:
    _named.cache_clear()
    _periods.cache_clear()


class _Named(NamedTuple):
    """What names a period, and the reader that makes it one."""

    match: _Match
    reader: str

    def period(self, today: date) -> Period | None:
        if self.reader == "other":
            return None
        return replace(_READERS[self.reader](self.match, today), rough=self.reader in _ROUGH)


@lru_cache(_MESSAGES)
def _named(text: str) -> tuple[str, Mapping[str, _Named]]:
    """A text with a sign in place of whatever names a period, and what the signs are for.

    It takes a hundred patterns, and does not depend on the day.
    """
    if not _hint().search(text):
        return text, {}
    text = _SPELLED_YEAR.sub(lambda year: year[0].translate(_SPELLED), _MARK.sub(" ", text))
    for form, usual in _usual():
        text = form.sub(usual, text)
    text = _YEARS.sub(_each_year, text)
    found: dict[str, _Named] = {}

    def mark(match: _Match, reader: str) -> str:
        one = _Named(match, reader)
        with suppress(ValueError, OverflowError):  # the 31st of February, the year 0
            one.period(_ANY_DAY)
            if len(found) <= _LAST_MARK - _FIRST_MARK:
                found[sign := chr(_FIRST_MARK + len(found))] = one
                return sign
        return match.group()

    for pattern, name in _compiled("patterns"):
        text = pattern.sub(partial(mark, reader=name), text)
    return text, found


@lru_cache(_MESSAGES)
def _periods(given: str, today: date) -> tuple[Sequence[Period], str]:
    text, signs = _named(given)
    if not signs:
        return [], _MARK.sub(" ", given)
    read = {sign: _read(one, today) for sign, one in signs.items()}

    def related(match: _Match, name: str) -> str:
        ends = [read[sign] for sign in match.groupdict().values()]
        period = _related(name, ends, today)
        if period is None or len(read) > _LAST_MARK - _FIRST_MARK:
            return match.group()
        read[sign := chr(_FIRST_MARK + len(read))] = _Read(match.group(), period, feast=False)
        return sign

    for pattern, name in _compiled("relations"):
        text = pattern.sub(partial(related, name=name), text)
    found = [read[sign].period for sign in _MARK.findall(text)]
    return [one for one in found if one is not None], _MARK.sub(lambda sign: _left(read[sign[0]]), text)


def _read(one: _Named, today: date) -> _Read:
    try:
        period = one.period(today)
    except (ValueError, OverflowError):  # before the year 1
        period = None
    return _Read(one.match.group(), period, feast=one.reader == "feast")


@cache
def _hint() -> re.Pattern[str]:
    return re.compile(_TABLE["hint"])


def _each_year(years: _Match) -> str:
    """Years that share their preposition, each with its own."""
    return " and ".join(f"{years[1]} {year}" for year in re.findall(r"\d{4}", years[0]))


def _left(read: _Read) -> str:
    """What remains of the words that name a period, or only look like it."""
    return read.words if read.period is None else " "


def _related(name: str, ends: Sequence[_Read], today: date) -> Period | None:
    """The period from one to another, or up to or from one; None if there is no such."""
    known = [end.period for end in ends if end.period is not None]
    if len(known) < len(ends):
        return None
    a, b = known[0], known[-1]
    short = name == "shortly_before" or ends[0].feast
    first, last = {
        "between": (a.first, b.last),
        "since": (a.first, today),
        "before": (a.first - _SHORTLY if short else _EARLIEST, a.first - _DAY),
        "shortly_before": (a.first - _SHORTLY, a.first - _DAY),
        "after": (a.last + _DAY, a.last + _SHORTLY if short else today),
    }[name]
    return Period(first, last, rough=a.rough or b.rough) if first <= last else None


# -- numbers and calendars ---------------------------------------------------------------------------------------------


def _number(word: str) -> int:
    """Digits, an English number word, or a Chinese number below a hundred."""
    if word.isdecimal():
        return int(word)
    if word.lower() in _TABLE["numbers"]:
        return _TABLE["numbers"][word.lower()]
    digits = _TABLE["digits"]
    tens, ten, ones = word.rpartition("十")
    return (digits.get(tens, 1) * 10 if ten else 0) + digits.get(ones, 0)


def _counts(word: str) -> tuple[int, int]:
    """The least and the most that a number may mean: "a few" and 两三 leave it open."""
    if vague := _TABLE["vague"].get(word.lower()):
        return vague[0], vague[1]
    if len(word) == 2 and all(sign in _TABLE["digits"] for sign in word):
        return _number(word[0]), _number(word[1])
    count = _number(word.rstrip("来多几"))
    # 十几 and 二十多 are more than ten and more than twenty, 十来 is about ten.
    return (count + 1, count + 9) if word[-1] in "多几" and count and count % 10 == 0 else (count, count)


def _month_number(word: str) -> int:
    return int(word) if word.isdecimal() else _MONTH_NAMES.index(word[:3].lower()) + 1


def _back(match: _Match) -> int:
    return _TABLE["back"].get(match["which"].lower(), 0)


def _days(first: date, number: int) -> Period:
    return Period(first, first + (number - 1) * _DAY)


def _months(year: int, month: int, number: int = 1) -> Period:
    """Consecutive months; numbers beyond twelve carry over into the next years."""
    first, after = (date(year + (at - 1) // 12, (at - 1) % 12 + 1, 1) for at in (month, month + number))
    return Period(first, after - _DAY)


def _month(year: int, month: int) -> Period:
    if not 1 <= month <= 12:
        raise ValueError(month)
    return _months(year, month)


def _months_before(day: date, number: int) -> date:
    """The same day that many months earlier, or the last one of that month before the 29th."""
    return _months(day.year, day.month - number).first.replace(day=min(day.day, 28))


def _part(month: Period, part: str | None) -> Period:
    if part is None:
        return month
    first, last = _TABLE["month_parts"][part.lower()]
    return Period(month.first.replace(day=first), min(month.last, month.first + (last - 1) * _DAY))


def _given(match: _Match, group: str) -> str | None:
    """A group of a pattern; None if it is not in that pattern or has matched nothing."""
    return match.groupdict().get(group) or None


def _in_year(match: _Match, today: date, made: Callable[[int], Period]) -> Period:
    """Of the year that is named, else the latest that has begun; "last June", said in June, is a year ago."""
    if year := _given(match, "year"):
        return made(int(year))
    if before := _given(match, "before"):
        return made(today.year - "今去前".index(before))
    if _given(match, "which"):
        return made(today.year - _back(match))
    found = made(today.year)
    if found.first > today or ((_given(match, "last") or "").lower() == "last" and found.last >= today):
        return made(today.year - 1)
    return found


# -- named by the calendar ---------------------------------------------------------------------------------------------


def _day(match: _Match, today: date) -> Period:
    month, day = _month_number(match["month"]), int(match["day"])
    until = int(_given(match, "until") or day)
    if "/" in match.group() and not _given(match, "year") and _is_fraction(match):
        raise ValueError(match.group())
    return _in_year(match, today, lambda year: Period(date(year, month, day), date(year, month, until)))


def _is_fraction(match: _Match) -> bool:
    """1/2, 2/3, 3/4 without a word before it that makes it a date."""
    over, under = int(match["month"]), int(match["day"])
    return over < under <= 4 and not re.search(
        r"(?i)\b(?:on|since|from) $", match.string[max(0, match.start() - 8) : match.start()]
    )


def _chinese_date(match: _Match, today: date) -> Period:
    month = _number(match["month"])
    first, last = match["day"] or match["one"], match["until"] or match["one"]

    def made(year: int) -> Period:
        if first:
            return Period(date(year, month, _number(first)), date(year, month, _number(last)))
        return _part(_month(year, month), match["part"])

    return _in_year(match, today, made)


def _english_month(match: _Match, today: date) -> Period:
    whole = _in_year(match, today, lambda year: _month(year, _month_number(match["month"])))
    return _part(whole, _given(match, "part"))


def _season(match: _Match, today: date) -> Period:
    month = _TABLE["seasons"][match["season"].lower()]
    return _in_year(match, today, lambda year: _months(year, month, 3))


def _half(match: _Match, today: date) -> Period:
    month = 1 if match["half"].lower() in {"上", "first"} else 7
    return _in_year(match, today, lambda year: _months(year, month, 6))


def _quarter(match: _Match, today: date) -> Period:
    return _in_year(match, today, lambda year: _months(year, 3 * _number(match["number"]) - 2, 3))


def _part_of_year(match: _Match, today: date) -> Period:
    return _in_year(match, today, lambda year: _months(year, _TABLE["year_parts"][match["part"].lower()]))


def _feast(match: _Match, today: date) -> Period:
    day, before, after = _TABLE["feasts"][match["feast"].lower()]

    def made(year: int) -> Period:
        moving = _TABLE["moving"].get(day, "").split()
        if moving and not 0 <= year - _MOVING_FROM < len(moving):
            raise ValueError(year)
        there = date.fromisoformat(f"{year}-{moving[year - _MOVING_FROM] if moving else day}")
        return Period(there + before * _DAY, there + after * _DAY)

    return _in_year(match, today, made)


def _day_of_month(match: _Match, today: date) -> Period:
    """The latest such day that has begun."""
    day = _number(match["day"])
    months = (_months(today.year, today.month - back) for back in range(3))
    last = next(month for month in months if month.last.day >= day and month.first.replace(day=day) <= today)
    return _days(last.first.replace(day=day), 1)


def _part_of_month(match: _Match, today: date) -> Period:
    """The latest such part that has begun."""
    found = _part(_months(today.year, today.month), match["part"])
    return found if found.first <= today else _part(_months(today.year, today.month - 1), match["part"])


# -- counted back from today -------------------------------------------------------------------------------------------


def _ago(match: _Match, today: date) -> Period:
    """A point in the past, give or take half of the unit: "two months ago" is not meant to the day."""
    unit = match["unit"].removeprefix("个")[0].lower()
    if re.match(r"half|半$", match["count"], re.IGNORECASE):
        return _half_ago(unit, today)
    least, most = _counts(match["count"])
    point = partial(_point, unit=unit, today=today)
    return Period(point(most).first, point(least).last)


def _half_ago(unit: str, today: date) -> Period:
    if unit in "y年":
        return _months(today.year, today.month - 6)
    return _point(15 if unit in "m月" else 0, "d", today)


def _point(count: int, unit: str, today: date) -> Period:
    if unit in "h分小钟" or (unit == "m" and not count):
        return _days(today, 1)
    if unit in "dn天日":
        there = today - count * _DAY
        return _days(there, 1) if count < 4 else _days(there - _DAY, 3)
    if unit in "wf周星礼":
        weeks = 2 * count if unit == "f" else count
        return _days(today - (7 * weeks + 3) * _DAY, 7)
    if unit in "m月":
        return _days(_months_before(today, count) - 15 * _DAY, 31)
    return _months(today.year - count, 1, 12)


def _until_now(match: _Match, today: date) -> Period:
    """The last N days including today, or from the same day N weeks, months or years ago."""
    unit, word = match["unit"].removeprefix("个")[0].lower(), match["count"]
    count = max(_counts(word)) if word else 1
    if unit in "h小":
        return Period(today - -(-count // 24) * _DAY, today)
    if unit in "dn天日":
        return Period(today - (count - 1) * _DAY, today)
    if unit in "wf周星礼":
        return Period(today - (14 if unit == "f" else 7) * count * _DAY, today)
    months = count if unit in "m月" else 12 * count
    if word == "半":
        months = 6 if unit == "年" else 0
    return Period(_months_before(today, months) if months else today - 15 * _DAY, today)


def _days_before(match: _Match, today: date) -> Period:
    """前两天, 前几周: up to yesterday."""
    count = max(_counts(match["count"] or "几"))
    whole = {"天": count, "日": count, "周": 7 * count, "星": 7 * count, "月": 31 * count, "年": 366 * count}
    return Period(today - whole[match["unit"].removeprefix("个")[0]] * _DAY, today - _DAY)


def _near_quarter(match: _Match, today: date) -> Period:
    return _months(today.year, 3 * ((today.month - 1) // 3 - _back(match)) + 1, 3)


def _near_month(match: _Match, today: date) -> Period:
    month = _months(today.year, today.month - _back(match))
    if day := _given(match, "day"):
        return _days(month.first.replace(day=_number(day)), 1)
    return _part(month, _given(match, "part"))


def _week(match: _Match, today: date) -> Period:
    back = _back(match) if match["which"] else 1  # "over the weekend"
    first = today - (today.weekday() + 7 * back) * _DAY
    if day := _given(match, "day"):
        return _days(first + min("一二三四五六日天".index(day), 6) * _DAY, 1)
    if weekday := _given(match, "weekday"):
        return _days(first + _WEEKDAYS.index(weekday[:3].lower()) * _DAY, 1)
    return _days(first + 5 * _DAY, 2) if _given(match, "end") else _days(first, 7)


def _weekday(match: _Match, today: date) -> Period:
    """The latest such day, or one before; "last Wednesday", said on a Wednesday or a Thursday, is that of last week."""
    day = match["day"]
    number = min("一二三四五六日天".index(day), 6) if len(day) == 1 else _WEEKDAYS.index(day[:3].lower())
    earlier = bool(_given(match, "earlier"))
    weeks = _number(named) - 1 if (named := _given(match, "number")) else int(earlier)
    back = (today.weekday() - number) % 7
    # Who means yesterday says so.
    near = 1 if _given(match, "last") else 0 if earlier or named else -1
    return _days(today - (back + 7 * (weeks + (back <= near))) * _DAY, 1)


_NAMED: dict[str, _Reader] = {
    "day": _day,
    "month": lambda m, _: _month(int(m["year"]), int(m["month"])),
    "chinese_date": _chinese_date,
    "english_month": _english_month,
    "season": _season,
    "half": _half,
    "quarter": _quarter,
    "part_of_year": _part_of_year,
    "feast": _feast,
    "day_of_month": _day_of_month,
    "part_of_month": _part_of_month,
    "year": lambda m, _: _months(int(m["year"]), 1, 12),
}
#: Readers of periods counted back from today instead of named.
_ROUGH: dict[str, _Reader] = {
    "ago": _ago,
    "year_ago_today": lambda _, today: _days(_months_before(today, 12), 1),
    "span_until_now": _until_now,
    "days_before": _days_before,
    "near_day": lambda m, today: _days(today - _back(m) * _DAY, 1),
    "week": _week,
    "weekday": _weekday,
    "near_month": _near_month,
    "near_quarter": _near_quarter,
    "near_year": lambda m, today: _months(today.year - _back(m), 1, 12),
}
_READERS = _NAMED | _ROUGH


@cache
def _compiled(kind: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """The patterns of a kind, each with its reader; compiled when the first question is read."""
    parts = _TABLE["parts"]
    rows = _TABLE[kind]
    return tuple((re.compile(filled(form, parts)), row["read"]) for row in rows for form in row["forms"])


@cache
def _usual() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Other ways to write a date, and the usual one."""
    return tuple((re.compile(filled(form, _TABLE["parts"])), usual) for form, usual in _TABLE["usual"])


_MARK = re.compile(_TABLE["parts"]["m"])
