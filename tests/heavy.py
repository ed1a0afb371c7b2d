"""Tests that need more than `make setup` installs, and what that is.

`@heavy("claude")` says so of a test. `make test` leaves such tests out and says so at its end, wherever it runs; `make check` runs
them and no others, and there a part that is missing fails them. Plain `pytest` runs those whose part is there.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec

import pytest

from tests.integration.browser.axe import axe_path
from tests.integration.browser.chromium import chromium_path

#: What `--heavy` can be: how `make test`, plain `pytest` and `make check` treat these tests.
MODES = ("left-out", "if-there", "required")
#: The name under which a report tells which part its test was left out for.
_LEFT_OUT = "left out for"


@dataclass(frozen=True)
class Part:
    """Something heavy: what it is, whether it is here, how to get it."""

    what: str
    is_there: Callable[[], bool]
    how: str

    @property
    def missing(self) -> str:
        """What to say where it is missing."""
        return f"{self.what} is missing: {self.how}"


def _has_milvus() -> bool:
    from tests.servers.milvus import installed

    return installed() is not None


PARTS = {
    "axe": Part(
        "Chromium or axe-core",
        lambda: chromium_path() is not None and axe_path() is not None,
        "`make check` installs axe-core; `sudo apt-get install chromium`, or name one in CHROMIUM",
    ),
    "chromium": Part(
        "Chromium",
        lambda: chromium_path() is not None,
        "`sudo apt-get install chromium`, or name one in CHROMIUM",
    ),
    "claude": Part(
        "the extra `claude`",
        lambda: find_spec("claude_agent_sdk") is not None,
        "`make check` installs it, 380 MB",
    ),
    "helm": Part(
        "helm, hadolint or the schemas of Kubernetes",
        lambda: find_spec("kubernetes_validate") is not None,
        "`make check` installs them, 90 MB",
    ),
    "milvus": Part(
        "a Milvus server",
        _has_milvus,
        "`make check` installs it, half a gigabyte",
    ),
}


def heavy(part: str) -> pytest.MarkDecorator:
    """The mark of a test that needs this part."""
    assert part in PARTS, f"there is no part {part!r}: {', '.join(PARTS)}"
    return pytest.mark.heavy(part)


def is_there(part: str) -> bool:
    """Whether a part is here, for imports that need it."""
    return PARTS[part].is_there()


def told(parts: Iterable[str]) -> list[str]:
    """What was left out, a line for each part, and who runs it."""
    lines: list[str] = []
    for part, count in sorted(Counter(parts).items()):
        known = PARTS[part]
        tests = "1 test that needs" if count == 1 else f"{count} tests that need"
        lines.append(
            f"{tests} {known.what}" + ("" if known.is_there() else f", which is missing: {known.how}")
        )
    return [*lines, "`make check` runs them, and fails where something is missing."] if lines else []


# -- what pytest calls ------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--heavy` says what becomes of these tests."""
    parser.addoption(
        "--heavy", choices=MODES, default="if-there", help="tests that need a heavy part (%(default)s)"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is not to run as skipped, so that it is counted."""
    mode = config.getoption("--heavy")
    for item in items:
        part = _needed_by(item)
        if part is None or mode == "required" or (mode == "if-there" and is_there(part)):
            continue
        reason = f"needs {PARTS[part].what}" if is_there(part) else PARTS[part].missing
        item.add_marker(pytest.mark.skip(reason=reason))
        item.user_properties.append((_LEFT_OUT, part))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test whose part is required and missing."""
    part = _needed_by(item)
    if part is not None and item.config.getoption("--heavy") == "required" and not is_there(part):
        pytest.fail(PARTS[part].missing, pytrace=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what was left out."""
    lines = told(
        part
        for report in terminalreporter.stats.get("skipped", [])
        for name, part in getattr(report, "user_properties", [])
        if name == _LEFT_OUT
    )
    if lines:
        terminalreporter.section("left out")
        terminalreporter.write_line("\n".join(lines))


def _needed_by(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("heavy")
    return mark.args[0] if mark else None
