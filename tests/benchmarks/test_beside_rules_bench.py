"""`pagefile bench beside-rules`, with a scripted model in place of a real one."""

import json

import pytest

from benchmarks import beside_rules
from benchmarks.beside_rules import KINDS, LANGUAGES, Kept, Message
from pagefile.errors import ModelUnavailableError, NotFoundError
from tests.gateway.upstream import Said, Upstream

SAID = {
    "en": [Message("lasting", "I live in Aarhus.", "Aarhus"), Message("not lasting", "I mend Ferraris for a living, haha.")],
    "zh": [Message("secrets", "门锁密码改成了8351。")],
}  # fmt: skip


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """A conversation and a session in each language."""
    talks = {one.language: one for one in beside_rules.judged()}
    monkeypatch.setattr(beside_rules, "messages", SAID.__getitem__)
    monkeypatch.setattr(beside_rules, "judged", lambda: [*talks.values()])


def found(language):
    quote = SAID[language][-1].text
    about = {
        "turn": len(SAID[language]),
        "quote": quote,
        "text": "The user mends Ferraris.",
        "category": "work",
    }
    return json.dumps({"facts": [{**about, "subject": "user", "attribute": None, "confidence": 1}]})


def answer(body):
    """Reads a fact out of the last message of a session, and summarises in no words of the talk."""
    prompt = body["messages"][0]["content"]
    if "{" in prompt:
        return Said(found("en" if prompt.startswith("You note") else "zh"))
    return Said("他们谈了一些事情。")


def rows(report):
    return {row.name: (row.value, row.note) for row in report.rows}


def test_kept_answers_are_judged_again_without_the_model(tmp_path):
    path = tmp_path / "answers.jsonl"
    with Upstream(answer) as upstream:
        asked = beside_rules.run(f"{upstream.url}/v1", "stub", path=path, tell=print)
        count = len(upstream.requests)
    again = beside_rules.run(None, "stub", path=path, tell=print)
    assert rows(asked) == rows(again)
    assert count == len(path.read_text("utf-8").splitlines()) >= 4
    told = rows(again)
    # The model adds what no rule knows, believed by its words; a secret stays out whatever it says.
    assert (1, "of 1; 1 by the rules alone") == told["facts, en, lasting: kept with a model"]
    assert (1, "of 1; 0 by the rules alone") == told["facts, en, not lasting: kept with a model"]
    assert (0, "of 1; 0 by the rules alone") == told["facts, zh, secrets: kept with a model"]
    assert "prompts without an answer" not in told


def test_prompts_without_an_answer_are_said(tmp_path):
    kept = Kept("stub", tmp_path / "answers.jsonl")
    with pytest.raises(NotFoundError):
        beside_rules.run(None, "stub", path=kept.path, tell=print)
    kept.keep("another", "said")
    report = beside_rules.run(None, "stub", path=kept.path, tell=print)
    assert 4 == rows(report)["prompts without an answer"][0]


async def test_of_one_text_only_the_first_prompt_waits(tmp_path):
    """The next ones follow from an answer that is not there yet."""
    kept = Kept("stub", tmp_path / "answers.jsonl")
    for text in ("first", "second"):
        with pytest.raises(ModelUnavailableError):
            await kept.complete([{"role": "user", "content": text}], max_tokens=9)
    assert ["first"] == [messages[0]["content"] for messages, _ in kept.waiting.values()]
    kept.keep(next(iter(kept.waiting)), "said")
    assert "said" == await Kept("stub", kept.path).complete(
        [{"role": "user", "content": "first"}], max_tokens=9
    )


def test_the_messages_are_of_every_kind_in_both_languages(monkeypatch):
    monkeypatch.undo()
    for language in LANGUAGES:
        kinds = [one.kind for one in beside_rules.messages(language)]
        assert set(KINDS) == set(kinds)
        assert min(map(kinds.count, KINDS)) >= 8
        assert kinds != sorted(kinds)
