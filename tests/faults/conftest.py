"""What every fault needs: a stopwatch, and a client to look at what is left."""

from pathlib import Path

import httpx
import pytest

from .load import ANSWER_S, Stopwatch

#: Where `tests` can be imported from.
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def stopwatch(record_property):
    return Stopwatch(record_property)


@pytest.fixture
def reading():
    """Clients that read what is left, closed at the end."""
    clients = []

    def reading(base_url):
        clients.append(httpx.Client(base_url=base_url, timeout=ANSWER_S, trust_env=False))
        return clients[-1]

    yield reading
    for client in clients:
        client.close()
