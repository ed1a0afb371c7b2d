"""PostgreSQL and Redis stopped and started again under load: the service stays, says what is missing and recovers by itself."""

import sys
import time

import pytest

from tests.integration.postgres.serving import server
from tests.integration.workers.serving import served
from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer

from .load import Load, check, own
from .messages import PLAIN

pytestmark = [
    pytest.mark.slow,
    pytest.mark.waits,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc"),
]


@pytest.fixture
def place(tmp_path_factory):
    """A service on a PostgreSQL and a Redis of its own, to do harm to."""
    server()  # fails where there is none
    folder = tmp_path_factory.mktemp("outages")
    with (
        PostgresServer() as database,
        ValkeyServer() as cache,
        served(folder, database.url("outage", pool_max=4), sessions=cache.url, **PLAIN) as service,
    ):
        yield service, database, cache


@pytest.fixture
def load(place):
    service, _, _ = place
    return Load(str(service.client.base_url))


def test_without_redis_nobody_notices(place, load, stopwatch, reading):
    """A cache that is gone costs time, not answers: every request is answered, and none with an error."""
    service, _, cache = place
    with load.running():
        load.more(20)
        for how, harm in (("stop", cache.stop), ("kill -9", cache.kill)):
            harm()
            down = time.monotonic()
            stopwatch.recovered(load, f"{how} of Redis", down)
            stopwatch.recovered(load, f"{how} of Redis, a window", down, what="context")
            load.more(20)
            cache.start()
            load.more(20)
    assert {status for (_, status), _ in load.told()[0].items()} <= {200, 201}
    assert load.broken == 0
    check(reading(load.base_url), load)
    assert service.process.poll() is None


def test_without_postgresql_a_clear_503_until_it_is_back(place, load, stopwatch, reading):
    """A crash under load: turns are refused with a problem that says when to ask again, windows still let the question through."""
    service, database, _ = place
    with load.running():
        load.more(20)
        database.stop("QUIT")
        down = time.monotonic()
        load.wait(lambda: refused(load, down), 30, "a refusal")
        load.wait(lambda: load.good_since(down, "context"), 30, "a window without the database")
        assert service.get("/healthz").is_success
        assert service.get("/readyz").status_code == 503
        asked = {"conversation_id": own(0), "user_id": "user-0", "query": "怎么办？"}
        window = service.post("/v1/context", **asked).json()
        assert any("no history" in note for note in window["receipt"]["degraded"])
        database.start()
        up = time.monotonic()
        stopwatch.recovered(load, "a crash of PostgreSQL, once it is back", up)
        load.more(20)
    problem = refused(load, down)
    assert ("store-unavailable", "1") == (problem.problem["code"], problem.retry_after)
    assert {status for (_, status), _ in load.told()[0].items()} <= {200, 201, 503}
    assert load.broken == 0, "the service itself was always there"
    assert service.get("/readyz").is_success
    check(reading(load.base_url), load)
    assert service.process.poll() is None
    assert not any(one.problem["code"] == "internal" for one in load.answers if one.problem)


def refused(load, since):
    """The first answer after a moment that was no."""
    return next(
        (one for one in load.answers[:] if one.began >= since and one.status == 503 and one.what == "turn"),
        None,
    )
