"""Ways to name a time, as people write them: `named_times.toml` says which days they mean."""

import tomllib
from datetime import date, timedelta
from pathlib import Path

import pytest

from pagefile.text.times import Period, periods

TABLE = tomllib.loads(Path(__file__).with_name("named_times.toml").read_text("utf-8"))
#: A Wednesday.
TODAY = date(2026, 6, 17)


def rows(kind):
    return [
        (text, *map(date.fromisoformat, (days[0], days[-1])))
        for language in TABLE.values()
        for text, *days in language[kind]
    ]


def test_the_table_is_large_enough():
    """At least 75 times in each language, and 40 sentences that name none."""
    for language in TABLE.values():
        assert len(language["exact"]) + len(language["about"]) >= 75
    assert sum(len(language["none"]) for language in TABLE.values()) >= 40
    assert all(first <= last for _, first, last in (*rows("exact"), *rows("about")))


@pytest.mark.parametrize(("text", "first", "last"), rows("exact"))
def test_a_time_is_read(text, first, last):
    """As the days that people mean by it."""
    assert [Period(first, last)] == periods(text, TODAY)[0]


@pytest.mark.parametrize(("text", "first", "last"), rows("about"))
def test_a_time_said_from_memory_is_read_with_room(text, first, last):
    """It holds the days that are meant, and at most four weeks more."""
    (found,), _ = periods(text, TODAY)
    assert found.first <= first <= last <= found.last
    assert (found.last - found.first) - (last - first) <= timedelta(weeks=4)


@pytest.mark.parametrize("text", [text for language in TABLE.values() for text in language["none"]])
def test_what_names_no_past_time_stays_as_it_is(text):
    """Names, fractions, habits and the future are left to the words."""
    assert ([], text) == periods(text, TODAY)


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("What did I do in 2023 and 2024?", (2023, 2024)),
        ("Where was I in 2021, 2022 or 2024?", (2021, 2022, 2024)),
        ("2023年和2024年我去了哪里", (2023, 2024)),
        ("2022、2023和2024年我去了哪里", (2022, 2023, 2024)),
    ],
)
def test_years_that_share_a_word_are_each_read(text, years):
    """Every one is a period of its own."""
    assert [Period(date(year, 1, 1), date(year, 12, 31)) for year in years] == periods(text, TODAY)[0]


def test_dozens_of_days_are_not_ten():
    """几十天 is anything from twenty on."""
    (found,), _ = periods("几十天前我怎么了", TODAY)
    assert found.first <= TODAY - timedelta(days=60) < TODAY - timedelta(days=20) <= found.last
