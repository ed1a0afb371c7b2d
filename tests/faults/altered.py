"""`pagefile`, told otherwise: with a clock that a test moves, or with a schema that is still to come.

Run as `python -m tests.faults.altered serve …`. What is altered is in the environment:

ALTERED_CLOCK   a file with the seconds by which the clock of this machine is wrong, read again each time
ALTERED_SCHEMA  if set, this is the next version, which has one more migration, for SQLite and for PostgreSQL
"""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pagefile.cli import main
from pagefile.service import auth, exposure, inspector_auth
from pagefile.stores import registry
from pagefile.stores.postgres import migration as postgres
from pagefile.stores.sqlite import database as sqlite

#: What the next version needs: a column in the turn log, a table of its own, an index.
NEXT = """
ALTER TABLE ai_message ADD COLUMN mood TEXT;
ALTER TABLE conversations ADD COLUMN mood TEXT;
CREATE TABLE moods (tenant TEXT NOT NULL, mood TEXT NOT NULL, PRIMARY KEY (tenant, mood));
CREATE INDEX turns_of_mood ON ai_message (mood);
"""


def alter_clock(file):
    """The time of day is wrong by what the file says; intervals are measured with another clock, as always."""

    class Wrong(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(seconds=float(file.read_text()))

    for module in (registry, auth, exposure, inspector_auth):
        module.datetime = Wrong
    assert abs(registry.SystemClock().now() - datetime.now(UTC)) > timedelta(0)


def alter_schema():
    """One more migration in each dialect."""
    sqlite_now = sqlite.migrations()
    sqlite.migrations = lambda: (*sqlite_now, NEXT)
    postgres_now = postgres.migrations()
    postgres.migrations = lambda: {**postgres_now, "9000": NEXT}


if os.environ.get("ALTERED_CLOCK"):
    alter_clock(Path(os.environ["ALTERED_CLOCK"]))
if os.environ.get("ALTERED_SCHEMA"):
    alter_schema()
if __name__ == "__main__":
    main()
