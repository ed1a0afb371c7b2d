"""Keys as people use them: made on the command line, shown to the service, revoked."""

import logging
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from pkgutil import resolve_name

import anyio
import httpx
import pytest

from pagefile import Memory, SettingsError
from pagefile.errors import StoreCorruptError, StoreFullError, StoreUnavailableError
from pagefile.integrations.prometheus import PrometheusMeter
from pagefile.records import ApiKey, Scope
from pagefile.service.app import create_app
from pagefile.service.auth import LAST_USED_EVERY
from pagefile.service.known_keys import KnownKeys
from pagefile.stores.inmemory import InMemoryStore
from pagefile.stores.key_secrets import new_key
from pagefile.testing import FakeClock, FlakyStore, InMemorySessions
from pagefile.tiers.fair_pool import working_for

from .cli_calling import pagefile, table_widths
from .http_serving import BASE, serving
from .keyed import made, settings
from .problems import check

WORDS = {"user": "我对青霉素过敏。", "assistant": "已记录。"}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def keys():
    return {key["name"]: key for key in pagefile("keys", "list", "--json").json}


# -- the command line --------------------------------------------------------------------------------------------------


def test_a_key_is_printed_once():
    """`add` prints it, the list names everything but the secret, and the file does not hold it."""
    said = pagefile("keys", "add", "门诊 laptop", "--tenant", "诊所", "--user", "李雷", "--expires", "30")
    text = said.out.split()[0]
    assert "user 李雷 of tenant 诊所 until" in said.words
    secret = text.rpartition("_")[2]
    listed = pagefile("keys", "list")
    key = keys()["门诊 laptop"]
    assert (key["tenant"], key["user_id"], key["revoked"], key["last_used"]) == ("诊所", "李雷", None, None)
    assert key["id"] in listed.out
    assert table_widths(listed.out) <= set(range(81))
    for shown in (listed.out, str(key)):
        assert secret not in shown
        assert "digest" not in shown
    files = list(Path().glob("pagefile.db*"))
    assert files
    assert secret.encode() not in b"".join(file.read_bytes() for file in files)


def test_a_rotated_key_is_printed_once_and_both_are_listed():
    """The new one opens what the old one opens, which ends with the overlap; a name means the newest of that name."""
    first, _ = made("backend", "--tenant", "clinic")
    said = pagefile("keys", "rotate", "backend", "--overlap", "12h")
    assert 0 == said.code, said.err
    assert "It opens tenant clinic." in said.words
    assert f"The old one, {first['id']}, works until" in said.words
    old, second = pagefile("keys", "list", "--json").json
    assert (old["id"], second["name"], second["tenant"]) == (first["id"], "backend", "clinic")
    left = datetime.fromisoformat(old["expires"]) - datetime.fromisoformat(second["created"])
    assert (left, second["expires"]) == (timedelta(hours=12), None)
    assert said.out.split()[0].rpartition("_")[2] not in pagefile("keys", "list").out
    told = pagefile("keys", "rotate", "backend", "--json").json
    assert (told["replaces"]["id"], told["key"].split("_")[1]) == (second["id"], told["id"])
    # Whatever is left of the overlap.
    assert 0 == pagefile("keys", "revoke", first["id"]).code
    assert pagefile("keys", "list", "--json").json[0]["revoked"]


def test_which_key_is_rotated_is_never_guessed():
    """Unknown and closed ones are told, so are two of a name that open different things, and a key that ends."""
    one, _ = made("twin", "--tenant", "clinic")
    made("twin", "--tenant", "shop")
    ending, _ = made("phone", "--user", "ada", "--expires", "90")
    before = pagefile("keys", "list", "--json").json
    unknown, several, ends = (pagefile("keys", "rotate", name) for name in ("nope", "twin", "phone"))
    assert (3, True) == (unknown.code, "`pagefile keys list`" in unknown.err)
    assert (1, True) == (several.code, one["id"] in several.err)
    assert (1, True) == (ends.code, "--expires DAYS" in ends.err)
    assert 2 == pagefile("keys", "rotate", one["id"], "--overlap", "soon").code
    assert "keys revoke" in pagefile("keys", "rotate", one["id"], "--overlap", "0").err
    assert pagefile("keys", "list", "--json").json == before
    assert 0 == pagefile("keys", "rotate", one["id"]).code
    said = pagefile("keys", "rotate", "phone", "--expires", "30", "--overlap", "365d", "--json")
    assert said.json["replaces"]["expires"] == ending["expires"]
    assert said.json["user_id"] == "ada"
    pagefile("keys", "revoke", one["id"])
    closed = pagefile("keys", "rotate", one["id"])
    assert (1, True) == (closed.code, "`pagefile keys add`" in closed.err)


