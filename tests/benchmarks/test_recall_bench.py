"""The benchmark of recall: what it reads, how it scores, what it says."""

import gzip
import json
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import recall, recall_peers
from benchmarks.recall_data import Asked, lifebench, locomo, longmemeval, read_set, set_files, uniform
from benchmarks.recall_rankers import plain_terms
from benchmarks.recall_scores import FIGURES, difference, first_rank, share
from benchmarks.recall_vectors import Remembered
from pagefile.cli.bench import app
from pagefile.errors import NotFoundError, TransferError
from pagefile.testing import HashingEmbedder

TALK: dict[str, Any] = {
    "sample_id": "talk",
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "I adopted a cat.", "blip_caption": "a grey cat"},
            {"speaker": "Bo", "dia_id": "D1:2", "text": "What is its name?"},
            {"speaker": "Ada", "dia_id": "D1:3", "text": "Turing!"},
        ],
        "session_2_date_time": "9:05 am on 12 June, 2023",
        "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "I started climbing."}],
        "session_3_date_time": "9:05 am on 13 June, 2023",
    },
    "qa": [
        {"question": "What is Ada's cat called?", "evidence": ["D1:3", "D01:01; D9:9"], "category": 1},
        {"question": "What did Bo start?", "evidence": ["D2:1"], "category": 4},
        {"question": "Who knows?", "evidence": ["D7:1"], "category": 3},
        {"question": "And who not?", "category": 5},
    ],
}


