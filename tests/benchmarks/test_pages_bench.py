"""`pagefile bench pages` judges fairly: a good, an empty and a wrong synopsis get what they deserve."""

import gzip
import json

import pytest
from typer.testing import CliRunner

from benchmarks import pages, pages_runs
from benchmarks.judged import Case, cases
from benchmarks.judged.score import decoded, holds, lacking, misleading, own_share, says
from pagefile.cli.app import app

GOOD = Case(
    "tiny/orders",
    "en",
    "list_orders",
    {"shop": 1},
    '{"total": 180, "orders": []}',
    (("180",), ("orders", "订单")),
    (),
)
TRACE = Case(
    "tiny/trace",
    "en",
    "bash",
    {},
    "Traceback …\nKeyError: 'id'",
    (("KeyError",),),
    (),
    wrong=("search results",),
)
CODE = Case(
    "tiny/code",
    "en",
    "cat",
    {},
    "class URL: ...",
    (("class URL",),),
    (),
    wrong=("Search results, 1 sources",),
)


def test_a_good_synopsis_is_told():
    """In either language and number form."""
    assert [] == lacking("JSON: 180 orders, total 180", GOOD)
    assert [] == lacking("共 180 条订单", GOOD)
    assert [] == lacking("keyerror: 'id', 3 frames", TRACE)
    assert [] == misleading("KeyError: 'id'", ("a.py",), TRACE)


def test_an_empty_synopsis_lacks_everything():
    """And what is behind the two hundredth character was not seen."""
    assert list(GOOD.key) == lacking("", GOOD)
    assert [("orders", "订单")] == lacking("180" + " " * 200 + "orders", GOOD)


def test_a_wrong_synopsis_misleads():
    """Also by its sources."""
    assert ["Search results, 1 sources"] == misleading(
        "search  results,\n1 sources: URL | str. class URL", (), CODE
    )
    assert ["search results"] == misleading("KeyError", ("Search results",), TRACE)


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("1,180 orders", "180", False),
        ("2180 orders", "180", False),
        ("180.5 kg", "180", False),
        ("180, then", "180", True),
        ("of 1,200 rows", "1,200", True),
        ("Total=0", "0", True),
        ("10", "0", False),
    ],
)
def test_numbers_are_numbers_of_their_own(text: str, words: str, said: bool):
    """180 is not said by 2180 or 1,180."""
    assert said == says(text, words)


def test_an_answer_may_be_escaped():
    """A model reads JSON as well; folded whitespace is no difference."""
    assert holds('{"t": "he said \\"no\\""}', 'he said "no"')
    assert holds("\\u63d0\\u4ea4", "提交")
    assert holds("two\n   words", "two words")
    assert not holds("nothing of it", "提交")


def test_strings_are_found_inside_of_json():
    """And inside of JSON inside of JSON."""
    inner = json.dumps({"deep": "down"})
    assert ["a", "b", inner, "deep", "down"] == decoded(json.dumps({"a": ["b", inner, 1]})).split("\n")
    assert "" == decoded("plain text")


def test_own_text_is_what_the_result_says():
    """Notes about it are not; a rendering of its rows is."""
    case = Case(
        "tiny/own", "en", "cat", {}, '{"rows": [{"name": "Ada Lovelace", "born": 1815}]}', (("x",),), ()
    )
    assert 1.0 == own_share("rows: name: Ada Lovelace, born: 1815", case)
    assert 0.0 == own_share("nothing fits here, ask for more", case)
    assert 0.0 == own_share("", case)
    assert 0.3 < own_share("shown in part, with a note: name Ada Lovelace", case) < 0.7


def test_a_run_judges_every_figure():
    """Over a few cases of every length; nothing is left behind, and misses are named."""
    chosen = [
        case for case in cases() if case.name in {"odd/error-json-zh", "systems/curl", "documents/markdown"}
    ]
    told: list[str] = []
    report = pages.run(told.append, chosen)
    assert 3 == len(report.judged)
    assert told
    rows = {row.name: row for row in report.report.rows}
    assert len(pages.COLUMNS) == len(rows)
    assert report.ok
    assert {"documents", "systems", "odd", "(en)", "(zh)", "(across)"} == set(report.kinds)
    said = json.loads(json.dumps(report.to_json()))
    assert [case.name for case in chosen] == [one["name"] for one in said["cases"]]
    by_name = {one.case.name: one for one in report.judged}
    assert {8_000} == set(by_name["documents/markdown"].window)
    assert {} == by_name["systems/curl"].window
    assert all(0 <= one.own_tokens <= one.showable for one in report.judged)
    missed = sum(score.of - score.hits for score in pages.scores(report.judged)[1:-2])
    lines = [line for line in report.failures() if "synopsis" not in line and "tokens of its own" not in line]
    assert missed == len(lines)


def test_questions_across_languages_are_counted_apart():
    """Only those, and none of a result in two languages."""
    asked = (
        pages.Answered("几月几日？", "1 May", there=True),
        pages.Answered("Which day?", "1 May", there=False),
    )
    one = pages.Judged(TRACE, 9, "KeyError", (), {}, dict.fromkeys(pages.LOADS, asked), asked, 9)
    mixed = Case("tiny/both", "mixed", "cat", {}, "a 乙", (("a",),), ())
    other = pages.Judged(mixed, 9, "a", (), {}, dict.fromkeys(pages.LOADS, asked), asked, 9)
    figures = {score.name: (score.hits, score.of) for score in pages.across([one, other])}
    assert (1, 1) == figures["pages found first"]
    assert (1, 1) == figures["answers loaded in 400"]
    assert (0, 0) == figures["synopses with the key fact"]


def test_a_case_is_shown_as_a_model_sees_it():
    """Its synopsis, the windows, the loads; a name that is none is refused."""
    runner = CliRunner()
    shown = runner.invoke(app, ["bench", "pages", "--show", "systems/soap-fault"])
    assert 0 == shown.exit_code
    assert "== synopsis and sources" in shown.output
    assert "VIES-12" in shown.output
    refused = runner.invoke(app, ["bench", "pages", "--show", "no/such"])
    assert 2 == refused.exit_code
    assert "no/such" in refused.output


def test_recorded_results_are_shown_in_part(tmp_path):
    """Of every long result of recorded runs enough can be shown; the command prints how many, and fails if one cannot."""
    rows = json.dumps([{"id": n, "note": f"order {n} was paid by customer {n * 7}"} for n in range(300)])
    messages = [
        {"role": "user", "content": "Who paid order 17?"},
        {"role": "tool", "name": "orders", "content": rows},
        {"role": "tool", "name": "orders", "content": rows},
        {"role": "tool", "name": "short", "content": "done"},
    ]
    with gzip.open(tmp_path / "traj-made.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(json.dumps({"traj_id": "a", "messages": messages}))
    report = pages_runs.run(tmp_path)
    assert report.ok
    assert ["1 of 1 results"] * 4 == [row.note for row in report.rows]
