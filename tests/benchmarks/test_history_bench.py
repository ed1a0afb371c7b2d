"""`pagefile bench history` counts real prompts, and its calculator says what it assumes."""

import json

import pytest

from benchmarks import history
from benchmarks.history_costs import CLAIMS, FULL, HYBRID, RECENT, SUMMARY, WAYS, Sizes, Traffic
from benchmarks.history_script import FACTS, small_talk, with_facts
from pagefile.text.tokens import open_counter

ROWS = [
    "request of turn 50, last 6 messages",
    "request of turn 50, summary",
    "request of turn 50, summary and recall",
    "key facts at turn 120, full history",
    "key facts at turn 120, last 6 messages",
    "key facts at turn 120, summary",
    "key facts at turn 120, summary and recall",
    "get_context() with a summary",
    "what the summary adds to a read",
]


@pytest.fixture(scope="module")
def report():
    return history.run(quick=True)


@pytest.mark.slow
def test_a_quick_run(report):
    """Every row; what does not depend on the machine's speed keeps its limit."""
    rows = {row.name: row for row in report.report.rows}
    assert ROWS == list(rows)
    assert {ROWS[1]: 0.25, ROWS[6]: 0.9, ROWS[8]: 1.0} == {
        name: row.limit for name, row in rows.items() if row.limit is not None
    }
    assert rows[ROWS[1]].ok
    assert rows[ROWS[6]].ok
    # Fifty times what it takes: a summary that was made while somebody reads would not keep it.
    assert rows[ROWS[8]].ok
    assert (1.0, 0.0) == (rows[ROWS[3]].ratio, rows[ROWS[4]].ratio)
    json.dumps(report.to_json())


@pytest.mark.slow
def test_the_full_history_grows_and_the_others_do_not(report):
    """The cost curve."""
    full = report.tokens[FULL]
    assert list(full) == sorted(full)
    for way in (RECENT, SUMMARY, HYBRID):
        assert _growth(report.tokens[way]) < 1.1
        assert report.saved(way) > 0.5
    assert _growth(full) > 1.25
    assert report.saved(FULL) == 0


def _growth(tokens):
    """What the last quarter of the requests takes beside the quarter before it."""
    quarter = len(tokens) // 4
    return sum(tokens[-quarter:]) / sum(tokens[-2 * quarter : -quarter])


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_what_is_calculated_is_what_is_measured(report, way):
    """Within a tenth, from the printed assumptions alone."""
    assert 0.9 < report.calculated(way) / report.measured(way) < 1.1


def test_the_documents_table():
    """Its dollars and savings follow from its tokens; its tokens are 200 a request."""
    traffic = Traffic()
    assert 600_000 == traffic.requests
    assert [3600, 1200, 1050] == [claim.dollars(traffic) for claim in CLAIMS]
    assert [0, 67, 71] == [round(100 * claim.saved()) for claim in CLAIMS]
    assert 200 == CLAIMS[0].per_request(traffic)


def test_the_calculator():
    """By hand: requests with 0 to 5 turns before them."""
    sizes = Sizes(question=10, turn=100, summary=50, recalled=20)
    assert {FULL: 10 + 250, RECENT: 10 + 200, SUMMARY: 10 + 225, HYBRID: 10 + 225 + 40 / 6} == pytest.approx(
        {way: sizes.per_request(way, 6) for way in WAYS}
    )


def test_the_script():
    """Both languages; every fact once, in its turn, and its answer nowhere else."""
    counter = open_counter()
    script = with_facts(counter, 119)
    assert FACTS[0].said == script[0]
    assert 119 == len(script)
    assert all(script.count(fact.said) == 1 for fact in FACTS)
    talk = " ".join(f"{one.user} {one.assistant}" for one in small_talk(counter, 119))
    assert [] == [fact.answer for fact in FACTS if fact.answer in talk or fact.answer in fact.question]
    assert all(fact.answer in fact.said.user for fact in FACTS)