def test_what_cannot_be_done_is_explained():
    """Nothing to list is 3, an unknown id is 3, an empty name is 1, a bad time is 2."""
    assert 3 == pagefile("keys", "list").code
    made("one")
    unknown = pagefile("keys", "revoke", "nope")
    assert (3, True) == (unknown.code, "`pagefile keys list`" in unknown.err)
    assert 1 == pagefile("keys", "add", " ").code
    assert 2 == pagefile("keys", "add", "a", "--expires", "0").code
    assert 1 == len(keys())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--host", "0.0.0.0"], "`pagefile keys add NAME`, or listen on 127.0.0.1"),
        (["--db", "memory://", "--workers", "2"], "name a database, best PostgreSQL"),
        (["--db", "sqlite://", "--workers", "2"], "name a database, best PostgreSQL"),
    ],
)
def test_what_cannot_be_served_is_explained(options, told):
    """One line that says what to do, before anything listens."""
    said = pagefile("serve", *options)
    assert 1 == said.code
    assert told in " ".join(said.err.split())
    assert "" == said.out


# -- the door ----------------------------------------------------------------------------------------------------------


async def test_a_key_is_bound_to_its_tenant_and_user():
    """What is left out is the key's own; what is another's is refused, whether it is there or not."""
    _, clinic = await anyio.to_thread.run_sync(made, "clinic", "--tenant", "clinic")
    _, ada = await anyio.to_thread.run_sync(made, "ada", "--tenant", "clinic", "--user", "ada")
    async with serving(settings()) as client:
        turn = await client.post("/v1/turns", headers=ada, json={"conversation_id": "c", **WORDS})
        assert ("clinic", "ada") == (turn.json()["tenant"], turn.json()["user_id"])
        hers = {"conversation_id": "c", "user_id": "ada"}
        seen = await client.get("/v1/turns", headers=clinic, params=hers)
        assert [turn.json()] == seen.json()["items"]
        assert [] == (await client.get("/v1/turns", params={"conversation_id": "c"})).json()["items"]
        for foreign in ({"tenant": "other"}, {"tenant": "default"}, {"tenant": "clinic", "user_id": "bob"}):
            answer = await client.post(
                "/v1/turns", headers=ada, json={"conversation_id": "d", **WORDS, **foreign}
            )
            check(answer, 403, "forbidden")
        hers = await client.post("/v1/recall", headers=ada, json={"query": "青霉素", "user_id": "ada"})
        assert ["我对青霉素过敏。"] == [hit["text"].split("\n")[0] for hit in hers.json()["items"]]


async def test_a_user_s_key_says_the_user_wherever_one_is_needed():
    """In the query string and in the body, left out or null; another's is refused all the same."""
    _, clinic = await anyio.to_thread.run_sync(made, "clinic", "--tenant", "clinic")
    _, ada = await anyio.to_thread.run_sync(made, "ada", "--tenant", "clinic", "--user", "ada")
    asked = [
        ("POST", "/v1/facts", {"text": "对青霉素过敏"}),
        ("POST", "/v1/facts", {"text": "喜欢绿茶", "user_id": None}),
        ("GET", "/v1/facts", {}),
        ("GET", "/v1/facts", {"limit": 1}),
        ("GET", "/v1/facts/revisions", {}),
        ("POST", "/v1/facts/undo", {}),
        ("POST", "/v1/facts/import", {"memory": {"facts": []}}),
        ("POST", "/v1/recall", {"query": "青霉素"}),
        ("POST", "/v1/recall", {"query": "青霉素", "user_id": None}),
        ("POST", "/v1/pages/search", {"query": "青霉素"}),
    ]
    async with serving(settings()) as client:
        await client.post("/v1/turns", headers=ada, json={"conversation_id": "c", **WORDS})

        async def answer(key, method, path, named):
            where = "params" if method == "GET" else "json"
            return await client.request(method, path, headers=key, **{where: named})

        for method, path, named in asked:
            check(await answer(clinic, method, path, named), 422, "validation")
            check(await answer(ada, method, path, {**named, "user_id": "bob"}), 403, "forbidden")
            said = await answer(ada, method, path, named)
            assert said.is_success, said.text
            owners = {one["user_id"] for one in said.json().get("items", ()) if "user_id" in one}
            assert owners <= {"ada"}, said.text
        held = await answer(clinic, "GET", "/v1/facts", {"user_id": "ada"})
        assert ["对青霉素过敏"] == [fact["text"] for fact in held.json()["items"]]
        found = await answer(ada, "POST", "/v1/recall", {"query": "青霉素"})
        assert ["我对青霉素过敏。"] == [hit["text"].split("\n")[0] for hit in found.json()["items"]]


