"""`pagefile bench runs`: the ruler counts what it says, and each way gets every event."""

import gzip
import json

import pytest

from benchmarks import runs
from benchmarks.runs_data import Event, Run, read_runs
from benchmarks.runs_headroom import INTERPRETER
from benchmarks.runs_messages import Chat
from benchmarks.runs_ruler import Ruler, Score, moments
from benchmarks.runs_ways import Row, last_whole, oldest_out
from pagefile.errors import InvalidArgumentError, NotFoundError, TransferError

LINE = "fn settle(ledger: &mut Ledger, entry: Entry) -> Result<Balance>;"
RESULT = f"{'x' * 900}\n{LINE}\n{'y' * 900}"
RUN = Run(
    "r",
    (
        Event("user", "Find settle."),
        Event("call", '{"cmd": "grep settle"}', "bash", {"cmd": "grep settle"}),
        Event("result", RESULT),
        Event("agent", f"It is `{LINE}`", said="…"),
    ),
)


def _scored(shown_of):
    score = Score()
    ruler, history = Ruler(score), []
    for moment in moments(RUN):
        if moment.is_called_for:
            ruler.prompt([shown_of(event) for event in history])
        ruler.happened(moment)
        history.append(moment.event)
    return score


def test_what_the_agent_copies_must_have_been_in_view():
    """The line is in the result only: whole it is in view, cut it is not."""
    assert [(LINE,)] == [moment.spans for moment in moments(RUN) if moment.spans]
    whole = _scored(lambda event: event.text)
    cut = _scored(lambda event: event.text[:120])
    assert (1.0, 0.0, 1.0) == (whole.in_view, whole.saved, whole.prefix)
    assert 0.0 == cut.in_view
    assert cut.saved == pytest.approx(1 - (12 + 12 + 22 + 120) / (12 + 12 + 22 + len(RESULT)))


def test_a_changed_text_ends_the_prefix():
    """What follows it counts as new, however equal."""
    score = Score()
    ruler = Ruler(score)
    ruler.prompt(["aaaa", "bbbb", "cccc"])
    ruler.prompt(["aaaa", "BBBB", "cccc", "dddd"])
    assert score.prefix == pytest.approx(1 / 3)


def test_the_simple_rules_page_out_the_oldest_results():
    rows = [Row(Event("result", letter * 4000), letter * 4000) for letter in "abcd"]
    oldest_out(3500, 2500)(rows)
    assert [True, True, False, False] == [len(row.shown) < 200 for row in rows]
    rows = [Row(Event("result", letter * 4000), letter * 4000) for letter in "abcdef"]
    last_whole(2, 3)(rows)
    assert [True, True, True, True, False, False] == [len(row.shown) < 200 for row in rows]


def _write(path, *runs_):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(run) + "\n" for run in runs_)


EVENTS = {
    "run": "one",
    "events": [
        {"type": "message", "role": "user", "text": "Find settle."},
        {"type": "operation.started", "operation": {"name": "bash", "input": {"cmd": "grep\nsettle"}}},
        {"type": "operation.finished", "output": {"stdout": RESULT}},
        {"type": "message", "role": "assistant", "text": f"It is `{LINE}`"},
    ],
}
MESSAGES = {
    "traj_id": "two",
    "messages": [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "Find settle."},
        {"role": "assistant", "content": 'Let me look.\n[{"name": "bash", "args": {"cmd": "grep settle"}}]'},
        {"role": "tool", "name": "bash", "content": RESULT},
        {"role": "tool", "name": "bash", "content": "a result whose call was not recorded"},
        {"role": "assistant", "content": f"It is `{LINE}`"},
    ],
}


def test_both_formats_are_read(tmp_path):
    _write(tmp_path / "coding-runs-x.jsonl.gz", EVENTS)
    _write(tmp_path / "traj-x.jsonl.gz", MESSAGES)
    (coding,) = read_runs(tmp_path / "coding-runs-x.jsonl.gz")
    (chat,) = read_runs(tmp_path / "traj-x.jsonl.gz")
    assert ["user", "call", "result", "agent"] == [event.kind for event in coding.events]
    assert '{"cmd": "grep\nsettle"}' == coding.events[1].text
    assert (("bash", {"cmd": "grep settle"}),) == chat.events[2].calls
    assert "Let me look." == chat.events[2].said


def test_every_way_plays_every_run(tmp_path, monkeypatch):
    """The same calls and spans for everybody; without anything done, nothing is saved and everything is in view."""
    _write(tmp_path / "coding-runs-x.jsonl.gz", EVENTS)
    _write(tmp_path / "traj-x.jsonl.gz", MESSAGES)
    monkeypatch.delenv(INTERPRETER, raising=False)
    report = runs.run(tmp_path, quick=True, progress=lambda _: None)
    assert [why.partition(" ")[0] for why in report.left_out] == ["Headroom"]
    by_source = {}
    for line in report.lines:
        by_source.setdefault(line.source, []).append(line)
    for lines in by_source.values():
        assert len(lines) > 10
        assert {(lines[0].score.calls, lines[0].score.spans)} == {
            (line.score.calls, line.score.spans) for line in lines
        }
        assert (0.0, 1.0) == (lines[0].score.saved, lines[0].score.in_view)
        assert {1.0} == {line.score.in_view for line in lines if line.way.startswith("Pagefile")}


def test_a_folder_or_a_file_without_runs_is_named(tmp_path):
    with pytest.raises(NotFoundError, match="--data"):
        runs.run(tmp_path, quick=True, progress=lambda _: None)
    (tmp_path / "traj-x.jsonl.gz").write_bytes(b"nothing")
    with pytest.raises(TransferError, match=r"traj-x\.jsonl\.gz"):
        runs.run(tmp_path, quick=True, progress=lambda _: None)


def test_a_part_of_the_runs_is_named_by_its_number():
    assert (1, 3) == runs.Part.of("2/3")
    for wrong in ("", "0/2", "3/2", "half"):
        with pytest.raises(InvalidArgumentError, match="--part"):
            runs.Part.of(wrong)


def test_a_result_answers_the_last_message_that_called():
    """A handoff that no result answered is not what a later result answers."""
    chat = Chat()
    handoff, search = (Event("agent", "", calls=((name, {}),)) for name in ("handoff", "search"))
    chat.messages(handoff)
    [called] = chat.messages(search)
    [answer] = chat.messages(Event("result", "found"))
    assert called["tool_calls"][0]["id"] == answer["tool_call_id"]
