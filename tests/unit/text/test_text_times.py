"""The times a question names, seen from a day."""

from datetime import date

import pytest

from pagefile.text.times import Period, periods

#: A Wednesday.
TODAY = date(2025, 6, 18)


def days(first: str, last: str | None = None) -> list[Period]:
    return [Period(date.fromisoformat(first), date.fromisoformat(last or first))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-03-05", days("2025-03-05")),
        ("on 2025/3/5", days("2025-03-05")),
        ("2025年3月", days("2025-03-01", "2025-03-31")),
        ("7月份", days("2024-07-01", "2024-07-31")),
        ("1月中旬", days("2025-01-11", "2025-01-20")),
        ("二月底", days("2025-02-21", "2025-02-28")),
        ("4月5日晚上", days("2025-04-05")),
        ("十二月二十三号", days("2024-12-23")),
        ("去年12月", days("2024-12-01", "2024-12-31")),
        ("前年", days("2023-01-01", "2023-12-31")),
        ("2023年", days("2023-01-01", "2023-12-31")),
        ("第一季度", days("2025-01-01", "2025-03-31")),
        ("昨天", days("2025-06-17")),
        ("前天", days("2025-06-16")),
        ("三天前", days("2025-06-15")),
        ("十天前", days("2025-06-07", "2025-06-09")),
        ("三周前", days("2025-05-25", "2025-05-31")),
        ("两个月前", days("2025-04-03", "2025-05-03")),
        ("3年前", days("2022-01-01", "2022-12-31")),
        ("上周", days("2025-06-09", "2025-06-15")),
        ("上周三", days("2025-06-11")),
        ("上上周日", days("2025-06-08")),
        ("上个星期天", days("2025-06-15")),
        ("这周末", days("2025-06-21", "2025-06-22")),
        ("上个月", days("2025-05-01", "2025-05-31")),
        ("本月", days("2025-06-01", "2025-06-30")),
        ("on 5 May, 2023", days("2023-05-05")),
        ("on the 5th of May", days("2025-05-05")),
        ("Oct 3rd", days("2024-10-03")),
        ("May 5, 2023", days("2023-05-05")),
        ("in May 2023", days("2023-05-01", "2023-05-31")),
        ("last May", days("2025-05-01", "2025-05-31")),
        ("last June", days("2024-06-01", "2024-06-30")),
        ("in december", days("2024-12-01", "2024-12-31")),
        ("last summer", days("2024-06-01", "2024-08-31")),
        ("the winter of 2022", days("2022-12-01", "2023-02-28")),
        ("in 2022?", days("2022-01-01", "2022-12-31")),
        ("three weeks ago", days("2025-05-25", "2025-05-31")),
        ("a couple of days ago", days("2025-06-16")),
        ("yesterday", days("2025-06-17")),
        ("last weekend", days("2025-06-14", "2025-06-15")),
        ("this week", days("2025-06-16", "2025-06-22")),
        ("last Friday", days("2025-06-13")),
        ("last Wednesday", days("2025-06-11")),
        ("last month", days("2025-05-01", "2025-05-31")),
        ("last year", days("2024-01-01", "2024-12-31")),
    ],
)
def test_a_time_is_understood(text: str, expected: list[Period]):
    """In both languages, by the calendar or counted back."""
    assert expected == periods(text, TODAY)[0]


@pytest.mark.parametrize(
    "text",
    [
        "I may march on",
        "2月30日",
        "15月",
        "room 2022-13",
        "it costs $2024",
        "how many days ago",
        "版本 2.2024",
        "三百",
        "目前天气",
        "以前年轻",
        "晚上月亮",
        "9000 years of 2500 times",
        "3000年前",
        "",
    ],
)
def test_what_is_no_time_stays_a_word(text: str):
    """Words that only look like a time are left alone, and so are days that never were."""
    assert ([], text) == periods(text, TODAY)


def test_the_rest_of_the_question():
    """What named the time is gone, the rest is what is asked."""
    found, rest = periods("2025年3月，我和小王聊了什么？", TODAY)
    assert (1, "，我和小王聊了什么？") == (len(found), rest.strip())
    found, rest = periods("Where was I in May 2024 and last week?", TODAY)
    assert 2 == len(found)
    assert "Where was I in and ?" == " ".join(rest.split())


def test_the_29th_of_february_is_found_or_left():
    """Without a year it is this year's or none; nothing is raised."""
    assert days("2024-02-29") == periods("2月29日", date(2024, 3, 1))[0]
    assert [] == periods("2月29日", TODAY)[0]


@pytest.mark.parametrize(
    ("text", "rough"),
    [
        ("last Saturday", True),
        ("a week ago", True),
        ("上周", True),
        ("昨天", True),
        ("May 3rd", False),
        ("3月中旬", False),
        ("in 2024", False),
    ],
)
def test_what_is_counted_back_is_rough(text, rough):
    """A date is named; "a week ago" is said from memory."""
    (found,), _ = periods(text, TODAY)
    assert found.rough is rough
