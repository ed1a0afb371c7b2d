"""`pagefile bench answers`, with a set of our own and a server that repeats its prompt in place of the model."""

import gzip
import json
import re
from dataclasses import asdict, replace
from threading import Barrier

import pytest

from benchmarks.answers import judging, prompts
from benchmarks.answers import run as answers
from benchmarks.answers.arms import BUDGET, Summarised, Trimmed, newest, room
from benchmarks.answers.grading import exact, f1, matches
from benchmarks.answers.questions import interviews
from benchmarks.window_parts import COUNT
from pagefile.errors import NotFoundError
from tests.gateway.upstream import Said, Upstream

PLACES = ("Lisbon", "Oslo", "Quito")


@pytest.fixture
def data(tmp_path):
    """Three sessions of a talk in the shape of LoCoMo; the first says where she lives, and a long one follows."""
    said = [
        ["I moved to Lisbon last week.", "Nice, how is the flat?"],
        ["My sister Vera is a pilot in Oslo.", "Does she like it?"],
        [f"Nothing happened today, number {n}, and it rained all afternoon again." for n in range(160)],
    ]
    talk = {
        f"session_{number}": [
            {"speaker": "Ana", "dia_id": f"D{number}:{place}", "text": text}
            for place, text in enumerate(texts, 1)
        ]
        for number, texts in enumerate(said, 1)
    }
    days = {f"session_{number}_date_time": f"1:14 pm on {number} May, 2023" for number in (1, 2, 3)}
    asked = [
        {"question": "Where did Ana move to?", "answer": "Lisbon", "evidence": ["D1:1"], "category": 1},
        {"question": "Where is Vera a pilot?", "answer": "Oslo", "evidence": ["D2:1"], "category": 4},
        {"question": "Who is Bob?", "evidence": ["D2:1"], "category": 5, "adversarial_answer": "Ana"},
    ]
    sample = {"sample_id": "ana", "conversation": {**talk, **days}, "qa": asked}
    with gzip.open(tmp_path / "locomo-dev.json.gz", "wt", encoding="utf-8") as file:
        json.dump([sample], file)
    return tmp_path


def test_questions_without_an_answer_are_not_asked(data):
    [one] = interviews("LoCoMo", data)
    assert [("Lisbon",), ("Oslo",)] == [question.answers for question in one.questions]


def test_a_smaller_number_has_every_kind(data):
    [one] = interviews("LoCoMo", data, most=1)
    assert 1 == len(one.questions)


@pytest.mark.parametrize(
    ("answer", "right", "same"),
    [
        ("She went on the 7th of May 2023.", "7 May 2023", True),
        ("It was 7 May, 2023.", "7 May 2023", True),
        ("May 7th, 2023", "7 May 2023", True),
        ("Two weeks.", "2 weeks", True),
        ("About 1,240 euros", "1240", True),
        ("in Lisbon", "Lisbon", True),
        ("Lisbonne", "Lisbon", False),
        ("他在10月26日晚上聚餐", "10月26日", True),
        ("", "Lisbon", False),
    ],
)
def test_an_answer_is_right_if_it_says_the_words(answer, right, same):
    assert same == matches(answer, [right])


def test_to_the_word_is_nothing_else():
    assert exact("The 7th of May, 2023.", ["7 May 2023"])
    assert not exact("She went on 7 May 2023", ["7 May 2023"])


def test_words_in_common_are_counted():
    assert 1.0 == f1("a dog", ["the dog"])
    assert 0.0 == f1("", ["dog"])
    assert 0.0 < f1("a brown dog", ["dog"]) < 1.0
    assert 1.0 == f1("cat", ["dog", "cat"])


async def test_prompts_keep_to_the_budget(data):
    [one] = interviews("LoCoMo", data)
    asked: list[int] = []

    def ask(messages, most):
        asked.append(most)
        return "Ana moved to Lisbon."

    for arm in (Trimmed(), Summarised(ask, whole=True)):
        await arm.take(one.corpus)
        messages = await arm.prompt(one.questions[0])
        tokens = sum(COUNT(message["content"]) for message in messages)
        assert BUDGET * 0.65 < tokens <= BUDGET
        assert (arm.name != Trimmed.name) == ("moved to Lisbon" in messages[-1]["content"])
    assert 1 == len(asked)