@pytest.mark.parametrize("empty", [{}, {"user_id": None}, {"conversation_id": None}])
async def test_whoever_erases_says_what(empty):
    """A key does not say it for them: a request that names nothing erases nothing."""
    _, ada = await anyio.to_thread.run_sync(made, "ada", "--user", "ada")
    async with serving(settings()) as client:
        await client.post("/v1/turns", headers=ada, json={"conversation_id": "c", **WORDS})
        check(await client.post("/v1/forget", headers=ada, json=empty), 422, "validation")
        assert 1 == len((await client.get("/v1/memory/conversations", headers=ada)).json()["items"])
        erased = await client.post("/v1/forget", headers=ada, json={"conversation_id": "c"})
        assert ("ada", 1) == (erased.json()["user_id"], erased.json()["counts"]["ai_message"])


async def test_what_is_no_object_stays_none():
    """A key makes no request of what is not one."""
    _, ada = await anyio.to_thread.run_sync(made, "ada", "--user", "ada")
    async with serving(settings()) as client:
        json_of = {**ada, "Content-Type": "application/json"}
        for body in (b"[]", b'"text"', b"null", b"5", b""):
            check(await client.post("/v1/recall", headers=json_of, content=body), 422, "validation")
        check(await client.post("/v1/recall", headers=ada, json={}), 422, "validation")
        check(await client.post("/v1/recall", headers=json_of, content=b"{"), 400, "invalid-json")
        check(await client.get("/v1/facts", headers=ada, params={"user_id": ""}), 422, "validation")


async def test_a_user_s_key_opens_no_other_conversation():
    """Not another user's and not one of nobody's: the same answer for both, without a name in it."""
    _, tenant = await anyio.to_thread.run_sync(made, "tenant")
    _, ada = await anyio.to_thread.run_sync(made, "ada", "--user", "ada")
    async with serving(settings()) as client:
        for name, owner in (("bobs", {"user_id": "bob"}), ("nobodys", {})):
            await client.post("/v1/turns", headers=tenant, json={"conversation_id": name, **WORDS, **owner})
        told = set()
        for name in ("bobs", "nobodys"):
            here = {"conversation_id": name}
            for answer in (
                await client.get("/v1/turns", headers=ada, params=here),
                await client.post("/v1/turns", headers=ada, json={**here, **WORDS}),
                await client.post("/v1/context", headers=ada, json={**here, "query": "?"}),
                await client.post("/v1/forget", headers=ada, json=here),
            ):
                told.add(check(answer, 403, "forbidden")["detail"])
        assert 1 == len(told)
        left = await client.get("/v1/memory/conversations", headers=tenant)
        assert {("bobs", 1), ("nobodys", 1)} == {
            (chat["conversation_id"], chat["turns"]) for chat in left.json()["items"]
        }


async def test_a_fact_of_another_user_cannot_be_retracted():
    """Its id is not enough; the answer is that of a fact that is not there."""
    _, tenant = await anyio.to_thread.run_sync(made, "tenant")
    _, ada = await anyio.to_thread.run_sync(made, "ada", "--user", "ada")
    async with serving(settings()) as client:
        fact = await client.post("/v1/facts", headers=tenant, json={"user_id": "bob", "text": "likes tea"})
        body = {"fact_id": fact.json()["id"]}
        check(await client.post("/v1/facts/retract", headers=ada, json=body), 404, "not-found")
        check(
            await client.post("/v1/facts/retract", headers=ada, json={**body, "user_id": "bob"}),
            403,
            "forbidden",
        )
        assert (await client.post("/v1/facts/retract", headers=tenant, json=body)).json()["retracted"]


