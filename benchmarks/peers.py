"""`pagefile bench peers`: Pagefile beside what others would use instead, on one conversation, in one run.

Everybody is measured twice, each time in a process of its own: in a conversation in which every turn asks for a prompt, and
as a conversation grows.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from benchmarks import ROOT
from benchmarks import recall as recall_bench
from benchmarks.peers_all import OURS, PEERS, version_of
from benchmarks.peers_base import BUDGET, Peer
from benchmarks.peers_child import Task
from benchmarks.peers_lines import Line, lines_of, recall_lines
from benchmarks.peers_reasons import Told
from benchmarks.peers_script import PLANTED_IN, RESULT_CHARS, RESULT_EVERY, details
from benchmarks.peers_vectors import Address, VectorServer
from benchmarks.report import machine_facts
from pagefile.errors import NotFoundError
from pagefile.models.embedders import MemoryEncoder
from pagefile.ports import Embedder
from pagefile.records import JsonObject

Progress = Callable[[str], None]

#: Pagefile goes all the way, which is further than the others.
_ALL_THE_WAY_S = 1500.0
#: How long a process may take beyond what it may take to grow.
_PATIENCE_S = 600.0
_ERROR_CHARS = 300


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured."""

    turns: int
    #: The sizes at which everybody is measured as it grows; none, and it is measured at the end of those turns.
    marks: tuple[int, ...]
    #: Sizes that only Pagefile is measured at.
    further: tuple[int, ...]
    #: Others that take longer to grow are measured at the size they reached.
    limit_s: float
    #: The sizes that have lines of their own.
    shown: tuple[int, ...]


FULL = Effort(200, (100, 300, 1_000, 3_000, 10_000), (30_000, 100_000), 45.0, (100, 1_000, 10_000))
QUICK = Effort(PLANTED_IN, (), (), 0.0, (PLANTED_IN,))


@dataclass(frozen=True, slots=True)
class PeersReport:
    """What everybody did. Tables, page and picture are made from its JSON."""

    made: Mapping[str, Any]

    @property
    def ok(self) -> bool:
        """Whether no system failed; being behind is not a failure, and is reported."""
        return all(peer["status"] != "failed" for peer in self.made["peers"])

    @property
    def lines(self) -> list[Line]:
        """All lines."""
        return [Line.from_json(line) for line in self.made["lines"]]

    @property
    def skipped(self) -> list[str]:
        """Who is not there, and who failed, a sentence each."""
        return [f"{peer['name']}: {peer['why']}" for peer in self.made["peers"] if peer["why"]]

    def to_json(self) -> JsonObject:
        """The report as plain JSON."""
        return {**self.made}


def run(
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    recall: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    embedder: Embedder | None = None,
    effort: Effort | None = None,
) -> PeersReport:
    """Measure those named, or everybody, in temporary folders; Pagefile always. `recall` is a report of `bench recall --peers`."""
    began = time.perf_counter()
    effort = effort or (QUICK if quick else FULL)
    chosen = [peer for name, peer in PEERS.items() if not only or name == OURS or name in _known(only)]
    encoder = embedder or MemoryEncoder()
    with VectorServer(encoder).serving() as address:
        bench = _Bench(effort, address, progress or _noop)
        peers = [bench.measured(peer) for peer in chosen]
    lines = peer_lines(peers, effort.shown)
    if recall is not None:
        lines += recall_lines(recall)
    return PeersReport(
        {
            "quick": quick,
            "seconds": round(time.perf_counter() - began, 1),
            "machine": machine_facts("o200k_base"),
            "embedder": encoder.name,
            "budget_tokens": BUDGET,
            "conversation": {
                "turns": effort.turns,
                "details": len(details()),
                "result_every": RESULT_EVERY,
                "result_chars": RESULT_CHARS,
            },
            "sizes": [*effort.shown],
            "peers": [*peers],
            "lines": [line.to_json() for line in lines],
            "recall": None if recall is None else {"quick": recall["quick"], "sets": len(recall["sets"])},
        }
    )


