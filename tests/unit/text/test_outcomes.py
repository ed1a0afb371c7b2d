"""What is kept of a run's output whatever the question was."""

import pytest

from pagefile.text.outcomes import outcome

NOISE = "collected lines of progress and logs\n" * 400

ENDS = {
    "pytest": (
        (
            "FAILED tests/test_a.py::test_b - AssertionError: assert 1 == 2\n"
            "============ 1 failed, 7 passed in 3.21s ============"
        ),
        [
            "FAILED tests/test_a.py::test_b - AssertionError: assert 1 == 2",
            "============ 1 failed, 7 passed in 3.21s ============",
        ],
    ),
    "unittest": (
        "FAIL: test_b (test_a.Case)\nRan 8 tests in 0.012s\n\nFAILED (failures=1)",
        ["FAIL: test_b (test_a.Case)", "Ran 8 tests in 0.012s", "FAILED (failures=1)"],
    ),
    "cargo": (
        "test tests::adds ... FAILED\ntest result: FAILED. 3 passed; 1 failed; 0 ignored",
        ["test tests::adds ... FAILED", "test result: FAILED. 3 passed; 1 failed; 0 ignored"],
    ),
    "jest": ("Tests:       1 failed, 3 passed, 4 total", ["Tests:       1 failed, 3 passed, 4 total"]),
    "maven": (
        "[ERROR] Tests run: 9, Failures: 2, Errors: 0",
        ["[ERROR] Tests run: 9, Failures: 2, Errors: 0"],
    ),
    "gradle": (
        "12 tests completed, 1 failed\nBUILD FAILED in 3s",
        ["12 tests completed, 1 failed", "BUILD FAILED in 3s"],
    ),
}


@pytest.mark.parametrize("runner", list(ENDS))
def test_what_failed_and_the_counts_are_found(runner):
    """However far from the beginning they stand."""
    end, expected = ENDS[runner]
    assert expected == outcome(f"{NOISE}{end}\n")


@pytest.mark.parametrize(
    "text", ["", NOISE, "FAILED to reach the office\nbecause of rain.", '{"rows": [1, 2]}']
)
def test_other_texts_have_no_outcome(text):
    """A word such as FAILED alone makes no run of tests."""
    assert [] == outcome(text)
