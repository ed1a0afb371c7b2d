"""The questions for a real model, without one: what they ask for was said, and what the gateway finds reaches the model."""

import json
import tomllib
from collections import Counter
from itertools import pairwise

import pytest

from benchmarks import gateway_model
from pagefile import BlockingMemory
from pagefile.settings import EmbedderSettings, Settings
from pagefile.text.tokens import open_counter
from tests.gateway.upstream import Said, Upstream

TALK = tomllib.loads(gateway_model.TALK.read_text("utf-8"))
SETTINGS = Settings(url="memory://", embedder=EmbedderSettings(name="none"))


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


def _asked(memory, question):
    """The window for a question at the end of the talk, as text."""
    chat = memory.conversation("talk", user_id="jonas")
    turn = chat.begin(question)
    window = chat.context(turn=turn, window_tokens=gateway_model.WINDOW_TOKENS)
    chat.abort(turn)
    return window.as_text()


def test_lines_of_results_that_are_named_come_by_words_alone():
    """A name in one line of a long result, and beside it what kind of result it is: each is too little to go by."""
    said = gateway_model.messages(TALK["turn"])
    starts = [*(at for at, message in enumerate(said) if message["role"] == "user"), len(said)]
    with BlockingMemory.open(settings=SETTINGS) as memory:
        for start, end in pairwise(starts):
            memory.conversation("talk", user_id="jonas").record(messages=said[start:end])
        memory.settle()
        assert "Residenzschloss" not in _asked(memory, "Which hotel in Rome would you recommend?")
        missing = [
            question["text"]
            for question in TALK["question"]
            if question["kind"] == "tool result"
            and not any(one in _asked(memory, question["text"]) for one in question["accept"])
        ]
        assert [] == missing
