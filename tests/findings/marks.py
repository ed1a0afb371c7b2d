"""How a test says which finding it reproduces, and whether the finding is still open."""

import pytest


def finding(name):
    """A finding that is mended: its test passes and keeps it so. `name` is file and number, such as "security-F3"."""
    return pytest.mark.finding(name)


def still_open(name, why=""):
    """A finding that is not mended yet: its test fails by an assertion, and must be unmarked when it no longer does."""

    def mark(test):
        expected = pytest.mark.xfail(strict=True, raises=AssertionError, reason=why or f"{name} is open")
        return pytest.mark.finding(name)(expected(test))

    return mark


#: A race or a load that has no deterministic form: run by `make findings` only, which prints its counts.
load = pytest.mark.load