async def test_a_key_can_be_shown_in_two_ways():
    """`Authorization: Bearer` or `X-API-Key`; both only if they are the same."""
    key, bearer = await anyio.to_thread.run_sync(made, "a")
    other, _ = await anyio.to_thread.run_sync(made, "b")
    async with serving(settings(require_keys=True)) as client:
        for headers in (
            bearer,
            {"X-API-Key": key["key"]},
            {"authorization": f"bearer  {key['key']} "},
            {**bearer, "X-API-Key": key["key"]},
            {"Authorization": "Basic Zm9vOmJhcg==", "X-API-Key": key["key"]},
        ):
            assert 200 == (await client.get("/v1/memory/conversations", headers=headers)).status_code, headers
        for headers in ({**bearer, "X-API-Key": other["key"]}, {"Authorization": "Basic Zm9vOmJhcg=="}, {}):
            answer = await client.get("/v1/memory/conversations", headers=headers)
            check(answer, 401, "unauthorized")
            assert "Bearer" == answer.headers["www-authenticate"]


@pytest.mark.parametrize("require", [True, False])
async def test_a_key_that_is_shown_is_always_checked(require):
    """Wrong, revoked and expired ones open nothing, even where none is needed; and they read all the same."""
    good, bearer = await anyio.to_thread.run_sync(made, "good")
    gone, revoked = await anyio.to_thread.run_sync(made, "gone")
    wrong = good["key"][:-1] + ("a" if good["key"][-1] != "a" else "b")
    now = datetime.now(UTC)
    expired, text = new_key("old", Scope(), created=now, expires=now - timedelta(seconds=1))
    async with Memory.open() as memory:
        await memory.engine.store.keys.add(expired)
    async with serving(settings(require_keys=require)) as client:
        path = "/v1/memory/conversations"
        assert 200 == (await client.get(path, headers=revoked)).status_code
        await anyio.to_thread.run_sync(pagefile, "keys", "revoke", gone["id"])
        told = {
            check(await client.get(path, headers=headers), 401, "unauthorized")["detail"]
            for headers in (
                revoked,
                {"Authorization": f"Bearer {wrong}"},
                {"Authorization": f"Bearer {text}"},
                {"Authorization": "Bearer nonsense"},
                {"X-API-Key": good["key"].replace(good["id"], "aaaaaaaaaaaa")},
            )
        }
        assert 1 == len(told)
        assert 200 == (await client.get(path, headers=bearer)).status_code
        assert (401 if require else 200) == (await client.get(path)).status_code


async def test_a_rotated_key_and_its_successor_open_the_same_until_the_overlap_is_over():
    """Then the old one is refused as any unknown key is; without an overlap at once."""
    _, old = await anyio.to_thread.run_sync(made, "backend", "--tenant", "诊所")

    def rotated(overlap):
        said = pagefile("keys", "rotate", "backend", "--overlap", overlap, "--json").json
        return {"Authorization": f"Bearer {said['key']}"}, datetime.fromisoformat(said["replaces"]["expires"])

    async with serving(settings(require_keys=True)) as client:
        path = "/v1/turns"
        assert (
            201 == (await client.post(path, json={"conversation_id": "c", **WORDS}, headers=old)).status_code
        )
        new, end = await anyio.to_thread.run_sync(rotated, "5s")
        asked = {"params": {"conversation_id": "c"}}
        seen = [(await client.get(path, **asked, headers=headers)).json() for headers in (old, new)]
        if datetime.now(UTC) < end:
            assert seen[0] == seen[1]
        assert len(seen[1]["items"]) == 1
        await anyio.sleep(max(0, (end - datetime.now(UTC)).total_seconds()))
        check(await client.get(path, **asked, headers=old), 401, "unauthorized")
        newest, _ = await anyio.to_thread.run_sync(rotated, "0s")
        check(await client.get(path, **asked, headers=new), 401, "unauthorized")
        assert 200 == (await client.get(path, **asked, headers=newest)).status_code


