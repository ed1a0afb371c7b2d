"""Two versions at once on one database.

The other version is this one with a migration more (`altered.py`): a column in the turn log and in the list of conversations, a
table, an index. So the older of the two is the code that ships, while a version to come migrates its tables under its hands; a
real earlier release would only be at hand in a clone with history. That data of every earlier schema opens is tested in
`tests/integration/sqlite/test_old_databases.py` and `tests/integration/postgres/test_old_databases.py`.
"""

import subprocess
import sys
import time

import pytest

from tests.integration.postgres.serving import fresh_url
from tests.integration.workers.serving import served
from tests.servers.forked import forking

from .conftest import ROOT
from .load import Load, check
from .messages import PLAIN

pytestmark = [pytest.mark.slow, pytest.mark.waits, pytest.mark.timeout(300)]


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_a_newer_version_migrates_while_the_older_writes(tmp_path, stopwatch, reading, backend):
    """Both go on side by side, nothing acknowledged is lost; the older one, started again, is told to upgrade."""
    url = f"sqlite:///{tmp_path}/a.db" if backend == "sqlite" else fresh_url()
    altered = {"ALTERED_SCHEMA": "1", "PYTHONPATH": str(ROOT)}
    with served(tmp_path, url, **PLAIN) as older:
        load = Load(str(older.client.base_url), clients=3)
        with load.running():
            load.more(20)
            before, began = schema(older), time.monotonic()
            with served(tmp_path, url, module="tests.faults.altered", env=altered, **PLAIN) as newer:
                assert before != schema(newer) == schema(older)
                load.more(5)
                # The turn that waited longest is the one that met the migration.
                waits = [one.ended - one.began for one in load.answers[:] if one.began >= began]
                stopwatch.told(f"a migration of {backend} by a newer version", max(waits))
                beside = Load(str(newer.client.base_url), clients=3, first=3)
                with beside.running():
                    beside.more(20)
                    load.more(20)
                load.stop()
                for service in (older, newer):
                    check(reading(str(service.client.base_url)), load.joined(beside))
        assert load.broken == 0
        assert {status for (_, status), _ in load.told()[0].items()} <= {200, 201}, load.told()
        assert "Traceback" not in older.said, older.said
    with forking():
        refused = subprocess.run(
            [sys.executable, "-m", "pagefile", "serve", "--db", url],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert refused.returncode == 1
    assert "pip install --upgrade" in refused.stderr
    assert "Traceback" not in refused.stderr


def schema(service):
    """What the service says its tables are."""
    return service.get("/healthz").json()["store"]["schema"]
