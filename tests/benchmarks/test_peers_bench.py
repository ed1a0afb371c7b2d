"""`pagefile bench peers`: one conversation for everybody, honest lines, and pages that say what was measured."""

import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from benchmarks import peers, peers_all, recall_peers
from benchmarks.peers_all import OURS, PEERS
from benchmarks.peers_base import BUDGET, Given, pieces, with_memories
from benchmarks.peers_child import Course, Task, prefix_share, prompt_tokens, shared_prefix, walk
from benchmarks.peers_lines import IN_MEMORY, Line, lines_of, recall_lines, who_is_ahead
from benchmarks.peers_reasons import Told
from benchmarks.peers_script import PLANTED_IN, SERIAL, details, lines
from benchmarks.peers_vectors import Vectors, VectorServer
from pagefile.cli.bench import app
from pagefile.errors import NotFoundError
from pagefile.settings import Settings
from pagefile.testing import HashingEmbedder
from pagefile.text.tokens import open_counter

BENCHMARKS = Path(__file__).parents[2] / "docs" / "benchmarks"
MEM0, STORE, TRIMMING = "mem0", "LangGraph store", "LangChain trimming"


# -- the conversation -------------------------------------------------------------------------------------------------


def test_every_detail_is_said_once_and_asked_without_being_told():
    """A question that holds its answer would measure nothing."""
    said = [text for line in islice(lines(), 3 * PLANTED_IN) for text in line.texts]
    for detail in details():
        assert 1 == sum(detail.answer in text for text in said)
        assert detail.answer not in detail.question
    assert len(details()) == len({detail.question for detail in details()})
    assert {True, False} == {detail.in_result for detail in details()}
    assert {True, False} == {detail.question.isascii() for detail in details()}


def test_no_text_comes_twice_and_long_results_become_pages():
    """Nobody keeps one text for many; without its number, the talk repeats and its vectors are made once."""
    script = list(islice(lines(), 900))
    assert script == list(islice(lines(), 900))
    texts = [text for line in script for text in line.texts]
    assert len(texts) == len(set(texts))
    assert len({SERIAL.sub("", text) for text in texts}) < len(texts) / 2
    assert all(len(line.result) > Settings().archive.threshold for line in script if line.result)


# -- what is measured -------------------------------------------------------------------------------------------------


@given(st.text("ab"), st.text("ab"))
def test_a_shared_prefix_is_the_longest(one: str, other: str):
    """Both begin with it, and what comes next differs."""
    found = shared_prefix(one, other)
    assert one.startswith(found)
    assert other.startswith(found)
    assert one[len(found) : len(found) + 1] != other[len(found) : len(found) + 1] or found in (one, other)


def test_the_share_of_a_prompt_that_stays():
    """In tokens of the later prompt."""
    counter = open_counter()
    assert 1.0 == prefix_share("same words here", "same words here", counter)
    assert 0.0 == prefix_share("other", "same words here", counter)
    assert 3 / 7 == prefix_share("one two three and so on", "one two three, more or less", counter)


@given(st.lists(st.integers(0, 9000), max_size=8))
def test_what_was_found_never_breaks_the_budget(sizes: list[int]):
    """Prompts of stores keep to the same window as everybody's."""
    counter = open_counter()
    prompt = with_memories("Which one?", ["word " * size for size in sizes], counter)
    assert prompt_tokens(prompt, counter) <= BUDGET
    assert prompt[-1] == {"role": "user", "content": "Which one?"}


def test_pieces_make_up_the_text():
    """No character is lost between two."""
    assert "".join(pieces("长" * 2500)) == "长" * 2500
    assert [1000, 1000, 500] == [len(piece) for piece in pieces("长" * 2500)]


# -- lines ------------------------------------------------------------------------------------------------------------


def told(name: str, **changes: Any) -> Told:
    walked = {
        "turns": 200,
        "prompt_tokens": 7000,
        "over_budget": 0.0,
        "prefix_share": 0.9,
        "details": 34,
        "in_prompt": 30,
        "reached": 34,
        "bytes": 1000,
        "bytes_lost": 0,
    }
    grown = {
        "record_ms": 1.0,
        "ready_ms": 5.0,
        "recall_ms": 5.0,
        "context_ms": 5.0,
        "said": 24,
        "said_share": 1.0,
        "read_share": 1.0,
        "peak_mb": 200.0,
        "disk_bytes": 10_000_000,
    }
    walked |= {key: value for key, value in changes.items() if key in walked}
    grown |= {key: value for key, value in changes.items() if key in grown}
    points = [{**grown, "turns": turns} for turns in (100, 1000)]
    opened = changes.get("opened_mb", 120.0)
    return Told(name, walked, {"points": points, "stopped": None, "opened_mb": opened}, 10.0)


