"""The indexes of findings and the tests of findings agree."""

from collections import Counter

from scripts import findings

LISTED = list(findings.listed())
MARKED = list(findings.marked())


def test_a_finding_has_either_a_test_or_a_reason():
    """Each finding of an index has a test, or says why it has none, and never both."""
    tested = {test.name for test in MARKED}
    assert [] == [row.name for row in LISTED if (row.name in tested) == bool(row.reason.strip())]


def test_a_finding_is_listed_once_and_says_what_it_is():
    """Each finding has a title in one line and a name of its own."""
    assert [] == [row.name for row in LISTED if not row.title.strip() or "\n" in row.title + row.reason]
    assert [] == [name for name, times in Counter(row.name for row in LISTED).items() if times > 1]


def test_the_finding_of_every_test_is_listed():
    """A test that names a finding which no index has proves nothing to anybody who reads the index."""
    known = {row.name for row in LISTED}
    assert [] == [f"{test.test}: {test.name}" for test in MARKED if test.name not in known]


def test_a_load_is_never_expected_to_fail():
    """A race may go right by chance, so a load counts and is not marked open."""
    assert [] == [test.test for test in MARKED if test.load and test.still_open]
