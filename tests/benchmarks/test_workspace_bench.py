"""`pagefile bench workspace` lets the same agent run in every way, and judges what a workspace spares it."""

import json

import pytest
from typer.testing import CliRunner

from benchmarks import workspace
from benchmarks.workspace_book import PAGES, Book, toc
from pagefile.cli.app import app

ROWS = [
    "get_toc reaching the backend",
    "tool calls reaching the backend",
    "prompt tokens of all model calls",
    "repeated content",
    "questions answered",
]


@pytest.fixture(scope="module")
def report():
    return workspace.run(quick=True)


def test_a_repeated_get_toc_reaches_the_backend_once(report):
    """The model makes it again, the backend never sees it; without a workspace it sees every one."""
    plain, archive, kept = report.walked
    assert 1 == kept.reached["get_toc"] < kept.made["get_toc"]
    assert report.questions == plain.reached["get_toc"] == archive.reached["get_toc"]


def test_every_way_answers_every_question(report):
    """Sparing calls costs no answer."""
    assert [report.questions] * 3 == [walked.right for walked in report.walked]


def test_the_rows_and_their_limits(report):
    """Nothing here depends on the machine, so every limit is kept."""
    assert ROWS == [row.name for row in report.report.rows]
    assert [1.0, 0.75, 0.25, None, 1.0] == [row.limit for row in report.report.rows]
    assert report.ok
    plain, archive, kept = report.walked
    assert max(kept.tokens, archive.tokens) < plain.tokens
    # Passages of an archived table are cheaper than notes of it, and take a call more each time.
    assert kept.prompts < archive.prompts
    assert kept.repeated_share < 0.1
    assert plain.repeated_share > 0.8


@pytest.mark.slow
def test_a_workspace_that_caches_nothing_is_found_out(monkeypatch):
    """The limits can be missed."""
    off = [workspace.Way(way.name, archive=way.archive, workspace=False) for way in workspace.WAYS]
    monkeypatch.setattr(workspace, "WAYS", off)
    report = workspace.run(quick=True)
    assert not report.ok
    assert [False, False] == [row.ok for row in report.report.rows[:2]]


@pytest.mark.slow
def test_the_same_run_gives_the_same_numbers(report):
    """It is a script: only the seconds differ."""
    again = workspace.run(quick=True).to_json()
    assert report.to_json()["ways"] == again["ways"]


def test_the_book_is_what_the_document_speaks_of():
    """200 pages, and a table of contents of more than 180,000 characters."""
    book = Book.made()
    assert PAGES == len(book.texts) == len({topic.name for topic in book.topics})
    assert len(json.dumps(toc(book.topics), ensure_ascii=False)) > 180_000
    assert all(topic.detail in text for topic, text in zip(book.topics, book.texts, strict=True))
    assert max(hit["score"] for hit in book.call("smart_search", {"query": book.topics[7].name})) <= 1 / 61


def test_the_command(monkeypatch):
    """A table for people, JSON for programs, and the exit code of the judgement."""
    monkeypatch.setattr(workspace, "QUESTIONS", workspace.QUESTIONS[:4])
    told = CliRunner().invoke(app, ["bench", "workspace", "--quick"])
    assert 0 == told.exit_code, told.output
    assert "prompt tokens" in told.output
    spoken = json.loads(CliRunner().invoke(app, ["bench", "workspace", "--quick", "--json"]).stdout)
    assert ["no memory", "archive", "workspace"] == [way["name"] for way in spoken["ways"]]