async def test_without_a_key_a_stranger_sees_only_what_the_service_is():
    """Pages and the word that it lives; what it runs on is told to who shows a key, and so are the metrics."""
    _, bearer = await anyio.to_thread.run_sync(made, "ops")
    async with serving(settings(require_keys=True)) as client:
        for path in ("/", "/docs", "/docs/turns", "/problems/forbidden", "/openapi.json", "/readyz"):
            assert 200 == (await client.get(path)).status_code, path
        assert {"status": "ok", "store": None} == {
            key: (await client.get("/healthz")).json()[key] for key in ("status", "store")
        }
        assert "sqlite" == (await client.get("/healthz", headers=bearer)).json()["store"]["backend"]
        check(await client.get("/metrics"), 401, "unauthorized")
        assert "pagefile_turns_total" in (await client.get("/metrics", headers=bearer)).text
        check(await client.get("/v1/nowhere"), 401, "unauthorized")
        json_of = {"Content-Type": "application/json"}
        check(await client.post("/v1/turns", content=b"{", headers=json_of), 401, "unauthorized")


@asynccontextmanager
async def watched(bearer):
    """The metrics of a service with keys, whose database and cache can be taken away."""
    app = create_app(settings(require_keys=True))
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url=BASE, headers=bearer) as client,
    ):
        yield app.state.memory.engine, client


async def _down(*_):
    raise StoreUnavailableError


async def test_metrics_are_read_while_the_database_is_down(monkeypatch):
    """They are wanted most then. A key that opened them before opens them still, and opens nothing else."""
    _, bearer = await anyio.to_thread.run_sync(made, "prometheus")
    _, late = await anyio.to_thread.run_sync(made, "late")
    async with watched(bearer) as (engine, client):
        assert "pagefile_database_up 1.0" in (await client.get("/metrics")).text
        monkeypatch.setattr(engine.store.keys, "get", _down)
        monkeypatch.setattr(engine.store, "describe", _down)
        answer = await client.get("/metrics")
        assert (200, True) == (answer.status_code, "pagefile_database_up 0.0" in answer.text)
        wrong = {"Authorization": f"{bearer['Authorization'][:-3]}abc"}
        check(await client.get("/metrics", headers=wrong), 401, "unauthorized")
        check(await client.get("/metrics", headers=late), 503, "store-unavailable")
        monkeypatch.setattr("pagefile.service.known_keys.REMEMBERED_S", -1.0)
        check(await client.get("/metrics"), 503, "store-unavailable")
        check(await client.get("/v1/memory/conversations"), 503, "store-unavailable")


async def test_a_key_for_the_metrics_opens_nothing_else():
    app = create_app(settings(require_keys=True, metrics_key="only-for-prometheus"))
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    bearer = {"Authorization": "Bearer only-for-prometheus"}
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url=BASE, headers=bearer) as client,
    ):
        assert "pagefile_turns_total" in (await client.get("/metrics")).text
        check(await client.get("/metrics", headers={"Authorization": "Bearer other"}), 401, "unauthorized")
        for path in ("/v1/memory/conversations", "/audit", "/pagefile"):
            assert 200 != (await client.get(path)).status_code, path


async def test_keys_are_known_for_some_minutes():
    """One that the database no longer has is forgotten at once, one that it cannot be asked for in ten minutes."""
    time, gone = 0.0, StoreUnavailableError()
    store = FlakyStore(InMemoryStore(FakeClock()))
    for name in ("good", "revoked"):
        await store.keys.add(ApiKey(name, name, Scope(), "00", FakeClock().now()))
    known = KnownKeys(now=lambda: time)
    assert "good" == (await known.find(store.keys, "good")).id
    store.fail(["keys.get"], error=gone)
    time = 599.0
    key, is_new = await known.find_in_outage(store.keys, "good")
    assert ("good", False) == (key.id, is_new)
    with pytest.raises(StoreUnavailableError, match="cannot be checked"):
        await known.find_in_outage(store.keys, "revoked")
    time = 601.0
    with pytest.raises(StoreUnavailableError, match="10 minutes"):
        await known.find_in_outage(store.keys, "good")


