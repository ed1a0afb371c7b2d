"""Ports for servers in tests."""

import random
import socket
from collections.abc import Sequence
from contextlib import ExitStack

#: Below those that a kernel gives to outgoing connections: one of these could hold a port while its server is restarted.
_FROM, _TO = 15_000, 32_000


def free_port() -> int:
    """A loopback port that nobody uses, and that nobody gets by chance while a server of ours is down."""
    return free_ports(1)[0]


def free_ports(count: int) -> Sequence[int]:
    """This many of them, all different."""
    with ExitStack() as stack:
        found: list[int] = []
        while len(found) < count:
            probe = stack.enter_context(socket.socket())
            port = random.randrange(_FROM, _TO)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
        return found
