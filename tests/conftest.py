"""What every test shares."""

import asyncio
import atexit
import gc
import inspect
import os
import shutil
import signal
import ssl
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.forks", "tests.heavy"]

# Whoever starts the tests in the background may have told them to ignore Ctrl-C; the commands they start would ignore it too.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: A filesystem in memory; databases there wait for no disk, and what a killed process wrote survives it all the same.
_SHM = Path("/dev/shm")
_SHM_BYTES = 4 << 30


def _in_memory():
    """Whether temporary files of the tests, programs among them, fit into memory."""
    try:
        return shutil.disk_usage(_SHM).free >= _SHM_BYTES and not os.statvfs(_SHM).f_flag & os.ST_NOEXEC
    except OSError:
        return False


if "TMPDIR" not in os.environ and os.access(_SHM, os.W_OK) and _in_memory():
    os.environ["TMPDIR"] = str(_SHM)
    tempfile.tempdir = None

# Reading the world's certificates takes 50 ms, and hundreds of clients here talk to this machine only.
ssl.create_default_context = cache(ssl.create_default_context)

# What is imported and collected lives until the end; Python would look through all of it again and again.
# Every event loop looks through all tasks that are left, so the young ones are collected soon.
gc.set_threshold(20_000, 20, 20)

# A busy machine is no failure. What is found is printed so that it can be played again; `.ci/run` always plays the same.
settings.register_profile(
    "default", deadline=None, print_blob=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
# Whoever runs the tests without a profile plays others every time.
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=2000)
settings.load_profile("default")


@pytest.fixture
def own_loop():
    """The loop that PydanticAI's `run_sync` finds; it makes one otherwise, and never closes it."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


#: The files that take longest, longest first: what is long and begins last is waited for alone.
_LONGEST_FIRST = (
    "integration/workers/test_workers.py",
    "contract/test_duckdb.py",
    "docs/test_pages.py",
    "races/test_races.py",
    "faults/test_kills.py",
    "contract/test_postgres.py",
    "acceptance/test_memory.py",
    "acceptance/test_demo.py",
    "crossing/test_crossing.py",
    "faults/test_erasing_full.py",
    "property/window/test_renderings.py",
    "fuzz/test_imports.py",
    "property/stores/test_postgres_same_as_oracle.py",
    "docs/test_site.py",
    "fuzz/test_bounded_time.py",
    "integration/engine/test_messages_replayed.py",
    "architecture/test_import.py",
    "benchmarks/test_peers_bench.py",
    "integration/fuzz/test_wire.py",
    "acceptance/test_cli_process.py",
    "contract/test_sqlite.py",
    "integration/standalone/test_episodes_erased.py",
    "property/service/test_keys_properties.py",
    "property/stores/test_same_as_oracle.py",
    "integration/fuzz/test_schema.py",
    "integration/postgres/test_old_databases.py",
    "faults/test_versions.py",
    "benchmarks/test_history_bench.py",
    "integration/verify/test_verify_postgres.py",
    "property/memory/test_replay.py",
)


def pytest_collection_modifyitems(items):
    """Begin with what takes longest."""
    here = Path(__file__).parent
    places = {here / name: place for place, name in enumerate(_LONGEST_FIRST)}

    def place(item):
        return places.get(item.path, len(places))

    items.sort(key=place)
    for item in items:
        # What waits for processes takes minutes on a machine with far more to do than it can.
        if item.get_closest_marker("waits") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(600))
    _check_names(items)


def pytest_collection_finish():
    gc.freeze()
    # Extensions look at the very end for objects that nobody freed; before it, nobody goes through all of them again.
    atexit.register(gc.unfreeze)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(name, obj):
    """Pytest passes over a class that leaves a fixture of a contract open, and nobody hears of its tests."""
    if name.startswith("Test") and inspect.isabstract(obj):
        left_open = ", ".join(sorted(obj.__abstractmethods__))
        raise pytest.UsageError(f"{obj.__module__}.{name} runs no test: it lacks {left_open}")


def _check_names(items):
    """Tests with one name cannot be told apart: not in what is reported, nor by whoever runs one of them again."""
    twice = [name for name, count in Counter(item.nodeid for item in items).items() if count > 1]
    if twice:
        raise pytest.UsageError(f"Several tests are called {', '.join(twice)}: give each a name of its own.")


@pytest.fixture
def anyio_backend():
    """Pagefile runs on asyncio."""
    return "asyncio"


def pytest_terminal_summary(terminalreporter):
    """How long it took to recover from each fault, in every run that had faults."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    lines = [
        line
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, line in report.user_properties
        if name == "recovered"
    ]
    if lines:
        terminalreporter.section("recovered")
        terminalreporter.write_line("\n".join(lines))
