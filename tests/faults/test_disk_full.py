"""A disk that is full: a clear refusal, nothing acknowledged is lost, reads go on, and so do writes once there is space."""

import resource
import subprocess
import sys
import time

import pytest

from pagefile.stores.sqlite.database import MOST_BYTES
from tests.integration.workers.serving import served

from .disk import fill_the_rest
from .load import Load, check, everything, whole
from .messages import PLAIN

pytestmark = [
    pytest.mark.slow,
    pytest.mark.waits,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="limits a process that runs"),
]

#: What a full disk may be answered with, and what a client may ask again.
FULL = frozenset({507, 503})


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with little room: 4 MB beside what the database holds in reserve for erasures."""
    folder = tmp_path / "small"
    folder.mkdir()
    size = f"size={4 * 2**20 + MOST_BYTES}"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_small_disk_fills_up_and_is_freed(small_disk, stopwatch, reading):
    """A real file system without a byte left: 507 for turns, answers for everything else."""
    with served(small_disk, "sqlite:///a.db", **PLAIN) as service:
        load = Load(str(service.client.base_url), result_chars=40_000, again=FULL)
        with load.running():
            load.more(10)
            fill_the_rest(small_disk / "rest")
            filled = time.monotonic()
            load.wait(lambda: refusals(load, filled), 30, "a refusal")
            reads_go_on(load, service)
            (small_disk / "rest").unlink()
            freed = time.monotonic()
            stopwatch.recovered(load, "a full disk, once there is space", freed)
            load.more(20)
        assert {one.problem["code"] for one in refusals(load, filled)} <= {"store-full", "store-unavailable"}
        assert any(one.status == 507 for one in refusals(load, filled))
        check(reading(load.base_url), load, may_cut=True)


def test_a_file_that_may_not_grow(tmp_path, stopwatch, reading):
    """A limit on the size of files, as a quota is: the same, and the kernel says it with another word."""
    with served(tmp_path, "sqlite:///a.db", **PLAIN) as service:
        load = Load(str(service.client.base_url), result_chars=40_000, again=FULL)
        with load.running():
            load.more(10)
            largest = max(file.stat().st_size for file in tmp_path.glob("a.db*"))
            limited = time.monotonic()
            limit(service.process.pid, largest)
            load.wait(lambda: refusals(load, limited), 30, "a refusal")
            reads_go_on(load, service)
            limit(service.process.pid, resource.RLIM_INFINITY)
            freed = time.monotonic()
            stopwatch.recovered(load, "files that may not grow, once they may", freed)
            load.more(20)
        check(reading(load.base_url), load, may_cut=True)


def limit(pid, size):
    """How large a file of a running process may become; only the soft limit, so that it can be lifted."""
    hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


def refusals(load, since):
    """Turns that were refused after a moment."""
    return [
        one for one in load.answers[:] if one.what == "turn" and one.status in FULL and one.began >= since
    ]


def reads_go_on(load, service):
    """Windows are handed out while nothing can be written, and what was recorded is read, to the last byte of a tool's result."""
    now = time.monotonic()
    load.wait(lambda: load.good_since(now, "context"), 30, "a window on a full disk")
    sent = next(one.sent for one in load.promises if one.cut and not one.cut[0][0])
    turns = everything(service.client, "/v1/turns", sent.chat, sent.user_id)
    (found,) = [turn for turn in turns if turn["user"] == sent.user]
    assert [sent.steps[0][1]] == [whole(service.client, sent, step) for step in found["steps"]]
    assert service.get("/readyz").is_success
