"""Each requirement has a test that is there and runs, and the page that says so is the one the script writes."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from scripts import traceability

from .named_tests import complaint
from .scans import ROOT

GROUPS = traceability.known_groups()
ROWS = list(traceability.written_rows())


def of(group: traceability.Group) -> list[traceability.Requirement]:
    return [row for row in ROWS if row.id in group.ids]


def by_heading(group: traceability.Group) -> str:
    return f"{group.ids[0]} to {group.ids[-1]}"


each_group = pytest.mark.parametrize("group", GROUPS, ids=by_heading)


@each_group
def test_every_id_has_a_test(group: traceability.Group):
    """No requirement without a row, no row without a test, and each said in one line."""
    assert [] == sorted(set(group.ids) - {row.id for row in of(group) if row.tests})
    assert [] == [row.id for row in of(group) if not row.says.strip() or "\n" in row.says]


def test_no_row_is_unknown_or_written_twice():
    """A row that no id of the list asks for proves nothing."""
    known = [id_ for group in GROUPS for id_ in group.ids]
    assert [] == sorted({row.id for row in ROWS} - set(known))
    assert [] == [id_ for id_, times in Counter(known + [row.id for row in ROWS]).items() if times > 2]


@each_group
def test_every_named_test_is_there_and_runs(group: traceability.Group):
    """A test that was renamed, removed or switched off proves nothing any more."""
    assert [] == [
        f"{row.id}: {found}" for row in of(group) for test in row.tests if (found := complaint(test))
    ]


@each_group
def test_no_test_is_named_twice_by_a_row(group: traceability.Group):
    """A test proves no more by standing there twice."""
    assert [] == [row.id for row in of(group) if len(set(row.tests)) != len(row.tests)]


def test_every_number_is_one_of_a_benchmark():
    """`bench` names a benchmark that there is, and where its results are committed, they have the number."""
    assert {one.bench for row in ROWS for one in row.measured} <= {
        *re.findall(r"^def (\w+)\(", (ROOT / "benchmarks/cli.py").read_text("utf-8"), re.MULTILINE),
        "short-term",
        "peers",
    }
    for row in ROWS:
        for one in row.measured:
            one.told()


def test_the_page_is_what_the_script_writes():
    """`make traceability` was run after the last change of a row."""
    assert traceability.page(GROUPS, ROWS) == traceability.PAGE.read_text(encoding="utf-8")


# -- the tests above can fail ------------------------------------------------------------------------------------------

SOMEWHERE = """
import pytest
from pagefile.testing import contracts
from pagefile.testing.contracts import TurnLogContract as Renamed
from .helping import Helper

class Backend: ...
class TestHere(Backend, contracts.TurnLogContract):
    async def test_own(self): ...
class TestRenamed(Renamed): ...
class TestHelped(Helper): ...
class TestUnknown(Elsewhere): ...
@pytest.mark.skip(reason="one day")
class TestOff:
    def test_own(self): ...

def test_plain(): ...
async def test_waiting(): ...
def helper(): ...
@pytest.mark.skip
def test_skipped(): ...
@pytest.mark.skipif(True, reason="never")
def test_never(): ...
@pytest.mark.xfail
def test_failing(): ...
def test_giving_up():
    "A docstring."
    pytest.skip("not today")
@pytest.mark.skipif(helper(), reason="where it cannot run")
def test_sometimes():
    if helper():
        pytest.skip("where it cannot run")