@pytest.mark.parametrize("error", [StoreUnavailableError(), StoreCorruptError(), StoreFullError()])
async def test_a_database_that_tells_of_no_key_is_an_outage(error):
    """Whatever keeps it from telling."""
    store = FlakyStore(InMemoryStore(FakeClock()))
    await store.keys.add(ApiKey("good", "good", Scope(), "00", FakeClock().now()))
    known = KnownKeys()
    await known.find(store.keys, "good")
    store.fail(["keys.get"], error=error)
    key, is_new = await known.find_in_outage(store.keys, "good")
    assert ("good", False) == (key.id, is_new)
    with pytest.raises(StoreUnavailableError, match="cannot be checked"):
        await known.find(store.keys, "good")


async def test_a_dead_session_cache_shows_in_the_metrics():
    cache = InMemorySessions(FakeClock())
    async with Memory.open("memory://", meter=(meter := PrometheusMeter()), sessions=cache) as memory:
        await memory.conversation("c").record("hi")
        await memory.engine.sessions.get(Scope(conversation="c"))
        cache.down = True
        await memory.engine.sessions.get(Scope(conversation="c"))
    assert 'pagefile_session_cache_total{result="down"} 1.0' in meter.text().decode()


async def test_the_last_use_is_kept_coarsely():
    """The first request writes it down, the next ones write nothing for an hour."""
    key, bearer = await anyio.to_thread.run_sync(made, "a")
    app = create_app(settings())
    async with app.router.lifespan_context(app):
        store = app.state.memory.engine.store
        async with serving(settings()) as client:
            for _ in range(2):
                await client.get("/v1/memory/conversations", headers=bearer)
                first = (await store.keys.get(key["id"])).last_used
                assert datetime.now(UTC) - first < timedelta(minutes=1)
            await client.get("/v1/memory/conversations", headers=bearer)
            assert first == (await store.keys.get(key["id"])).last_used
    assert timedelta(hours=1) == LAST_USED_EVERY


async def test_each_key_has_a_limit_of_its_own():
    """429 with the time to wait; another key goes on."""
    _, one = await anyio.to_thread.run_sync(made, "one")
    _, two = await anyio.to_thread.run_sync(made, "two")
    async with serving(settings(requests_per_minute=3)) as client:
        statuses = [(await client.get("/v1/tools", headers=one)).status_code for _ in range(3)]
        answer = await client.get("/v1/tools", headers=one)
        assert [200] * 3 == statuses
        check(answer, 429, "too-many-requests")
        assert 1 <= int(answer.headers["retry-after"]) <= 20
        assert 200 == (await client.get("/v1/tools", headers=two)).status_code
        assert 200 == (await client.get("/v1/tools")).status_code
        assert 200 == (await client.get("/healthz", headers=one)).status_code


async def test_secrets_are_in_no_log(caplog):
    """Whatever happens to a request that shows one."""
    caplog.set_level(logging.DEBUG)
    key, bearer = await anyio.to_thread.run_sync(made, "a")
    secret = key["key"].rpartition("_")[2]
    wrong = {"X-API-Key": key["key"].replace(key["id"], "aaaaaaaaaaaa")}
    async with serving(settings(require_keys=True)) as client:
        await client.get("/v1/memory/conversations", headers=bearer)
        await client.get("/v1/memory/conversations", headers=wrong)
        await client.get("/v1/turns", headers=bearer)
        await client.get("/nowhere", headers=bearer)
        await client.post("/v1/turns", headers=bearer, json={"conversation_id": "c", "tenant": "x", **WORDS})
    assert "pagefile" in caplog.text
    assert secret not in caplog.text
    assert key["key"] not in caplog.text


# -- hosts and origins -------------------------------------------------------------------------------------------------


