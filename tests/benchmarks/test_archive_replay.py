"""A replay counts what a model would have been sent, with the archive and without it."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from benchmarks.bulk import KINDS, chinese_prose, english_prose
from benchmarks.replay import Replayed, Tally, TurnEnd, replay
from benchmarks.trajectories import Message, Trajectory
from pagefile.text.tokens import open_counter

pytestmark = pytest.mark.anyio

COUNTER = open_counter()


def call(query: str) -> Message:
    return Message("assistant", json.dumps([{"name": "search", "args": {"query": query}}]))


def run(result_chars: int) -> Trajectory:
    """Two questions; for the first one, two results come in two model calls."""
    messages = [
        Message("system", "Be brief."),
        Message("user", "What is known?"),
        call("one"),
        Message("tool", english_prose(result_chars, 1), "search"),
        call("two"),
        Message("tool", english_prose(result_chars, 2), "search"),
        Message("assistant", "This is known."),
        Message("user", "Thank you!"),
        Message("assistant", ""),
        Message("assistant", "You are welcome."),
        Message("user", "Bye."),
    ]
    return Trajectory("run", messages)


async def replayed(tmp_path: Path, trajectory: Trajectory, turn_end: TurnEnd, threshold: int = 4000) -> Tally:
    one, everything = await replay(
        tmp_path / f"{uuid4()}.db",
        [("made up", [trajectory])],
        COUNTER,
        threshold=threshold,
        turn_end=turn_end,
    )
    assert ("made up", "all", 1, 1) == (one.source, everything.source, one.runs, everything.runs)
    assert one.tally == everything.tally
    return one.tally


async def test_without_pages_both_sides_are_the_same(tmp_path: Path):
    """The count in full is what the engine itself counts while nothing is archived: like is compared with like."""
    tally = await replayed(tmp_path, run(300), "next question")
    assert (5, 0, 0, 0, 0) == (tally.calls, tally.left, tally.pages, tally.wrong, tally.cut)
    assert tally.without_tokens == tally.with_tokens > 0
    assert 0 == tally.saved


async def test_a_result_leaves_with_the_turn_that_fetched_it(tmp_path: Path):
    """Inside its turn it is in full; every page loads byte for byte."""
    whole = await replayed(tmp_path, run(6000), "next question", threshold=10_000)
    assert (0, 2) == (whole.left, whole.pages)
    tally = await replayed(tmp_path, run(6000), "next question", threshold=4000)
    assert (2, 2, 0) == (tally.left, tally.pages, tally.wrong)
    assert tally.saved > 0.2


async def test_a_result_may_leave_after_one_model_call(tmp_path: Path):
    """Then the run's own later calls are cheaper too, and the line that stands for the user is paid for."""
    by_question = await replayed(tmp_path, run(6000), "next question")
    by_call = await replayed(tmp_path, run(6000), "next model call")
    assert by_call.calls == by_question.calls
    assert by_call.saved > by_question.saved
    short = await replayed(tmp_path, run(300), "next model call")
    assert short.with_tokens > short.without_tokens


async def test_a_line_is_json():
    """With everything that was counted."""
    line = Replayed(
        "a", "next question", 4000, 2, Tally(calls=3, without_tokens=100, with_tokens=25, pages=1)
    )
    told = json.loads(json.dumps(line.to_json()))
    assert (4000, 2, 3, 0.75) == (told["threshold"], told["runs"], told["calls"], told["saved"])
    assert 0 == Tally().saved


@pytest.mark.parametrize("kind", KINDS)
def test_bulk_is_made_to_measure(kind: str):
    """As long as asked, the same for the same seed, another for another."""
    make = KINDS[kind]
    text = make(20_000, 1)
    assert 20_000 <= len(text) < 20_600
    assert text == make(20_000, 1)
    assert text != make(20_000, 2)


def test_json_is_json_and_prose_is_exact():
    """The scenario counts characters, so prose is cut to the character."""
    assert isinstance(json.loads(KINDS["JSON"](5000, 3)), list)
    assert 50_000 == len(chinese_prose(50_000))