"""


@pytest.fixture
def somewhere(tmp_path: Path) -> Path:
    """A tree of one file of tests, and the contracts of this one."""
    (tmp_path / "src").symlink_to(ROOT / "src")
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_here.py").write_text(SOMEWHERE, encoding="utf-8")
    (folder / "helping.py").write_text("class Helper:\n    def test_helped(self): ...\n", encoding="utf-8")
    (folder / "test_off.py").write_text(
        "import pytest\npytestmark = [pytest.mark.slow, pytest.mark.skip]\ndef test_plain(): ...\n",
        encoding="utf-8",
    )
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "test_plain",
        "test_waiting",
        "test_sometimes",
        "TestHere::test_own",
        "TestHere::test_seq_counts_what_ended_without_gaps",
        "TestRenamed::test_seq_counts_what_ended_without_gaps",
        "TestHelped::test_helped",
    ],
)
def test_a_test_is_found(somewhere: Path, name: str):
    """Functions, methods, and what a class inherits, also from a contract."""
    assert complaint(f"tests/test_here.py::{name}", somewhere) is None


@pytest.mark.parametrize(
    ("node_id", "why"),
    [
        ("tests/test_gone.py::test_plain", "no such file of tests"),
        ("tests/helping.py::Helper::test_helped", "no such file of tests"),
        ("tests/test_here.py::test_gone", "no such test"),
        ("tests/test_here.py::helper", "no such test"),
        ("tests/test_here.py::Backend::test_own", "no such test"),
        ("tests/test_here.py::TestHere", "no such test"),
        ("tests/test_here.py::TestHere::test_gone", "no such test"),
        ("tests/test_here.py::TestUnknown::test_own", "no such test"),
        ("tests/test_here.py::test_plain[1]", "no such test"),
        ("tests/test_here.py::test_skipped", "is always skipped"),
        ("tests/test_here.py::test_never", "is always skipped"),
        ("tests/test_here.py::test_failing", "is always skipped"),
        ("tests/test_here.py::test_giving_up", "is always skipped"),
        ("tests/test_here.py::TestOff::test_own", "is always skipped"),
        ("tests/test_off.py::test_plain", "is always skipped"),
    ],
)
def test_a_test_that_is_gone_or_off_is_noticed(somewhere: Path, node_id: str, why: str):
    assert f"{node_id}: {why}" == complaint(node_id, somewhere)


RESULTS = json.loads(
    '{"rows": [{"name": "one", "value": 79.853, "unit": "% saved"}, {"name": "two", "value": 1234.5, "unit": "ms"}],'
    ' "sizes": {"turns": [7, 32299]}, "ok": true}'
)


@pytest.mark.parametrize(
    ("at", "unit", "told"),
    [
        (("rows", "one"), "", "79.9% saved"),
        (("rows", "two"), "", "1,234 ms"),
        (("rows", "one", "value"), "points", "79.9 points"),
        (("sizes", "turns", -1), "tokens", "32,299 tokens"),
    ],
)
def test_a_number_is_found(at: tuple[str | int, ...], unit: str, told: str):
    assert told == traceability.Measured("some", at, unit).found_in(RESULTS)


@pytest.mark.parametrize(
    "at",
    [("rows", "three"), ("rows", 2), ("size",), ("sizes",), ("sizes", "turns", 0), ("ok",), ("ok", "rows")],
)
def test_a_number_that_is_not_there_is_noticed(at: tuple[str | int, ...]):
    """The last but one is not a number, and a number without a unit says nothing."""
    with pytest.raises(traceability.MissingNumberError):
        traceability.Measured("some", at).found_in(RESULTS)


def test_ranges_are_written_out():
    assert [traceability.Group("Two things", ("C9-9", "C9-10"))] == traceability.groups(
        "# a comment\n\nC9-9 C9-10 Two things\n"
    )


def test_a_page_tells_what_is_missing():
    """An id without a row is on the page as one; bars and brackets stay in their cells."""
    row = traceability.Requirement("Z-1", "a|b <memory> `<x>`", ("tests/test_a.py::TestB::test_c",))
    page = traceability.page([traceability.Group("Zs", ("Z-1", "Z-2"))], [row])
    assert "| Z-1 | a\\|b &lt;memory> `<x>` | [TestB::test_c](../tests/test_a.py) |  |" in page
    assert "| Z-2 | | **no test** | |" in page
