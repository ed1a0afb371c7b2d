"""`kill -9` under load: what was acknowledged is there afterwards, whole, once and in its place."""

import os
import signal
import sys
import time

import pytest

from tests.integration.postgres.serving import fresh_url
from tests.integration.workers.serving import exists, served
from tests.servers.ports import free_port
from tests.servers.valkey import ValkeyServer

from .load import Load, check
from .messages import PLAIN

pytestmark = [
    pytest.mark.slow,
    pytest.mark.waits,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc"),
]

KILLS = 3


def test_the_service_on_sqlite_is_killed_again_and_again(tmp_path, stopwatch, reading):
    """Started again each time by whoever looks after it; clients only see a pause."""
    port = free_port()
    load = Load(f"http://127.0.0.1:{port}", result_chars=2000)
    with load.running():
        killed = None
        for kill in range(KILLS + 1):
            with served(tmp_path, "sqlite:///a.db", port=port, **PLAIN) as service:
                if killed is not None:
                    stopwatch.recovered(load, f"kill -9 number {kill}", killed)
                load.more(40)
                if kill < KILLS:
                    killed = time.monotonic()
                    service.process.kill()
                    service.process.wait()
                    continue
                assert "Traceback" not in service.said
                load.stop()
                check(reading(load.base_url), load)


def test_a_worker_and_then_the_parent_are_killed(tmp_path, stopwatch, reading):
    """Two workers on PostgreSQL and Redis: the other worker answers meanwhile, and a new parent takes the port."""
    url, port = fresh_url(), free_port()
    load = Load(f"http://127.0.0.1:{port}", result_chars=2000)
    with ValkeyServer() as cache, load.running():
        options = {"port": port, "sessions": cache.url, **PLAIN}
        with served(tmp_path, url, "--workers", "2", **options) as service:
            for kill in range(2):
                load.more(30)
                victim, killed = service.started()[kill], time.monotonic()
                os.kill(victim, signal.SIGKILL)
                stopwatch.recovered(load, f"kill -9 of worker {kill + 1}", killed)
                service.until(lambda kill=kill: len(service.started()) == 3 + kill)
            load.more(30)
            killed = time.monotonic()
            service.process.kill()
            service.process.wait()
        # The workers end by themselves and leave the port to the next one.
        load.wait(lambda: not any(exists(pid) for pid in service.started()), 30, "the end of the workers")
        gone = time.monotonic()
        with served(tmp_path, url, "--workers", "2", **options) as service:
            stopwatch.recovered(load, "kill -9 of the parent", killed, asked=gone)
            load.more(40)
            load.stop()
            check(reading(load.base_url), load)
            assert service.stop() == 0, service.said
