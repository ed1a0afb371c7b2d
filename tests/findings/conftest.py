"""Loads run when they are asked for; what a test counted is printed at the end."""

import pytest


def pytest_addoption(parser):
    """`--loads` runs the races and loads that `make findings` runs."""
    parser.addoption("--loads", action="store_true", help="run the findings that are races or loads, too")


def pytest_collection_modifyitems(config, items):
    """Leave loads out where nobody asked for them."""
    if config.getoption("--loads", default=False):
        return
    left_out = [item for item in items if item.get_closest_marker("load")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def counted(record_property):
    """Tell how often a race was tried and how often it went wrong: `counted(tries=60, wrong=10)`."""
    return lambda **counts: record_property("counted", counts)