def peer_lines(peers: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> list[Line]:
    """The lines of those who were measured; none without Pagefile."""
    told = {
        peer["name"]: Told(peer["name"], peer["walk"], peer["growth"], peer["base_mb"])
        for peer in peers
        if peer["status"] == "measured"
    }
    return lines_of(told, sizes) if OURS in told else []


def recall_report(data: Path | None, made: Path | None, progress: Progress | None) -> JsonObject | None:
    """What `bench recall --peers` says: read from a file, or measured quickly on a folder of data; None without either."""
    if made is not None:
        return cast("JsonObject", json.loads(made.read_text(encoding="utf-8")))
    return None if data is None else recall_bench.run(data, True, progress, peers=True).to_json()


def _known(only: Sequence[str]) -> list[str]:
    """The full names; a part of a name will do, however it is written."""
    found = [name for name in PEERS if any(asked.casefold() in name.casefold() for asked in only)]
    unknown = [asked for asked in only if not any(asked.casefold() in name.casefold() for name in PEERS)]
    if unknown:
        raise NotFoundError(f"Nobody is called {unknown[0]!r}; there are {', '.join(PEERS)}.")
    return found


@dataclass(frozen=True, slots=True)
class _Bench:
    effort: Effort
    address: Address
    tell: Progress

    def measured(self, peer: type[Peer]) -> JsonObject:
        """One of them, or why it was not measured."""
        version = version_of(peer)
        one: JsonObject = {
            "name": peer.name,
            "package": peer.package or "pagefile",
            "version": version,
            "used": peer.used,
            "status": "measured",
            "why": "",
            "walk": None,
            "growth": None,
            "base_mb": 0.0,
        }
        if version is None:
            return {**one, "status": "absent", "why": "not installed: pip install 'pagefile[bench]'"}
        marks = self.effort.marks + (self.effort.further if peer.name == OURS else ())
        try:
            self.tell(f"{peer.name}: a conversation of {self.effort.turns} turns")
            walk = self._process(peer, ())
            if marks:
                self.tell(f"{peer.name}: up to {marks[-1]:,} turns")
                growth = self._process(peer, marks)
            else:
                growth = {
                    "start_mb": walk["start_mb"],
                    "opened_mb": walk["opened_mb"],
                    "points": [walk["point"]],
                    "stopped": None,
                }
        except _FailedError as failed:
            return {**one, "status": "failed", "why": f"failed: {failed}"}
        base = bare_mb() if peer.name == OURS else growth["start_mb"]
        return {**one, "walk": walk, "growth": growth, "base_mb": base}

    def _process(self, peer: type[Peer], marks: Sequence[int]) -> JsonObject:
        with ExitStack() as stack:
            folder = Path(
                # A library may still write when its process is asked to go.
                stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="pagefile-bench-", ignore_cleanup_errors=True)
                )
            )
            (folder / "kept").mkdir()
            limit_s = _ALL_THE_WAY_S if peer.name == OURS else self.effort.limit_s
            task = Task(
                peer.name,
                str(folder / "kept"),
                self.address.place,
                self.address.key,
                self.effort.turns,
                tuple(marks),
                limit_s,
            )
            return _run(task, folder / "measured.json", limit_s + _PATIENCE_S)


class _FailedError(Exception):
    """A process did not do what it was there for."""


def _run(task: Task, out: Path, timeout_s: float) -> JsonObject:
    command = [sys.executable, "-m", "benchmarks.peers_child", str(out)]
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter
            command,
            input=task.to_json(),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            cwd=ROOT,
        )
    except subprocess.TimeoutExpired as error:
        raise _FailedError(f"took longer than {timeout_s:.0f} s") from error
    if done.returncode or not out.is_file():
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise _FailedError((said[-1] if said else f"exit code {done.returncode}")[:_ERROR_CHARS])
    return cast("JsonObject", json.loads(out.read_text()))


def bare_mb() -> float:
    """What an interpreter holds that does nothing, where the kernel tells; else 0, so that Pagefile pays for it."""
    code = "import sys; sys.stdout.write(open('/proc/self/status').read())"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    found = [line.split() for line in done.stdout.splitlines() if line.startswith("VmHWM:")]
    return int(found[0][1]) / 1024 if found else 0.0


def _noop(_: str) -> None:
    return
