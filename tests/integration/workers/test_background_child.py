"""`pagefile serve` leaves background work to a child, which is replaced when it dies and ends with the service."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.faults.killing import children_of
from tests.waiting import until_so

from .serving import exists, served

pytestmark = [
    pytest.mark.waits,
    pytest.mark.skipif(sys.platform != "linux", reason="the service forks on Linux only"),
]


LONG = "今天早上的血压是一百三十五，比昨天低了一些，医生说继续少盐。" * 3


def told(service, name):
    found = re.search(rf"^{name} (\S+)$", service.get("/metrics").text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def recorded(service, number):
    answer = service.post(
        "/v1/turns", conversation_id="c", user_id="u", user=f"第{number}次：{LONG}", assistant="好。"
    )
    assert answer.status_code == 201


def test_vectors_are_made_by_another_process_and_counted_here(tmp_path):
    """The service's own metrics say how many turns have vectors, and how many have not."""
    with served(tmp_path, "sqlite:///a.db") as service:
        recorded(service, 1)
        service.until(lambda: told(service, "pagefile_indexed_turns_total") == 1)
        service.until(lambda: told(service, "pagefile_index_lag_turns") == 0)
        _, worker = children_of(service.process.pid)
        assert int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[16]) > 0, "not nicer"


def test_a_worker_that_dies_is_replaced(tmp_path):
    """What was written meanwhile is found by the next one."""
    with served(
        tmp_path, "sqlite:///a.db", embedder__name="none", window_tokens=500, recent_turns=1
    ) as service:
        service.until(lambda: len(children_of(service.process.pid)) == 2)
        worker = children_of(service.process.pid)[-1]
        os.kill(worker, signal.SIGKILL)
        for number in range(20):
            recorded(service, number)
        asked = {"conversation_id": "c", "user_id": "u"}
        service.until(lambda: service.get("/v1/checkpoints", **asked).json()["items"])
        assert worker not in children_of(service.process.pid)
        assert (
            f"The background worker (process {worker}) ended with -9: another takes its place."
            in service.lines
        )
        below = children_of(service.process.pid)
        assert 0 == service.stop()
        assert not any(map(exists, below))


def test_killing_the_keeper_leaves_the_service_answering(tmp_path):
    """Its worker ends with it."""
    with served(tmp_path, "sqlite:///a.db", embedder__name="none") as service:
        service.until(lambda: len(children_of(service.process.pid)) == 2)
        keeper, worker = children_of(service.process.pid)
        os.kill(keeper, signal.SIGKILL)
        service.until(lambda: not exists(worker))
        for number in range(3):
            recorded(service, number)


def test_the_children_of_a_killed_service_end(tmp_path):
    with served(tmp_path, "sqlite:///a.db", embedder__name="none") as service:
        service.until(lambda: len(children_of(service.process.pid)) == 2)
        below = children_of(service.process.pid)
        service.process.kill()
        service.process.wait()
        until_so(lambda: not any(map(exists, below)))


def test_a_database_of_one_process_has_no_child(tmp_path):
    """Its background work is done inside."""
    with served(tmp_path, "memory://", embedder__name="none") as service:
        recorded(service, 1)
        assert [] == children_of(service.process.pid)
