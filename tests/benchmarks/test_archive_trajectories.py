"""Recorded runs are read whole: nothing that was said or called is left out."""

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.trajectories import (
    Draft,
    Message,
    read_trajectories,
    split_calls,
    trajectory_files,
    user_text,
)
from pagefile.errors import NotFoundError, TransferError

CALL = {"name": "search", "args": {"q": "税"}, "id": "call_1", "type": "tool_call"}
OPENAI_CALL = {"id": "c", "type": "function", "function": {"name": "book", "arguments": '{"seat": "12A"}'}}


def said(*calls: object, text: str = "") -> str:
    return text + json.dumps(calls, ensure_ascii=False)


@pytest.mark.parametrize(
    ("content", "text", "calls"),
    [
        ("", "", []),
        ("Just text.", "Just text.", []),
        (said(CALL), "", [CALL]),
        (said(CALL, text="Let me look.\n"), "Let me look.", [CALL]),
        (said(OPENAI_CALL), "", [OPENAI_CALL]),
        ('[{"a": 1}]', '[{"a": 1}]', []),
        ("[{not JSON", "[{not JSON", []),
        ("See [1].\n[{broken", "See [1].\n[{broken", []),
        ("[{}, 3]", "[{}, 3]", []),
    ],
)
def test_calls_are_behind_the_text(content: str, text: str, calls: list[object]):
    """Both shapes of calls are found; whatever is not a list of calls is text."""
    assert (text, calls) == split_calls(content)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ('[{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]', "one\ntwo"),
        ('[{"type": "image", "url": "x"}]', '{"type": "image", "url": "x"}'),
        ("[a link](rag://x)", "[a link](rag://x)"),
    ],
)
def test_content_parts_of_a_user_are_their_texts(content: str, text: str):
    """What is not text stays JSON."""
    assert text == user_text(content)


def test_a_call_becomes_the_input_of_its_result():
    """By name, else in order; arguments that are JSON in a text are parsed."""
    draft = Draft()
    draft.hear(said(CALL, OPENAI_CALL))
    assert ("book", {"seat": "12A"}) == draft.answered("book")
    assert ("search", {"q": "税"}) == draft.answered("researcher")
    assert ("researcher", None) == draft.answered("researcher")
    assert ("tool", None) == draft.answered(None)
    assert draft.take() is None


def test_what_was_said_on_the_way_stays_with_the_result():
    """Text, and calls that nobody answered before the next ones came."""
    draft = Draft()
    draft.hear(said({"name": "hand_over", "args": {}}))
    draft.hear('[{"name": "", "args": {}, "id": null}]')
    draft.hear(said(CALL, text="Let me look.\n"))
    expected = '[{"name": "hand_over", "args": {}}]\nLet me look.'
    assert ["hand_over", "Let me look.", "税"] == [word for word in WORDS if word in "".join(draft.texts())]
    assert ("search", {"said": expected, "args": {"q": "税"}}) == draft.answered("search")
    assert [] == draft.texts()


WORDS = ("hand_over", "Let me look.", "税")


def test_at_the_end_nothing_is_left_over():
    """A call without a result is part of the answer; arguments that are not JSON stay as they are."""
    draft = Draft()
    draft.hear("Done.")
    draft.hear(said({"function": {"name": "f", "arguments": "{broken"}}))
    assert 'Done.\n[{"name": "f", "args": "{broken"}]' == draft.take()
    assert draft.take() is None


def written(path: Path, *lines: object) -> Path:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return path


def test_a_file_has_a_run_a_line(tmp_path: Path):
    """Runs have ids of their own even where the file repeats them; contents that are no text become JSON."""
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "tool", "content": {"n": 1}, "name": "count"},
    ]
    path = written(tmp_path / "traj-a.jsonl.gz", *[{"traj_id": "x", "messages": messages}] * 2)
    first, second = read_trajectories(path)
    assert [Message("user", "Hi"), Message("tool", '{"n": 1}', "count")] == list(first.messages)
    assert first.id != second.id
    assert [path] == trajectory_files(tmp_path)


def test_what_is_no_run_is_named(tmp_path: Path):
    """An empty folder, a file that is no gzip, a line that is no run."""
    with pytest.raises(NotFoundError, match=r"There are no runs in .*traj-\*"):
        trajectory_files(tmp_path)
    plain = tmp_path / "traj-b.jsonl.gz"
    plain.write_text("{}")
    with pytest.raises(TransferError, match=r"traj-b.jsonl.gz: this is not a file of runs \(BadGzipFile"):
        list(read_trajectories(plain))
    for line in ({}, [], {"messages": [{"role": "robot", "content": ""}]}):
        with pytest.raises(TransferError, match="this is not a file of runs"):
            list(read_trajectories(written(tmp_path / "traj-c.jsonl.gz", line)))
