"""The questions for a real model, without one: what they ask for was said, and what the gateway finds reaches the model."""

import json
import tomllib
from collections import Counter

import pytest

from benchmarks import gateway_model
from pagefile.text.tokens import open_counter
from tests.gateway.upstream import Said, Upstream

TALK = tomllib.loads(gateway_model.TALK.read_text("utf-8"))


def test_every_answer_was_said():
    """And what it replaced, and none of it near the end, but for what is recent."""
    history = json.dumps(gateway_model.messages(TALK["turn"]))
    kinds = Counter(question["kind"] for question in TALK["question"])
    assert {"fact": 7, "changed": 2, "tool result": 7, "recent": 4} == kinds
    for question in TALK["question"]:
        assert any(one in history for one in question["accept"]), question
        assert all(one in history for one in question.get("reject", ())), question


def test_what_fits_is_the_newest_with_whole_exchanges():
    history = [{"role": "system", "content": "Be brief."}, *gateway_model.messages(TALK["turn"])]
    first, *rest = gateway_model.trimmed(history, 3_000, open_counter())
    assert (history[0], history[-len(rest) :], "user") == (first, rest, rest[0]["role"])
    assert 4 < len(rest) < len(history) - 1


@pytest.mark.slow
def test_what_was_found_reaches_the_model(tmp_path, monkeypatch):
    """A model that repeats its prompt: right where the answer is in it. A run goes on where the last one ended."""
    monkeypatch.setattr(gateway_model, "MEMORY", tmp_path / "memory")
    path = tmp_path / "answers.jsonl"
    with Upstream(lambda body: Said(json.dumps(body["messages"]))) as upstream:
        for count in (1, 2):
            url = f"{upstream.url}/v1"
            answers = gateway_model.run(url, "stub", most=1, path=path, tell=lambda _: None)
            assert [True] * count == [one.right for one in answers]
    assert answers == gateway_model.read(path)
    assert ["gateway", "gateway"] == [one.arm for one in answers]
