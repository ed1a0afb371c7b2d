"""What is left of an answer of our own reading tools, once its turn is over."""

from pagefile.records import Step
from pagefile.window.forms import note_of
from pagefile.window.measure import measured_step
from pagefile.window.placeholder import SEARCH_TOOL
from pagefile.window.wording import ZH

UUID = "123e4567-e89b-42d3-a456-426614174000"
OTHER = UUID.replace("123e", "987f")


def notes(result, tool=SEARCH_TOOL):
    """The texts that stand for a result when there is little room."""
    step = measured_step(Step(tool, {"query": "阀门"}, result, "call"), len)
    note = note_of(step, len, ZH)
    return [note.text] if note else []


def test_the_placeholders_are_left():
    """A line for each page, once, whatever was quoted of it."""
    lines = [
        f'📎 [存档:{uuid}] 已检索9字，摘要：阀… load_tool_history(uuid="{uuid}")' for uuid in (UUID, OTHER)
    ]
    quoted = "\n\n".join(
        f"{line}\nfetch: 阀门 (2026-05-01)\n阀门 V-42 在二楼。" for line in [*lines, lines[0]]
    )
    assert notes(quoted) == ["\n".join(lines)]


def test_pages_that_are_told_otherwise_are_named():
    """Who writes hits in a form of their own still finds back."""
    (note,) = notes(f'[{{"uuid": "{UUID}", "passage": "{"阀门" * 300}"}}, {{"uuid": "{OTHER}"}}]')
    assert all(f'load_tool_history(uuid="{uuid}")' in note for uuid in (UUID, OTHER))
    assert len(note) < 400


def test_what_is_short_or_anothers_stays_as_it_is():
    """Nothing found is short enough, and what other tools said can be had from nowhere else."""
    assert notes("[无结果] 阀门") == []
    assert notes(f"{UUID} " + "阀门" * 300, tool="search") == []
