"""`pagefile bench tools`, with a scripted model in place of a real one."""

import json
from collections import Counter

import pytest

from benchmarks.tool_choice import run as tools
from pagefile.mcp.tools import ROWS
from tests.acceptance.cli_calling import pagefile
from tests.gateway.upstream import Said, Upstream


def test_each_half_has_every_tool_once_and_three_requests_without():
    for half in tools.HALVES:
        mine = [one for one in tools.requests() if one["half"] == half]
        wanted = Counter(one["right"][0] if one["right"] else None for one in mine)
        assert {**dict.fromkeys(ROWS, 1), None: 3} == wanted
        assert {"en": 6, "zh": 6} == Counter(one["language"] for one in mine)


def test_no_request_is_in_both_halves():
    assert 24 == len({one["text"] for one in tools.requests()})


REQUEST = {"language": "en", "right": ["correct"], "says": {"fact": ["rome"], "text": ["bonn"]}}


@pytest.mark.parametrize(
    ("tool", "arguments", "judged"),
    [
        ("correct", {"fact": "lives in Rome", "text": "lives in Bonn"}, (True, True)),
        ("correct", {"fact": "lives in Rome", "text": "lives in Rome"}, (True, False)),
        ("correct", {"text": "Rome → Bonn"}, (True, False)),
        ("correct", {"fact": "Rome", "text": "Bonn", "user": "ada"}, (True, False)),
        ("retract", {"fact": "lives in Rome"}, (False, False)),
        (None, {}, (False, False)),
    ],
)
def test_a_call_is_judged_by_its_tool_and_its_arguments(tool, arguments, judged):
    assert judged == tools.judged(REQUEST, tool, arguments)


def test_calling_nothing_is_right_where_nothing_is_needed():
    none = {"language": "en", "right": []}
    assert (True, True) == tools.judged(none, None, {})
    assert (False, False) == tools.judged(none, "recall", {"query": "x"})


@pytest.mark.parametrize("written", ['{"query": "x"}', "[1]", "{", ""])
def test_arguments_that_are_no_object_are_none(written):
    call = {"function": {"name": "recall", "arguments": written}}
    name, arguments = tools._called({"tool_calls": [call]})
    assert "recall" == name
    assert isinstance(arguments, dict)


def test_a_run_goes_on_where_the_last_one_ended(tmp_path):
    """The model gets the tools as the server lists them; earlier descriptions stay in the file."""
    path = tmp_path / "answers.jsonl"

    def script(asked):
        wanted = next(one for one in tools.requests() if one["text"] == asked["messages"][-1]["content"])
        assert len(ROWS) == len(asked["tools"])
        said = tuple((name, texts[0]) for name, texts in wanted.get("says", {}).items())
        return Said("42", ((wanted["right"][0], dict(said)),) if wanted["right"] else ())

    with Upstream(script) as model:
        asked = [f"{model.url}/v1", "scripted"]
        tools.run(*asked, most=5, path=path, tell=lambda _: None)
        choices = tools.run(*asked, most=24, path=path, tell=lambda _: None)
        assert 24 == len(model.requests)
    assert all(one.well for one in choices), [one for one in choices if not one.well]
    assert 12 == {row.value for row in tools.report(choices).rows}.pop()
    older = choices[0].__class__(
        **{**json.loads(path.read_text("utf-8").splitlines()[0]), "digest": "before"}
    )
    names = [row.name for row in tools.report([older, *choices]).rows]
    assert "right tools, descriptions before" == names[0]
    assert names[-1].endswith("(now)")


def test_without_answers_it_says_what_to_give():
    refused = pagefile("bench", "tools", "--model", "never-asked")
    assert 2 == refused.code
    assert "--url" in refused.err
