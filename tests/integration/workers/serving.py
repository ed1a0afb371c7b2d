"""`pagefile serve` with several workers, in processes of its own, on real servers."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.servers.forked import Forked
from tests.servers.ports import free_port

#: A machine that is busy with other tests is no failure.
START_S = 120
STOP_S = 120


@dataclass
class Service:
    """A running service: where it is, what it said, who its workers are."""

    process: subprocess.Popen
    client: httpx.Client
    lines: list[str] = field(default_factory=list)

    def call(self, method, path, **request):
        """One request over a connection of its own, so that any worker may answer it."""
        return self.client.request(method, path, **request)

    def post(self, path, **body):
        return self.call("POST", path, json=body)

    def get(self, path, **params):
        return self.call("GET", path, params=params)

    def patiently(self, path, body):
        """A request that is repeated, unchanged, until somebody answers it."""
        end = time.monotonic() + START_S
        while True:
            try:
                answer = self.post(path, **body)
            except httpx.TransportError:
                assert time.monotonic() < end
                time.sleep(0.02)
                continue
            if answer.status_code != 503:
                return answer
            time.sleep(0.02)

    def started(self):
        """The process of every worker there ever was, in the order of their start."""
        return [
            int(found[1])
            for line in self.lines
            if (found := re.fullmatch(r"Worker \d+ is process (\d+)\.", line))
        ]

    def until(self, met):
        """Waits for something to be so."""
        end = time.monotonic() + START_S
        while not met():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < end, self.said
            time.sleep(0.05)

    def until_ready(self):
        """Waits for an answer."""

        def answers():
            try:
                return self.get("/readyz").is_success
            except httpx.TransportError:
                return False

        self.until(answers)

    @property
    def said(self):
        return "\n".join(self.lines)

    def stop(self):
        """Ask it to stop, and say how it ended."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_S)


@contextmanager
def served(folder, url, *options, port=None, module="pagefile", env=None, **settings):
    """A service on this database; settings are written as in the environment, `facts__extract="rules"`.

    `module` is what is run instead of `pagefile`, and `env` is for it alone.
    """
    port = port or free_port()
    named = {f"PAGEFILE_{name.upper()}": str(value) for name, value in settings.items()}
    command = [sys.executable, "-m", module, "serve", "--port", str(port), "--db", url, *options]
    process = Forked(
        command,
        cwd=folder,
        env={**os.environ, **named, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    limits = httpx.Limits(max_keepalive_connections=0)
    client = httpx.Client(
        base_url=f"http://127.0.0.1:{port}", timeout=START_S, trust_env=False, limits=limits
    )
    service = Service(process, client)
    reader = threading.Thread(target=lambda: service.lines.extend(iter_lines(process)), daemon=True)
    reader.start()
    try:
        service.until_ready()
        yield service
    finally:
        process.kill()
        process.wait()
        reader.join(STOP_S)
        process.stdout.close()
        client.close()


def iter_lines(process):
    """What a process says, a line at a time, as it says it."""
    for line in process.stdout:
        yield line.rstrip("\n")


def exists(pid):
    """Whether a process is there; one that ended and was not asked how is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