def haystack(name: str) -> dict[str, Any]:
    return {
        "question_id": name,
        "question_type": "single-session-user",
        "question": "Where do I keep my skates?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "answer_session_ids": ["answer_1"],
        "haystack_session_ids": ["other", "answer_1", "other"],
        "haystack_dates": ["2023/05/20 (Sat) 07:47"] * 3,
        "haystack_sessions": [
            [{"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Hi."}],
            [
                {"role": "user", "content": "My skates are in the attic."},
                {"role": "assistant", "content": "Noted."},
                {"role": "user", "content": "And one more thing."},
                {"role": "user", "content": "Never mind."},
            ],
            [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello!"}],
        ],
    }


LIFE = {
    "user": "li",
    "docs": [
        {"id": "sms:1", "datetime": "2025-03-09 18:10:00", "text": "[短信] 今天去爬山了"},
        {"id": "note:1", "datetime": "2025-01-02", "text": "[笔记] 买了新的登山鞋"},
        {"id": "note:1", "datetime": "2025-01-03", "text": "[笔记] 同一个编号"},
    ],
    "queries": [
        {
            "id": "q0",
            "question": "3月去哪里爬山？",
            "question_type": "a",
            "ask_time": "2025-12",
            "evidence": ["sms:1", "sms:404"],
        },
        {
            "id": "q1",
            "question": "没有证据",
            "question_type": "b",
            "ask_time": "2025-04",
            "evidence": ["sms:404"],
        },
    ],
}


CHAT: dict[str, Any] = {
    "user": "mo",
    "turns": [
        {"id": "t1", "conversation": "c1", "at": "2025-01-01T10:00:00+00:00", "user": "My bike is green.", "assistant": "Nice."},
        {"id": "t2", "conversation": "c2", "at": "2025-01-02T10:00:00+00:00", "user": "Now it is blue.", "assistant": "Oh."},
    ],
    "queries": [
        {"question": "What colour is my bike?", "gold": ["t1"], "unit": "turn", "kind": "fact", "before": None},
        {"question": "And the first one?", "gold": ["c1"], "unit": "conversation", "kind": "past", "before": 1},
        {"question": "What comes later?", "gold": ["c2"], "unit": "conversation", "kind": "past", "before": 1},
    ],
}  # fmt: skip


def written(path: Path, content: object) -> Path:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(content, file)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    written(tmp_path / "locomo-own.json.gz", [TALK])
    written(tmp_path / "longmemeval-s-own.json.gz", [haystack("a"), haystack("b_abs")])
    written(tmp_path / "lifebench-zh-own.json.gz", [LIFE])
    by_turn, by_session = ({**CHAT, "queries": CHAT["queries"][part]} for part in (slice(1), slice(1, None)))
    written(tmp_path / "realtalk-own.json.gz", [by_turn])
    written(tmp_path / "beam100k-own.json.gz", [by_turn])
    written(tmp_path / "realmem-own.json.gz", [by_session])
    return tmp_path


def test_locomo_is_read(data: Path):
    """An utterance a turn; evidence is parsed wherever it stands, and what is not in the conversation is left out."""
    [corpus] = locomo(data / "locomo-own.json.gz")
    assert "Ada: I adopted a cat. a grey cat" == corpus.said[0].user
    assert ["1", "1", "1", "2"] == [one.session for one in corpus.said]
    assert "2023-05-08T13:56:00+00:00" == corpus.said[0].at.isoformat()
    assert [({"D1:3", "D1:1"}, {"1"}, "1"), ({"D2:1"}, {"2"}, "4")] == [
        (asked.turns, asked.sessions, asked.kind) for asked in corpus.asked
    ]
    assert {"2023-06-12"} == {str(asked.at.date()) for asked in corpus.asked}


def test_longmemeval_is_read(data: Path):
    """A pair a turn, a conversation a session, even where its id comes twice; abstention questions are left out."""
    [corpus] = longmemeval(data / "longmemeval-s-own.json.gz")
    assert [(None, "Hello!"), ("Hi.", None)] == [(one.user, one.assistant) for one in corpus.said[:2]]
    assert [
        ("My skates are in the attic.", "Noted."),
        ("And one more thing.", None),
        ("Never mind.", None),
    ] == [(one.user, one.assistant) for one in corpus.said[2:5]]
    assert 3 == len({one.conversation for one in corpus.said})
    assert all("answer" not in one.conversation + one.id + one.text for one in corpus.said)
    assert ["2023-05-30"] == [str(asked.at.date()) for asked in corpus.asked]


def test_a_set_in_the_uniform_shape_is_read(tmp_path: Path):
    """What answers is named by turn or by conversation, and was there when it was asked; other questions are left out."""
    [corpus] = uniform(written(tmp_path / "realmem-own.json.gz", [CHAT]))
    assert [({"t1"}, {"c1"}, None), (set(), {"c1"}, 1)] == [
        (asked.turns, asked.sessions, asked.before) for asked in corpus.asked
    ]
    assert ["2025-01-02T11:00:00+00:00", "2025-01-01T11:00:00+00:00"] == [
        asked.at.isoformat() for asked in corpus.asked
    ]


def test_turns_after_a_question_are_left_out_of_every_ranking(tmp_path: Path):
    written(tmp_path / "realmem-own.json.gz", [CHAT])
    report = recall.run(tmp_path, embedder=HashingEmbedder(), sets=["RealMem"], cache=tmp_path / "vectors")
    [measured] = report.sets
    assert ["pagefile", "words only", "plain BM25", "dense alone"] == measured.rankers
    asked_early = [one for one in measured.answered if one.asked.before == 1]
    assert all("t2" not in one.top for one in asked_early)
    assert ["t1"] == next(list(one.top) for one in asked_early if one.ranker == "dense alone")


def test_lifebench_is_read(data: Path):
    """In order of time; a question without evidence that is there is left out."""
    [corpus] = lifebench(data / "lifebench-zh-own.json.gz")
    assert ["note:1", "note:1", "sms:1"] == [one.id for one in corpus.said]
    assert [("q0", {"sms:1"}, "2025-12-31")] == [
        (asked.id, asked.turns, str(asked.at.date())) for asked in corpus.asked
    ]


def test_the_figures():
    """Shares of what answers, by place."""
    assert (0.5, 1.0) == (share({"a", "b"}, ["a", "x", "b"], 2), share({"a", "b"}, ["a", "x", "b"], 3))
    assert (0.5, 0.0) == (first_rank({"a"}, ["x", "a"]), first_rank({"a"}, ["x"]))
    asked = Asked("q", "?", "k", frozenset({"t1", "t2"}), frozenset({"s1", "s2"}), datetime.now(UTC))
    turns, sessions = ["x"] * 6 + ["t1"], ["s1", "x", "x", "x", "x", "s2"]
    scored = {
        name: {figure: made(asked, turns, sessions) for figure, made in figures.items()}
        for name, figures in FIGURES.items()
    }
    assert [0, 0.5, 1, pytest.approx(1 / 7), 0.5, 1] == list(scored["LoCoMo"].values())
    assert [0, 1, 1] == list(scored["LongMemEval-S"].values())
    assert [1, 0.5] == list(scored["LifeBench-zh"].values())


def test_a_difference_has_bounds():
    """Between the bounds lies the mean; who always wins is surely ahead; the same input gives the same bounds."""
    rng = random.Random(3)
    theirs = [rng.random() for _ in range(200)]
    noisy = difference([one + rng.uniform(-1, 1) for one in theirs], theirs)
    assert noisy.low < noisy.mean < noisy.high
    assert noisy.low < 0 < noisy.high
    ahead = difference([one + 0.1 for one in theirs], theirs)
    assert [pytest.approx(0.1)] * 3 == [ahead.mean, ahead.low, ahead.high]
    assert difference(theirs, theirs[::-1]) == difference(theirs, theirs[::-1])


async def test_each_text_is_embedded_once():
    """Whoever asks, and however often; the rows are in the order of the texts."""
    embedder = HashingEmbedder()
    remembered = Remembered(embedder)
    texts = ["one", "two", "one", "", "three"] * 10
    rows = await remembered.embed(texts)
    assert (50, remembered.dimension) == rows.shape
    assert 4 == embedder.embedded
    assert np.array_equal(rows, await embedder.embed(texts))
    alone = await anyio.to_thread.run_sync(remembered.now, ["two"])
    assert np.allclose(rows[1], alone[0])
    assert (0, remembered.dimension) == (await remembered.embed([])).shape


def test_a_peer_that_is_not_there_is_named(data: Path, monkeypatch: pytest.MonkeyPatch):
    """Loudly, with the reason; one that would phone home is left out as well."""

    class Absent(recall_peers.PeerRanker):
        def put(self, corpus: object) -> None: ...
        def find(self, question: str, limit: int) -> Iterator[str]:
            return iter(())

    class Missing(Absent):
        name = "missing"

        def start(self) -> None:
            raise ImportError("No module named 'missing'")

    class Talking(Absent):
        name = "talking"

        def start(self) -> None:
            raise RuntimeError("it phones home")

    monkeypatch.setattr(recall_peers, "PEERS", (Missing, Talking))
    report = recall.run(data, quick=True, peers=True, embedder=HashingEmbedder())
    assert ["missing is left out: No module", "talking is left out: it phones home"] == [
        why[: len(start)]
        for why, start in zip(
            report.left_out,
            ("missing is left out: No module", "talking is left out: it phones home"),
            strict=True,
        )
    ]
    assert [*report.left_out] == report.to_json()["left out"]


def test_langgraphs_store_is_asked(data: Path, monkeypatch: pytest.MonkeyPatch):
    """A peer that is installed here: it answers every question, with the same vectors."""
    pytest.importorskip("langgraph.store.memory")
    monkeypatch.setattr(recall_peers, "PEERS", (recall_peers.LangGraphRanker,))
    report = recall.run(data, peers=True, embedder=HashingEmbedder())
    assert () == report.left_out
    for measured in report.sets:
        assert "LangGraph store" == measured.rankers[-1]
        assert 1.0 == max(measured.mean(figure, "LangGraph store") for figure in FIGURES[measured.set])


def test_plain_terms():
    """Nothing is stemmed or left out."""
    assert ["the", "cats", "高血", "血压", "吃", "500", "mg"] == plain_terms("The cats 高血压 吃 500 mg")


@pytest.mark.parametrize("quick", [True, False])
def test_a_run_says_everything(data: Path, tmp_path: Path, quick: bool):
    """Every set, every ranker, every question; what is easy is found."""
    told: list[str] = []
    report = recall.run(data, quick=quick, progress=told.append, embedder=HashingEmbedder())
    assert list(FIGURES) == [measured.set for measured in report.sets]
    assert [2, 1, 1, 1, 1, 1] == [measured.questions for measured in report.sets]
    said = json.loads(json.dumps(report.to_json()))
    for measured in said["sets"]:
        assert ["pagefile", "words only", "plain BM25", "dense alone"] == list(measured["figures"])
        assert ["words only", "plain BM25", "dense alone"] == list(measured["ahead of"])
        for figure, ahead in measured["ahead of"]["plain BM25"].items():
            ours, theirs = (measured["figures"][ranker][figure] for ranker in ("pagefile", "plain BM25"))
            assert pytest.approx(ours - theirs, abs=1e-3) == ahead["mean"]
            assert ahead["low"] <= ahead["mean"] <= ahead["high"]
        assert list(FIGURES[measured["set"]]) == list(measured["figures"]["pagefile"])
        assert 1.0 == max(measured["figures"]["pagefile"].values())
    assert {"figure": "turn share@10", "pagefile": {"1": 1.0, "4": 1.0}} == {
        key: said["sets"][0]["by kind"][key] for key in ("figure", "pagefile")
    }
    report.write(tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert 7 * 4 == len(lines)
    assert ("LoCoMo", "pagefile", "talk-0") == tuple(lines[0][key] for key in ("set", "ranker", "id"))
    assert told


def test_one_set_is_enough(data: Path):
    """What is not there is not measured."""
    (data / "locomo-own.json.gz").unlink()
    assert ["LongMemEval-S", "LifeBench-zh", "REALTALK", "BEAM-100K", "RealMem"] == list(set_files(data))


def test_no_data_is_said(tmp_path: Path):
    """Neither a folder nor a set."""
    with pytest.raises(NotFoundError, match="--data"):
        recall.run(None)
    with pytest.raises(NotFoundError, match="nothing to measure"):
        recall.run(tmp_path)


@pytest.mark.parametrize("content", [[{}], 3, ["x"]])
def test_another_file_is_named(tmp_path: Path, content: object):
    """A file that is not of the set is not measured half."""
    path = written(tmp_path / "locomo.json.gz", content)
    with pytest.raises(TransferError, match=r"locomo\.json\.gz"):
        read_set("LoCoMo", path)


def test_the_command_prints_a_table_and_json(data: Path, tmp_path: Path):
    """The same numbers in both, and the answers in a file."""
    out = tmp_path / "answers.jsonl"
    shown = CliRunner().invoke(app, ["recall", "--data", str(data), "--quick", "--out", str(out)])
    assert (0, 7 * 4) == (shown.exit_code, len(out.read_text("utf-8").splitlines()))
    assert "LoCoMo, 2 questions, 4 turns" in shown.output
    for ranker in ("pagefile", "words only", "plain BM25", "dense alone"):
        assert re.search(rf"^ *[01]\.\d{{3}} .*{ranker} +turn share@10 *$", shown.output, re.MULTILINE)
    shown = CliRunner().invoke(app, ["recall", "--data", str(data), "--json"])
    assert 6 == len(json.loads(shown.stdout)["sets"])
