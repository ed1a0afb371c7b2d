"""The benchmark of windows: what it reads, how it judges, what it says; and the everyday messages it asks."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import everyday, window, window_evidence
from benchmarks.recall_rankers import Ranker
from benchmarks.recall_vectors import OnDisk
from benchmarks.window_data import PIECE_CHARS, people, stands
from benchmarks.window_evidence import packed
from benchmarks.window_labels import belief_text, standing
from benchmarks.window_parts import COUNT, Line, means
from pagefile.cli.bench import app
from pagefile.errors import NotFoundError, TransferError
from pagefile.testing import HashingEmbedder
from pagefile.text.sentences import language

TALK: dict[str, Any] = {
    "user": "talk",
    "turns": [
        {
            "id": "1",
            "conversation": "t",
            "at": "2024-01-06T16:43:00+00:00",
            "user": "Ada: my cat is called Turing",
            "assistant": None,
        },
        {
            "id": "2",
            "conversation": "t",
            "at": "2024-01-06T16:44:00+00:00",
            "user": "Bo: I started climbing",
            "assistant": None,
        },
    ],
    "queries": [
        {"question": "What is the cat called?", "gold": ["1"], "unit": "turn", "kind": "1", "before": None},
        {"question": "Which session?", "gold": ["t"], "unit": "conversation", "kind": "1", "before": None},
    ],
}
BELIEF: dict[str, Any] = {
    "_id": "b-tea",
    "user_id": "test-user",
    "type": "preference",
    "canonical_name": "hot_drink",
    "aliases": ["cuppa"],
    "content": "Drinks tea.",
    "scope": ["domain:home"],
    "pinned": False,
    "resolved_at": None,
    "superseded_by": None,
    "created_at": "2026-01-01T00:00:00Z",
}
CASE: dict[str, Any] = {
    "caseId": "tea",
    "scope": ["domain:home"],
    "query": "what do I drink as a cuppa?",
    "expect": {"relevantBeliefs": {"shouldOnlyInclude": ["b-tea"]}},
}
MEMORY = {
    "query": "What do I drink?",
    "memories": [f"The user drinks tea number {number}." for number in range(6)],
}


def written(path: Path, *values: object) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(value) + "\n" for value in values)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    written(tmp_path / "realtalk-own.json.gz", [TALK])
    written(tmp_path / "precision-beliefs.json.gz", [BELIEF, {**BELIEF, "_id": "b-pin", "pinned": True}])
    several = {**CASE, "caseId": "two", "scope": ["domain:a", "domain:b"]}
    # A sample takes one in ten.
    written(tmp_path / "precision-retrieval.json.gz", [CASE] * 10 + [several])
    written(tmp_path / "persist-cross-domain.jsonl.gz", MEMORY)
    written(tmp_path / "persist-beneficial.jsonl.gz", MEMORY)
    return tmp_path


# -- the everyday messages ---------------------------------------------------------------------------------------------


def test_the_pasts_are_long_and_in_two_languages():
    """Six users, 25 to 60 turns each, over months."""
    pasts = everyday.pasts()
    assert 6 == len(pasts)
    for turns in pasts.values():
        assert 25 <= len(turns) <= 60
        assert len(turns) == len({turn.id for turn in turns})
        assert 180 < (turns[-1].at - turns[0].at).days
        assert turns[-1].at < everyday.NOW
    assert {"en": 3, "zh": 3} == Counter(language(turns[0].user) for turns in pasts.values())


def test_what_is_needed_is_in_the_turns_named():
    """And not in the message itself; what is overruled is said in an older turn, and in none that is needed."""
    pasts = {user: {turn.id: turn for turn in turns} for user, turns in everyday.pasts().items()}
    for one in everyday.needed():
        turns = [pasts[one.user][name] for name in one.turns]
        said = "\n".join(turn.text for turn in turns)
        assert all(phrase in said and phrase not in one.text for phrase in one.says), one
        for phrase in one.overruled:
            [older] = [turn for turn in pasts[one.user].values() if phrase in turn.text]
            assert older.at < min(turn.at for turn in turns), one


def test_there_are_enough_messages():
    """The sizes that the figures are quoted with."""
    assert 240 <= len(everyday.quiet())
    assert 160 <= len(everyday.needed())
    assert {"statement", "noun", "colloquial", "imperative", "other language", "task", "overruled"} <= {
        one.kind for one in everyday.needed()
    }
    texts = [one.text for one in everyday.quiet() if not one.recent and one.kind not in {"chat", "thanks"}]
    assert [] == [text for text, count in Counter(texts).items() if count > 2]


def test_results_hold_their_answers_once():
    """In the result, and nowhere in what was said about it or asked."""
    fetched = everyday.fetched()
    assert 24 <= len(fetched)
    for one in fetched:
        assert 12_000 < len(one.result)
        for question, answer in one.asks:
            assert 1 == one.result.count(answer), answer
            assert answer not in question + one.ask + one.said


def test_fact_sets_and_sentences():
    """Four sets of sixty facts with twenty-five questions in two languages; the sentences for the rules."""
    sets = everyday.fact_sets()
    assert [(60, 25, 2)] * 4 == [(len(set(one.facts)), len(one.asks), len(one.away)) for one in sets]
    assert all({"en", "zh"} == {language(question) for question, _ in one.asks} for one in sets)
    for name in ("fact_rules", "fact_rules_more"):
        told = everyday.fact_rules(name)
        assert (24, 40, 40) == (len(told.secrets), len(told.plain), len(told.decoys))
        assert all(phrase in sentence for sentence, phrase in told.plain)


def test_all_of_persistbench_is_labelled():
    """A hundred lines; nothing both helps and may."""
    labels = everyday.helpful()
    assert list(range(1, 101)) == sorted(labels)
    assert all(one.helps and not one.helps & one.may for one in labels.values())


# -- judging -----------------------------------------------------------------------------------------------------------


def test_evidence_stands_word_for_word():
    """Line breaks aside; where a piece of a long text is enough, a shorter one is not."""
    long = " ".join(f"word{number}" for number in range(100))
    assert stands("two\nwords", "here are two words.", piece=False)
    assert not stands("two words", "two other words", piece=True)
    assert stands(long, f"…{long[40 : 40 + PIECE_CHARS]}…", piece=True)
    assert not stands(long, f"…{long[40 : 40 + PIECE_CHARS - 1]}…", piece=True)
    assert not stands(long, f"…{long[1:]}…", piece=False)


def test_packing_keeps_to_the_budget():
    """Best first; what does not fit is left out, and what fits behind it is not."""
    texts = ["short one", "long " * 200, "another short one"]
    kept = packed(texts, "a question", 60)
    assert ("short one", "another short one") == kept.texts
    assert kept.tokens <= 60
    assert COUNT("short one") < kept.tokens


def test_means_are_of_those_that_have_the_figure():
    """A window without pieces says nothing about their precision."""
    lines = [
        Line("s", "w", "1", "a", "", 100, {"share": 1.0, "precision": 0.5}),
        Line("s", "w", "2", "b", "", 100, {"share": 0.0}),
    ]
    assert [{"share": 0.5, "precision": 0.5}] == [row.figures for row in means(lines)]
    assert ["", "a", "b"] == [row.kind for row in means(lines, kinds=True)]


def test_a_belief_is_a_fact_with_its_names():
    """Pinned ones and those for every domain are in every request instead."""
    assert "hot drink, cuppa: Drinks tea." == belief_text(BELIEF)
    assert [False, True, True] == [
        standing({**BELIEF, **more}) for more in ({}, {"pinned": True}, {"scope": ["user:universal"]})
    ]


def test_vectors_are_kept_for_the_next_run(tmp_path: Path):
    """Equal rows come back without asking the embedder again."""

    class Once(HashingEmbedder):
        asked = 0

        async def embed(self, texts: Any) -> Any:
            self.asked += len(texts)
            return await super().embed(texts)

    async def twice() -> None:
        maker = Once()
        first = await OnDisk(maker, tmp_path).embed(["a cat", "a dog", "a cat"])
        second = await OnDisk(maker, tmp_path).embed(["a dog", "a cat"])
        assert 2 == maker.asked
        np.testing.assert_array_equal(first[[1, 0]], second)

    anyio.run(twice)


# -- the run -----------------------------------------------------------------------------------------------------------


def test_a_uniform_set_is_read(data: Path):
    """Questions about turns only, in one conversation."""
    [person] = people("REALTALK", data)
    assert person.one_conversation
    assert [("Ada: my cat is called Turing",)] == [one.evidence for one in person.questions]
    assert [] == people("LoCoMo", data)
    written(data / "realtalk-own.json.gz", {"no": "list"})
    with pytest.raises(TransferError, match="not a file of REALTALK"):
        people("REALTALK", data)


def test_a_quick_run(data: Path):
    """Every set that is there, in windows of every size; what is not there is named."""
    report = window.run(data, quick=True, embedder=HashingEmbedder())
    rows = {(row.set, row.way, row.budget, row.kind): row for row in report.rows}
    assert set(window.SETS) - {"LoCoMo", "LongMemEval-S", "LifeBench-zh"} == {row.set for row in report.rows}
    assert 3 == len(report.left_out)
    for budget in (1_000, 2_000, 4_000, 8_000):
        for way in ("window, new", "window, same", "recall packed", "BM25 packed"):
            row = rows["REALTALK", way, budget, ""]
            assert 0 <= row.figures["share"] <= 1
            assert row.figures["tokens"] <= budget
        assert "packing needs" in rows["REALTALK", "window, new", budget, ""].figures
    assert 0.5 == rows["PrecisionMemBench", "window", 4_000, "some"].figures["mapped"]
    assert {"kept by the rules", "kept by remember()"} == set(rows["rules", "rules", 0, "secret"].figures)
    assert {"overruled alone", "there"} <= set(rows["needed", "window", 4_000, ""].figures)


def test_peers_have_a_folder_for_each_set(data: Path, monkeypatch: pytest.MonkeyPatch):
    """Their stores are made once for each set; whoever is not installed is named."""
    places: list[str] = []

    def opened(_: object, folder: Path, told: Callable[[str], None]) -> list[Ranker]:
        places.append(folder.name if folder.is_dir() else "nowhere")
        told("mem0 is left out")
        return []

    monkeypatch.setattr(window_evidence, "open_peers", opened)
    report = window.run(data, ["REALTALK"], quick=True, peers=True, embedder=HashingEmbedder())
    assert ["REALTALK"] == places
    assert ("mem0 is left out",) == report.left_out


def test_an_unknown_set_is_named():
    """With those that there are."""
    with pytest.raises(NotFoundError, match="'quite' of windows: choose from LoCoMo"):
        window.run(None, ["quite"])


def test_the_command(data: Path):
    """A line of JSON for each message, the means at the end; else a table for each set."""
    ran = CliRunner().invoke(
        app, ["window", "--sets", "quiet", "--sets", "REALTALK", "--quick", "--json", "--data", str(data)]
    )
    *lines, last = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert {"set", "way", "id", "kind", "text", "budget", "figures"} == set(lines[0])
    assert {"quiet", "REALTALK"} == {row["set"] for row in last["rows"]}
    shown = CliRunner().invoke(app, ["window", "--sets", "quiet", "--quick"])
    assert 0 == shown.exit_code
    assert re.search(r"window\W+all\W+4,000", shown.stdout)