async def test_beyond_loopback_a_key_is_needed():
    """Without one it does not start; with one, nobody comes in without it, and only under names it knows."""
    open_to_all = settings(host="0.0.0.0", hosts="memory.example.com")
    with pytest.raises(SettingsError, match="pagefile keys add"):
        async with serving(open_to_all):
            pass
    _, bearer = await anyio.to_thread.run_sync(made, "a")
    async with serving(open_to_all) as client:
        named = {"Host": "Memory.example.com:443"}
        assert 200 == (await client.get("/v1/tools", headers={**bearer, **named})).status_code
        check(await client.get("/v1/tools", headers=named), 401, "unauthorized")
        stranger = {**bearer, "Host": "evil.example.com"}
        assert (
            "service.hosts"
            in check(await client.get("/v1/tools", headers=stranger), 421, "misdirected")["detail"]
        )


async def test_other_origins_are_let_in_by_name():
    """The pages named may call with a key; others, and everybody unless set, are told nothing."""
    _, bearer = await anyio.to_thread.run_sync(made, "a")
    ours, theirs = {"Origin": "https://app.example.com"}, {"Origin": "https://evil.example.com"}
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    allowed = "access-control-allow-origin"
    async with serving(settings(require_keys=True, cors_origins="https://app.example.com")) as client:
        preflight = await client.options("/v1/turns", headers={**ours, **asks})
        assert (200, ours["Origin"]) == (preflight.status_code, preflight.headers[allowed])
        assert "access-control-allow-credentials" not in preflight.headers
        assert ours["Origin"] == (await client.get("/v1/tools", headers={**ours, **bearer})).headers[allowed]
        # A page must be able to read why it is not let in.
        assert ours["Origin"] == (await client.get("/v1/tools", headers=ours)).headers[allowed]
        assert allowed not in (await client.options("/v1/turns", headers={**theirs, **asks})).headers
        assert allowed not in (await client.get("/v1/tools", headers={**theirs, **bearer})).headers
    async with serving(settings()) as client:
        assert allowed not in (await client.get("/v1/tools", headers=ours)).headers
        assert 405 == (await client.options("/v1/turns", headers={**ours, **asks})).status_code


async def test_a_key_erases_no_turn_and_no_page_of_another_user():
    """A turn of theirs is refused as their conversation is; of a page no one is notified that it is there."""
    _, tenant = await anyio.to_thread.run_sync(made, "tenant")
    _, ada = await anyio.to_thread.run_sync(made, "ada", "--user", "ada")
    async with serving(settings()) as client:
        bobs = {"conversation_id": "bobs", "user_id": "bob"}
        steps = [{"tool": "search", "result": "bulky " * 2000}]
        kept = await client.post(
            "/v1/turns", headers=tenant, json={**bobs, **WORDS, "id": "t", "steps": steps}
        )
        uuid = kept.json()["steps"][0]["page"]
        refused = {"conversation_id": "bobs", "turn_id": "t"}
        check(await client.post("/v1/forget", headers=ada, json=refused), 403, "forbidden")
        for named in ({"page": uuid}, {"page": uuid, "conversation_id": "adas"}):
            check(await client.post("/v1/forget", headers=ada, json=named), 404, "handle-not-found")
        check(await client.post("/v1/forget", headers=ada, json={"turn_id": "t"}), 422, "validation")
        check(
            await client.post("/v1/forget", headers=ada, json={"page": uuid, "user_id": "bob"}),
            403,
            "forbidden",
        )
        left = await client.get("/v1/pages", headers=tenant, params={"user_id": "bob"})
        assert [uuid] == [page["uuid"] for page in left.json()["items"]]
        done = await client.post("/v1/forget", headers=tenant, json={"page": uuid})
        assert 1 == done.json()["counts"]["tool_result_archive"]


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("/mem0/v1/memories/", "pagefile.compat.mem0.Mem0.found"),
        ("/v1/facts?user_id=u", "pagefile.service.routes.open_memory"),
    ],
)
async def test_work_is_done_for_the_tenant_of_the_key(path, where, monkeypatch):
    """On every path: large work takes turns by tenant."""
    _, bearer = await anyio.to_thread.run_sync(made, "a", "--tenant", "clinic")
    seen, module, _, name = [], *where.rpartition(".")
    owner = resolve_name(module)
    work = getattr(owner, name)

    def seeing(*arguments):
        seen.append(working_for.get())
        return work(*arguments)

    monkeypatch.setattr(owner, name, seeing)
    async with serving(settings(require_keys=True)) as client:
        await client.get(path, headers=bearer)
    assert ["clinic"] == seen