def line(name: str, *others: Told, sizes: tuple[int, ...] = (100, 1000)) -> Line:
    """The line, with every reason in full: no line of another size comes before it."""
    everybody = {one.name: one for one in (told(OURS), *others)}
    size = re.search(r"at ([\d,]+) turns", name)
    sizes = (int(size[1].replace(",", "")),) if size else sizes
    return next(one for one in lines_of(everybody, sizes) if one.name == name)


def test_who_is_ahead_beyond_chance():
    """A tenth of a time is noise; what was not measured is not ahead."""
    values = {OURS: 10.0, "a": 9.5, "b": 5.0, "c": 4.0, "d": 20.0, "e": None}
    assert ["c", "b"] == who_is_ahead(values, "less", "ms")
    assert ["d"] == who_is_ahead(values, "more", "ms")
    assert [] == who_is_ahead({"a": 1.0}, "less", "ms")
    assert ["a"] == who_is_ahead({OURS: 0.5, "a": 0.51}, "more", "share")


def test_a_line_survives_json():
    """Table and page are made from the file."""
    made = line("Record a turn, at 100 turns", told(STORE, record_ms=0.01, disk_bytes=0))
    back = Line.from_json(json.loads(json.dumps(made.to_json())))
    assert made.to_json() == back.to_json()


def test_who_has_no_disk_is_not_ahead_on_it():
    """Nothing on disk is no small size; who is smaller on a disk is ahead."""
    made = line("Disk, at 100 turns", told(STORE, disk_bytes=0), told(MEM0, disk_bytes=5_000_000))
    assert [MEM0] == made.ahead
    assert IN_MEMORY == made.values[STORE]
    alone = line("Disk, at 100 turns", told(STORE, disk_bytes=0))
    assert "nothing to compare with" == alone.verdict


def test_growth_is_a_line_when_there_are_two_sizes():
    """And none when there is only one."""
    assert 1.0 == line("Make a prompt, 1,000 turns beside 100").values[OURS]
    assert not [one for one in lines_of({OURS: told(OURS)}, (100,)) if "beside" in one.name]


def test_recall_is_behind_only_beyond_the_bounds():
    """A paired bootstrap decides, not the mean."""

    def measured(high: float, low: float = -0.05) -> Line:
        bounds = {"mean": -0.02, "low": low, "high": high}
        sets = {
            "set": "LoCoMo",
            "questions": 60,
            "figures": {"pagefile": {"turn share@5": 0.58}, "mem0": {"turn share@5": 0.6}},
            "ahead of": {"mem0": {"turn share@5": bounds}},
        }
        return recall_lines({"sets": [sets]})[0]

    assert [] == measured(0.01).ahead
    assert "level" == measured(0.01).verdict
    assert () == tuple(measured(0.05, 0.01).level)
    assert ["mem0"] == measured(-0.01).ahead


# -- everybody in this process ----------------------------------------------------------------------------------------


@pytest.fixture
def vectors():
    with VectorServer(HashingEmbedder()).serving() as address:
        yield Vectors(address)


async def walked(name: str, folder: Path, vectors: Vectors, turns: int = 40) -> dict[str, Any]:
    peer = PEERS[name](Given(folder, vectors))
    await peer.open()
    try:
        return await walk(Course(peer, folder), turns)
    finally:
        await peer.close()


async def test_vectors_come_from_elsewhere(vectors: Vectors):
    """The same as the embedder's own, whatever number a text has; the time that passes is known."""
    theirs = await HashingEmbedder().embed(["a cat", "a dog"])
    assert theirs.tolist() == (await vectors.embed(["a cat #0000001", "a dog #0000002"])).tolist()
    assert theirs.tolist() == vectors.now(["a cat #0000003", "a dog"])
    assert vectors.waited > 0
    assert (0, vectors.dimension) == vectors.asked([]).shape


@pytest.mark.slow
async def test_pagefile_loses_nothing(tmp_path: Path, vectors: Vectors):
    """Every byte is there, no prompt is over the budget, and what is not in the prompt is one call away."""
    found = await walked(OURS, tmp_path, vectors)
    assert 0 == found["bytes_lost"] < found["bytes"]
    assert 0 == found["over_budget"]
    assert found["reached"] >= found["in_prompt"]
    assert found["prefix_share"] > 0.5
    assert 40 == found["point"]["turns"]


async def test_trimming_loses_what_it_trims(tmp_path: Path, vectors: Vectors):
    """It keeps to the budget, and the rest is gone."""
    found = await walked("LangChain trimming", tmp_path, vectors)
    assert 0 == found["over_budget"]
    assert found["bytes_lost"] > found["bytes"] / 4
    assert found["point"]["recall_ms"] is None