def test_what_is_kept_of_a_talk_is_its_end(data):
    [one] = interviews("LoCoMo", data)
    kept = newest(one.corpus.said, room(one.questions[0]))
    assert list(one.corpus.said[-len(kept) :]) == kept
    assert 10 < len(kept) < len(one.corpus.said)


@pytest.mark.slow
def test_a_run_goes_on_where_the_last_one_ended(data, tmp_path):
    """The model repeats its prompt: right where the answer is in it. Lines have no text of the set but the answer."""
    path = tmp_path / "answers.jsonl"
    told: list[str] = []
    with Upstream(lambda body: Said(json.dumps(body["messages"]))) as upstream:
        for _ in range(3):
            answers.measure(
                data, f"{upstream.url}/v1", "stub", sets=("LoCoMo",), arms=("last turns", "Pagefile"), most=3,
                cache=None, tell=told.append, path=path,
            )  # fmt: skip
    known = answers.read(path)
    assert [False, True] * 2 == [one.held for one in known]
    assert ["last turns", "Pagefile"] * 2 == [one.arm for one in known]
    assert known[0].question == known[1].question
    assert 4 == len(known) == len({(one.question, one.arm) for one in known})
    assert {"Pagefile"} == {one.arm for one in known if one.right}
    told_rows = [(row.name, row.value) for row in answers.report(known).rows]
    assert [("LoCoMo, last turns", 0), ("LoCoMo, Pagefile", 2)] == told_rows


@pytest.mark.slow
def test_several_requests_at_once_give_the_same_answers(data, tmp_path):
    """A server that answers none before two are there gets two; each question is asked once per arm."""
    path, both = tmp_path / "answers.jsonl", Barrier(2, timeout=30)

    def model(body):
        both.wait()
        return Said(json.dumps(body["messages"]))

    with Upstream(model) as upstream:
        answers.measure(
            data, f"{upstream.url}/v1", "stub", sets=("LoCoMo",), arms=("last turns", "Pagefile"), most=9,
            cache=None, tell=print, at_once=2, path=path,
        )  # fmt: skip
    known = answers.read(path)
    assert 4 == len(known) == len({(one.question, one.arm) for one in known})
    assert known[0].question == known[1].question
    assert {"Pagefile"} == {one.arm for one in known if one.right}


def test_a_prompt_holds_an_answer_that_is_not_only_in_the_question(data):
    [one] = interviews("LoCoMo", data)
    question = next(asked for asked in one.questions if asked.answers == ("Lisbon",))
    said = {"role": "user", "content": f"Ana: I moved to Lisbon.\n\n{question.asked.text}"}
    assert answers.holds([said], question)
    assert not answers.holds([{"role": "user", "content": question.asked.text}], question)
    asked = replace(question, asked=replace(question.asked, text="Lisbon or Oslo?"))
    assert not answers.holds([{"role": "user", "content": "Lisbon or Oslo?"}], asked)


@pytest.mark.slow
def test_prompts_that_hold_an_answer_are_counted_without_a_model(data):
    told = []
    made = prompts.measure(
        data, sets=("LoCoMo",), arms=("last turns", "Pagefile"), cache=None, tell=told.append
    )
    assert ["LoCoMo: 2 questions about ana"] == told
    assert {("last turns", False), ("Pagefile", True)} == {(one.arm, one.held) for one in made}
    assert all(0 < one.tokens <= BUDGET for one in made)
    assert [("LoCoMo, last turns", 0), ("LoCoMo, Pagefile", 2)] == [
        (row.name, row.value) for row in prompts.report(made).rows
    ]
    assert "Pagefile +1.000 (+1.000 to +1.000)" in prompts.report(made).rows[0].note


def test_a_summary_needs_a_model(data):
    with pytest.raises(NotFoundError, match="There is no arm 'LangChain summarization'"):
        prompts.measure(data, sets=(), arms=("LangChain summarization",), cache=None, tell=print)


