"""Both databases, and a memory whose writes wait at a gate."""

from contextlib import asynccontextmanager

import pytest

from pagefile import Memory
from pagefile.engine import memory as opening
from pagefile.stores import open_store
from tests.integration.postgres.serving import fresh_url

from .gates import Gate, GatedPort, GatedStore


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    """A database that nobody used."""
    return f"sqlite:///{tmp_path}/a.db" if request.param == "sqlite" else fresh_url()


@pytest.fixture
def gate():
    """Open until it is closed."""
    return Gate(0)


@pytest.fixture
def gated(monkeypatch, gate):
    """Opens a memory whose deferred writes wait at the gate, those into its cache too; other memories do not."""

    async def opened(*args, **kwargs):
        return GatedStore(await open_store(*args, **kwargs), gate)

    @asynccontextmanager
    async def gated(url, *, sessions=None, **given):
        cache = None if sessions is None else GatedPort("cache", sessions, gate)
        with monkeypatch.context() as patched:
            patched.setattr(opening, "open_store", opened)
            memory = Memory.open(url, sessions=cache, **given)
            entered = await memory.__aenter__()
        try:
            yield entered
        finally:
            gate.open()
            await memory.__aexit__(None, None, None)

    return gated