async def test_summarizing_loses_what_it_summarizes(tmp_path: Path, vectors: Vectors):
    """Its summaries are written without a network."""
    found = await walked("LangChain summarization", tmp_path, vectors)
    assert 0 == found["over_budget"]
    assert found["bytes_lost"] > found["bytes"] / 4


async def test_editing_keeps_everything_and_breaks_the_budget(tmp_path: Path, vectors: Vectors):
    """Only tool results are cleared, and only in what is sent."""
    found = await walked("LangChain context editing", tmp_path, vectors, turns=64)
    assert 0 == found["bytes_lost"]
    assert found["over_budget"] > 0.3


async def test_a_store_keeps_everything(tmp_path: Path, vectors: Vectors):
    """Results in pieces are whole again when they are put together."""
    found = await walked(STORE, tmp_path, vectors)
    assert 0 == found["bytes_lost"]
    assert found["prefix_share"] < 0.3
    assert 0 == found["point"]["disk_bytes"]


@pytest.mark.parametrize("installed", [True, False])
def test_mem0_ranks_words_offline(installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its list of stop words is ours, instead of a download; without fastembed it does without words."""

    class Asked:
        @staticmethod
        def SparseTextEmbedding(**options: str) -> dict[str, str]:  # noqa: N802 - as fastembed spells it
            return options

    def found(_name: str) -> type[Asked]:
        if not installed:
            raise ImportError
        return Asked

    monkeypatch.setattr(recall_peers, "import_module", found)
    made = recall_peers.mem0_keywords(tmp_path / "bm25")
    if installed:
        assert {"model_name": "Qdrant/bm25", "specific_model_path": str(tmp_path / "bm25")} == made
        assert "the" in (tmp_path / "bm25" / "english.txt").read_text(encoding="utf-8").splitlines()
    else:
        assert made is False


# -- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_quick_run_beside_one_who_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Who is absent is told in the table, the JSON and the page."""
    monkeypatch.setattr(peers, "version_of", lambda peer: None if peer.name == MEM0 else "1.0")
    out, svg, made = (tmp_path / name for name in ("p.json", "p.svg", "p.md"))
    ran = CliRunner().invoke(
        app,
        ["peers", "--quick", "--only", "mem0", "--out", str(out), "--svg", str(svg), "--page", str(made)],
    )
    assert 0 == ran.exit_code, ran.output
    assert "pagefile[bench]" in ran.output
    report = json.loads(out.read_text(encoding="utf-8"))
    assert {OURS: "measured", MEM0: "absent"} == {one["name"]: one["status"] for one in report["peers"]}
    assert {"nothing to compare with"} == {one["verdict"] for one in report["lines"]}
    assert all(path.stat().st_size for path in (svg, made))


def test_one_who_fails_is_told_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch):
    """With its error; the command then ends with 1."""

    def done(task: Task, _out: Path, _timeout_s: float) -> Any:
        if task.peer != OURS:
            raise peers._FailedError("ValueError: no such thing")
        return {
            "start_mb": 1.0,
            "opened_mb": 2.0,
            **told(OURS).walk,
            "point": {**told(OURS).growth["points"][0], "turns": 100},
        }

    monkeypatch.setattr(peers, "_run", done)
    monkeypatch.setattr(peers, "version_of", lambda _peer: "1.0")
    report = peers.run(quick=True, only=["chroma"], embedder=HashingEmbedder())
    assert ["chromadb: failed: ValueError: no such thing"] == report.skipped
    assert not report.ok
    assert report.lines


def test_a_process_that_fails_says_why(tmp_path: Path):
    """The last line of what it printed."""
    task = Task("nobody", str(tmp_path), 1, "key", 1)
    with pytest.raises(peers._FailedError, match=r"Error"):
        peers._run(task, tmp_path / "out.json", 60)


def test_an_unknown_name_is_refused():
    """With the names there are."""
    with pytest.raises(NotFoundError, match="chromadb"):
        peers.run(quick=True, only=["zep"], embedder=HashingEmbedder())


def test_versions_are_those_installed():
    """None for what is not there."""
    assert peers_all.version_of(PEERS[OURS])
    absent = type("Absent", (PEERS[OURS],), {"package": "no-such-package-anywhere"})
    assert peers_all.version_of(absent) is None


# -- what is in the docs ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def committed() -> dict[str, Any]:
    return json.loads((BENCHMARKS / "peers.json").read_text(encoding="utf-8"))


def test_the_lines_follow_from_the_numbers(committed: dict[str, Any]):
    """The verdicts are those that the code finds in the same numbers today."""
    made = [one.to_json() for one in peers.peer_lines(committed["peers"], committed["sizes"])]
    assert [one["verdict"] for one in made] == [one["verdict"] for one in committed["lines"][: len(made)]]