def kept(question, arm, answer, right):
    return answers.Answer("LoCoMo", question, "1", arm, answer, right, right, float(right), 900, 1.0, "stub")


def test_the_judge_is_asked_once_where_words_do_not_decide(data, tmp_path):
    """Not where they are right already, and not about an empty answer."""
    questions = {one.asked.id: one for one in interviews("LoCoMo", data)[0].questions}
    first, second = questions
    mine = [
        kept(first, "Pagefile", "In Lisbon", True),
        kept(first, "mem0", "The capital of Portugal", False),
        kept(second, "Pagefile", "", False),
        kept(second, "mem0", "In Paris", False),
    ]
    asked, path = [], tmp_path / "verdicts.jsonl"

    def ask(messages, most):
        asked.append(messages[0]["content"])
        return " Yes." if "Portugal" in asked[-1] else "No"

    for _ in range(2):
        judging.judge(mine, questions, "stub", ask, path=path, tell=lambda line: None)
    assert 2 == len(asked)
    assert all(text in asked[0] for text in ("Where did Ana move to?", "Lisbon", "The capital of Portugal"))
    verdicts = judging.read(path)
    assert [(first, "mem0", True), (second, "mem0", False)] == [
        (v.question, v.arm, v.right) for v in verdicts
    ]
    by_hand = {(first, "mem0"): True, (first, "Pagefile"): True, (second, "mem0"): False}
    assert (2, 3, 2, 3) == judging.agreement(mine, verdicts, by_hand)
    rows = {row.name: row for row in answers.report(mine, verdicts, by_hand).rows}
    assert "1 more by the judge" in rows["LoCoMo, mem0"].note
    assert 2 == rows["decided by words as a person does"].value


@pytest.mark.parametrize(
    ("pairs", "told"), [(2, "too few questions"), (8, "+1.000 (+1.000 to +1.000) right")]
)
def test_a_few_questions_have_no_interval(pairs, told):
    mine = [kept(f"q{n}", arm, "x", arm == "Pagefile") for n in range(pairs) for arm in ("Pagefile", "mem0")]
    rows = {row.name: row.note for row in answers.report(mine).rows}
    assert told in rows["LoCoMo, mem0"]


def test_labels_name_a_question_and_an_arm(tmp_path):
    path = tmp_path / "labels.toml"
    path.write_text('"ana-0, last turns" = true\n"ana-1, mem0" = false\n', "utf-8")
    assert {("ana-0", "last turns"): True, ("ana-1", "mem0"): False} == judging.labels(path)


def test_a_line_says_what_was_summarised_and_whose_code_made_the_prompts():
    one = replace(kept("q1", Summarised.name, "x", False), commit="0123abcd")
    rows = {row.name: row.note for row in answers.report([one, replace(one, set="LifeBench-zh")]).rows}
    part = "a summary of the last 16,000 tokens"
    assert part not in rows["LoCoMo, LangChain summarization"]
    assert f"; {part}; made at 0123abcd" in rows["LifeBench-zh, LangChain summarization"]


def test_an_answer_names_the_commit_that_is_checked_out():
    """Empty in a copy without a history."""
    assert re.fullmatch("[0-9a-f]{8}|", answers.revision())


@pytest.mark.skipif(not answers.revision(), reason="a copy without a history")
def test_only_a_commit_of_the_history_is_known():
    assert answers.is_known(answers.revision())
    assert not answers.is_known("")
    assert not answers.is_known("0" * 8)


def test_of_two_answers_the_newest_counts(tmp_path):
    path = tmp_path / "answers.jsonl"
    old, new = (
        kept("q1", "mem0", "Oslo", False),
        replace(kept("q1", "mem0", "Lisbon", True), commit="0123abcd"),
    )
    lines = [json.dumps(asdict(one)) for one in (old, kept("q2", "mem0", "Quito", False), new)]
    path.write_text("\n".join(lines), "utf-8")
    assert {"q1": "Lisbon", "q2": "Quito"} == {one.question: one.answer for one in answers.read(path)}
