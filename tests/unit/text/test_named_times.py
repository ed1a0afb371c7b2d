"""Ways to name a time, as people write them: `named_times.toml` says which days they mean."""

import tomllib
from datetime import date
from pathlib import Path

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
