"""Runs test files in several processes, `--forks 4`: each is a fork of one that has imported and collected every test.

Importing and collecting takes longer than most files run, and pytest-xdist has every worker do it again. As there, a file runs in one
process, and the next one goes to whoever is free.
"""

import atexit
import os
import random
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, groupby
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn
from warnings import WarningMessage

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--forks` says how many processes there are; none: the tests run here."""
    parser.addoption("--forks", type=int, default=0, help="how many processes run test files (%(default)s)")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Give the files to forks of this process."""
    option = session.config.option
    if (
        not option.forks
        or option.collectonly
        or (session.testsfailed and not option.continue_on_collection_errors)
    ):
        return None
    _Run(session).play()
    return True


@dataclass
class _Fork:
    """A process and the tests it was given; the first of them is the one it runs."""

    process: int
    line: Connection
    given: list[int] = field(default_factory=list[int])


class _Run:
    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._config = session.config
        # Files in the order of their tests; a file's tests stay together.
        places = groupby(range(len(session.items)), lambda place: session.items[place].path)
        self._files = iter([list(found) for _, found in places])
        self._forks: dict[Connection, _Fork] = {}
        self._numbers = count()

    def play(self) -> None:
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            # The files are not reported one after the other.
            reporter.showfspath = False
        try:
            for _ in range(self._config.option.forks):
                self._start([])
            while self._forks:
                for line in wait(list(self._forks)):
                    assert isinstance(line, Connection)
                    self._hear(self._forks[line])
                    if self._session.shouldfail:
                        raise self._session.Failed(self._session.shouldfail)
                    if self._session.shouldstop:
                        raise self._session.Interrupted(self._session.shouldstop)
        finally:
            # What ends them early is the end of their lines: they tear down what they have set up.
            for line in self._forks:
                line.close()
            for fork in self._forks.values():
                os.waitpid(fork.process, 0)

    def _start(self, given: list[int]) -> None:
        number = next(self._numbers)
        # Made before the fork: it is removed when the run ends.
        base = self._config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        ours, its = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if not process:
            for line in (ours, *self._forks):
                line.close()
            _Worker(self._session, its, base / f"fork-{number}").live(given)
        its.close()
        self._forks[ours] = _Fork(process, ours, given)

    def _hear(self, fork: _Fork) -> None:
        try:
            kind, said = fork.line.recv()
        except (EOFError, ConnectionResetError):
            self._ended(fork)
            return
        hook = self._config.hook
        if kind == "next":
            given = next(self._files, [])
            fork.given += given
            fork.line.send(given)
        elif kind == "report":
            hook.pytest_runtest_logreport(
                report=hook.pytest_report_from_serializable(config=self._config, data=said)
            )
        elif kind == "warning":
            hook.pytest_warning_recorded.call_historic(kwargs=said)
        elif kind == "done":
            item = self._session.items[fork.given.pop(0)]
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        else:
            raise RuntimeError(f"A process of the tests failed:\n{said}")

    def _ended(self, fork: _Fork) -> None:
        """A test took its process with it: it has failed, and the rest of its file goes on in a new one."""
        del self._forks[fork.line]
        fork.line.close()
        _, status = os.waitpid(fork.process, 0)
        if not fork.given:
            return
        item = self._session.items[fork.given[0]]
        why = f"The process that ran this test ended with {os.waitstatus_to_exitcode(status)}."
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
        self._config.hook.pytest_runtest_logreport(report=report)
        self._config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        self._start(fork.given[1:])


class _Worker:
    """What a fork does: run tests, and say what became of them."""

    def __init__(self, session: pytest.Session, line: Connection, base: Any) -> None:
        self._session = session
        self._config = session.config
        self._line = line
        self._base = base
        self._settled = False

    def live(self, given: list[int]) -> NoReturn:
        try:
            self._settle()
            self._run(given)
        except (KeyboardInterrupt, EOFError, BrokenPipeError, ConnectionResetError):
            # The run was broken off.
            self._session._setupstate.teardown_exact(None)
        except BaseException:
            self._line.send(("failed", traceback.format_exc()))
        finally:
            atexit._run_exitfuncs()
            os._exit(0)

    def _settle(self) -> None:
        """Have nothing in common with the other forks: neither the files of captured output, nor folders, nor luck."""
        plugins = self._config.pluginmanager
        capture = plugins.getplugin("capturemanager")
        if capture is not None:
            capture.stop_global_capturing()
            capture.start_global_capturing()
            capture.suspend_global_capture()
        reporter = plugins.getplugin("terminalreporter")
        if reporter is not None:
            plugins.unregister(reporter)
        self._base.mkdir(mode=0o700)
        self._config._tmp_path_factory._basetemp = self._base  # type: ignore[attr-defined]
        random.seed()
        plugins.register(self)
        self._settled = True

    def _run(self, given: list[int]) -> None:
        coming = self._coming(given)
        place = next(coming, None)
        while place is not None:
            # Fixtures that the next test needs too are kept, so it is known before this one ends.
            following = next(coming, None)
            items = self._session.items
            self._config.hook.pytest_runtest_protocol(
                item=items[place], nextitem=None if following is None else items[following]
            )
            self._line.send(("done", None))
            place = following

    def _coming(self, given: list[int]) -> Iterator[int]:
        yield from given
        while True:
            self._line.send(("next", None))
            given = self._line.recv()
            if not given:
                return
            yield from given

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._line.send(("report", data))

    def pytest_warning_recorded(self, warning_message: Any, when: str, nodeid: str, location: Any) -> None:
        if not self._settled:
            # Of what was warned of before the fork, the run has heard.
            return
        told = WarningMessage(
            str(warning_message.message),
            warning_message.category,
            warning_message.filename,
            warning_message.lineno,
        )
        said = {"warning_message": told, "when": when, "nodeid": nodeid, "location": location}
        self._line.send(("warning", said))
