"""Many rows go to PostgreSQL in one statement, where there may be many of them."""

import pytest

from pagefile.stores.postgres.driver import Connection

PLACE = {"tenant": "t", "uuid": "p"}


class Recorder:
    """A connection that keeps what it is asked."""

    def __init__(self):
        self.asked = []

    async def execute(self, query, *args):
        self.asked.append((query, args))
        return "INSERT 0 2"


@pytest.mark.parametrize(
    ("name", "rows", "bound"),
    [
        (
            "passage_put",
            [{**PLACE, "number": 0, "start": 0, "end": 7}, {**PLACE, "number": 1, "start": 7, "end": 9}],
            ("t", "p", [0, 1], [0, 7], [7, 9]),
        ),
        (
            "passage_terms",
            [{**PLACE, "number": 0, "terms": "a b"}, {**PLACE, "number": 1, "terms": "c"}],
            ([0, 1], ["a b", "c"], "t", "p"),
        ),
        (
            "terms_write",
            [
                {"tenant": "t", "conversation": name, "seq": 1, "analyzer": "z", "said": "a", "answered": ""}
                for name in ("c", "d")
            ],
            ("z", ["c", "d"], [1, 1], ["a", "a"], ["", ""], "t"),
        ),
    ],
)
async def test_rows_of_one_kind_are_one_statement(name, rows, bound):
    """What differs between them is bound as lists, what is the same in all of them once."""
    raw = Recorder()
    await Connection(raw).many(name, rows)
    ((query, args),) = raw.asked
    assert "unnest" in query
    assert args == bound


async def test_no_rows_are_no_statement():
    """There is nothing to ask."""
    raw = Recorder()
    await Connection(raw).many("terms_write", [])
    assert raw.asked == []
