"""A request that is sent twice with one Idempotency-Key is carried out once."""

import json
from types import SimpleNamespace

import anyio
import pytest

from pagefile import Memory, Settings
from pagefile.service import idempotency
from pagefile.service.auth import Principal
from pagefile.service.idempotency import IdempotencyMiddleware
from pagefile.service.streams import open_streams
from pagefile.settings import ServiceSettings
from pagefile.testing import FakeClock

from .http_serving import serving

HERE = {"conversation_id": "诊疗/2026:7", "user_id": "用户-1"}


@pytest.fixture
def settings(tmp_path):
    return Settings(url=f"sqlite:///{tmp_path}/once.db", service=ServiceSettings(max_body_bytes=5000))


@pytest.fixture
async def client(settings):
    async with serving(settings) as client:
        yield client


async def sent(client, path, body, key="k-1"):
    return await client.post(path, json=body, headers={"Idempotency-Key": key})


@pytest.mark.anyio
async def test_the_same_answer_twice(client):
    """A reset sent again is one reset, and the answer says that it is the first one."""
    await client.post("/v1/turns", json={**HERE, "user": "你好"})
    first, second = [await sent(client, "/v1/reset", HERE) for _ in range(2)]
    assert (201, 201) == (first.status_code, second.status_code)
    assert first.json() == second.json()
    assert ("", "true") == (
        first.headers.get("idempotency-replayed", ""),
        second.headers["idempotency-replayed"],
    )
    assert "nosniff" == second.headers["x-content-type-options"]
    other = await sent(client, "/v1/reset", HERE, key="k-2")
    assert first.json()["seq"] < other.json()["seq"]


@pytest.mark.anyio
async def test_an_undoing_is_not_undone(client):
    """The change that would hurt most when it is made twice."""
    fact = {"text": "住在柏林", "user_id": "u"}
    await client.post("/v1/facts", json=fact)
    for _ in range(3):
        await sent(client, "/v1/facts/undo", {"user_id": "u"})
    assert [] == (await client.get("/v1/facts", params={"user_id": "u"})).json()["items"]


@pytest.mark.anyio
async def test_a_key_is_for_one_request(client):
    """Another body, another query string or another route with the same key is refused, and nothing is done."""
    await sent(client, "/v1/facts", {"text": "对青霉素过敏", "user_id": "u"})
    for path, body in (
        ("/v1/facts", {"text": "喜欢茶", "user_id": "u"}),
        ("/v1/facts?x=1", {"text": "对青霉素过敏", "user_id": "u"}),
        ("/v1/forget", {"text": "对青霉素过敏", "user_id": "u"}),
    ):
        answer = await sent(client, path, body)
        assert (422, "idempotency-reused") == (answer.status_code, answer.json()["code"])
    held = (await client.get("/v1/facts", params={"user_id": "u"})).json()["items"]
    assert ["对青霉素过敏"] == [fact["text"] for fact in held]


@pytest.mark.anyio
async def test_refusals_are_kept_too(client):
    """What was wrong stays wrong; the same document is given again."""
    first, second = [await sent(client, "/v1/facts", {"user_id": "u"}) for _ in range(2)]
    assert 422 == first.status_code
    assert first.json() == second.json(), "the same occurrence"


@pytest.mark.anyio
@pytest.mark.parametrize("key", ["", "k" * 256, "a\tb"])
async def test_a_key_that_is_none(client, key):
    """Refused before anything is done."""
    answer = await sent(client, "/v1/reset", HERE, key=key)
    assert (422, "idempotency-key") == (answer.status_code, answer.json()["code"])


@pytest.mark.anyio
@pytest.mark.parametrize(
    "body", [b"", b"not json", b"[" * 3000, b"[1]", b'"x"', b'{"tenant": 7, "user_id": ["a"]}', b"\xff\xfe"]
)
async def test_a_body_that_says_nothing_of_its_user(client, body):
    """It is refused as without a key, every time."""
    headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
    first, second = [await client.post("/v1/reset", content=body, headers=headers) for _ in range(2)]
    assert first.status_code in {400, 422}
    assert first.json() == second.json()


@pytest.mark.anyio
async def test_a_body_too_large_with_a_key(client):
    """The limit holds here as well, whether the size was announced or not."""

    async def endless():
        for _ in range(10):
            yield b" " * 1000

    headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
    for content in (b" " * 10_000, endless()):
        answer = await client.post("/v1/turns", content=content, headers=headers)
        assert (413, "body-too-large") == (answer.status_code, answer.json()["code"])


@pytest.mark.anyio
async def test_turns_outlive_the_service(settings):
    """A turn takes its id from the key: sent again after a restart, it is the stored turn, and another text is a conflict."""
    turns, begun, stepped = [], [], []
    for _ in range(2):
        async with serving(settings) as client:
            turns.append((await sent(client, "/v1/turns", {**HERE, "user": "一", "assistant": "二"})).json())
            begun.append((await sent(client, "/v1/turns/begin", {**HERE, "user": "三"}, key="k-2")).json())
    step = {**HERE, "turn_id": begun[0]["id"], "tool": "search", "input": {"q": "血压"}, "result": "少盐"}
    for _ in range(2):
        async with serving(settings) as client:
            stepped.append((await sent(client, "/v1/turns/step", step, key="k-3")).json())
    for first, second in (turns, begun, stepped):
        assert first == second
    assert 1 == len(stepped[1]["steps"])
    async with serving(settings) as client:
        answer = await sent(client, "/v1/turns", {**HERE, "user": "别的", "assistant": "二"})
        assert (409, "conflict") == (answer.status_code, answer.json()["code"])
        elsewhere = await sent(
            client, "/v1/turns", {"conversation_id": "c2", "user": "一", "assistant": "二"}, key="k-9"
        )
        assert turns[0]["id"] != elsewhere.json()["id"]


@pytest.mark.anyio
async def test_an_erasure_takes_the_answers_along(client):
    """What was forgotten is not told again from a kept answer, and is not written again either. Other users keep their answers."""
    facts = [{"text": "对青霉素过敏", "user_id": user} for user in ("u", "v")]
    for number, fact in enumerate(facts):
        await sent(client, "/v1/facts", fact, key=f"k-{number}")
    await client.post("/v1/forget", json={"user_id": "u"})
    erased, other = [
        await sent(client, "/v1/facts", fact, key=f"k-{number}") for number, fact in enumerate(facts)
    ]
    assert (409, "idempotency-gone") == (erased.status_code, erased.json()["code"])
    assert (201, "true") == (other.status_code, other.headers["idempotency-replayed"])
    assert [] == (await client.get("/v1/facts", params={"user_id": "u"})).json()["items"]


@pytest.mark.anyio
@pytest.mark.parametrize(("tenant", "size"), [("acme", 50_000), ("a\u3000c\u00a0me", 10)])
async def test_an_erasure_finds_the_tenant_of_any_request(tmp_path, tenant, size):
    """Also where the request is long, or the tenant's name has characters that are not printed."""
    chosen = Settings(url=f"sqlite:///{tmp_path}/tenants.db")
    here = {**HERE, "tenant": tenant}
    body = {**here, "turn_id": "t", "assistant": "青霉素" * size}
    async with serving(chosen) as client:
        await client.post("/v1/turns/begin", json={**here, "user": "?", "id": "t"})
        assert 200 == (await sent(client, "/v1/turns/complete", body)).status_code
        await client.post("/v1/forget", json={"user_id": HERE["user_id"], "tenant": tenant})
        again = await sent(client, "/v1/turns/complete", body)
    assert (409, "idempotency-gone") == (again.status_code, again.json()["code"])


ONCE = {
    "/v1/turns": {**HERE, "user": "三", "assistant": "四"},
    "/v1/turns/begin": {**HERE, "user": "五"},
    "/v1/memory/conversations/fork": {**HERE, "turn_id": "t-1"},
    "/v1/facts": {"user_id": "用户-1", "text": "住在上海"},
    "/v1/facts/undo": {"user_id": "用户-1"},
    "/v1/reset": HERE,
}


@pytest.mark.anyio
@pytest.mark.parametrize("path", ONCE)
async def test_a_request_that_changes_something_is_carried_out_once(settings, path):
    """Whether it is repeated at once to another worker, or after a restart."""
    exports = []
    async with serving(settings) as client, serving(settings) as other:
        await client.post("/v1/turns", json={**HERE, "id": "t-1", "user": "一", "assistant": "二"})
        for text in ("对青霉素过敏", "喜欢茶"):
            await client.post("/v1/facts", json={"text": text, "user_id": "用户-1"})
        for worker in (client, other):
            answer = await sent(worker, path, ONCE[path])
            assert answer.is_success, answer.text
            exports.append((await worker.get("/v1/export")).text.splitlines()[1:])
    async with serving(settings) as client:
        again = await sent(client, path, ONCE[path])
        exports.append((await client.get("/v1/export")).text.splitlines()[1:])
    assert again.json() == answer.json()
    assert exports[0] == exports[1] == exports[2]


# -- the middleware alone: what is running, what is old, what is too much -----------------------------------------------


class Slow:
    """An app that answers when it is told to."""

    def __init__(self, status=200, size=10):
        self.go = anyio.Event()
        self.calls = 0
        self.status, self.size = status, size

    async def __call__(self, scope, receive, send):
        self.calls += 1
        await receive()
        await self.go.wait()
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * self.size})


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def asked(clock, monkeypatch):
    """Sends a POST through the middleware; returns status, headers and body."""
    monkeypatch.setattr("pagefile.service.streams._RENEW_EVERY_S", 0.01)
    settings = Settings(recall="never", indexing="manual")
    async with (
        Memory.open("memory://", settings=settings, clock=clock) as memory,
        open_streams(memory) as streams,
    ):
        state = SimpleNamespace(memory=memory, streams=streams)

        async def ask(app, path="/v1/reset", key=b"k", **headers):
            scope = {
                "app": SimpleNamespace(state=state), "type": "http", "method": "POST", "path": path,
                "query_string": b"", "headers": [(b"idempotency-key", key), *((name.replace("_", "-").encode(), value.encode()) for name, value in headers.items())], "pagefile.principal": Principal(),
            }  # fmt: skip
            messages = []

            async def receive():
                return {"type": "http.request", "body": b"{}", "more_body": False}

            async def send(message):
                messages.append(message)

            await app(scope, receive, send)
            body = b"".join(message.get("body", b"") for message in messages)
            return messages[0]["status"], dict(messages[0]["headers"]), body

        yield ask


def code(answer):
    return answer[0], json.loads(answer[2])["code"]


@pytest.mark.anyio
@pytest.mark.waits
async def test_two_at_once(asked):
    """The second is told to wait; it is not carried out beside the first."""
    app = Slow()
    guard = IdempotencyMiddleware(app)
    async with anyio.create_task_group() as group:
        group.start_soon(asked, guard)
        await anyio.wait_all_tasks_blocked()
        second = await asked(IdempotencyMiddleware(app))
        assert (409, "idempotency-running") == code(second)
        assert b"1" == second[1][b"retry-after"]
        app.go.set()
    assert (200, 1) == ((await asked(guard))[0], app.calls)


@pytest.mark.anyio
@pytest.mark.waits
async def test_one_that_takes_long_is_still_running(asked, clock):
    """A model may answer for many minutes: nobody is told that the service was stopped."""
    app = Slow()
    guard = IdempotencyMiddleware(app)
    async with anyio.create_task_group() as group:
        group.start_soon(asked, guard)
        await anyio.wait_all_tasks_blocked()
        clock.advance(600)
        await anyio.sleep(0.1)
        assert (409, "idempotency-running") == code(await asked(guard))
        app.go.set()
    assert (200, 1) == ((await asked(guard))[0], app.calls)


@pytest.mark.anyio
@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_failure_may_be_tried_again(asked, status):
    """What the service could not do is not what it always answers."""
    app = Slow(status)
    app.go.set()
    guard = IdempotencyMiddleware(app)
    for _ in range(2):
        assert status == (await asked(guard))[0]
    assert 2 == app.calls


async def cut_off(asked, guard, path):
    async with anyio.create_task_group() as group:
        group.start_soon(asked, guard, path)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()


@pytest.mark.anyio
@pytest.mark.waits
async def test_one_that_was_cut_off_is_not_carried_out_again(asked, clock):
    """It may have taken effect: the answer says so, once it can no longer be running."""
    app = Slow()
    guard = IdempotencyMiddleware(app)
    await cut_off(asked, guard, "/v1/reset")
    app.go.set()
    assert (409, "idempotency-running") == code(await asked(guard))
    clock.advance(61)
    assert (409, "idempotency-interrupted") == code(await asked(guard))
    assert 1 == app.calls


@pytest.mark.anyio
@pytest.mark.waits
async def test_a_call_of_a_provider_that_was_cut_off_may_be_tried_again(asked):
    """Its answer is lost, and a turn is never answered twice."""
    app, path = Slow(), "/v1/chat/completions"
    guard = IdempotencyMiddleware(app)
    await cut_off(asked, guard, path)
    app.go.set()
    assert (200, 2) == ((await asked(guard, path))[0], app.calls)


@pytest.mark.anyio
@pytest.mark.parametrize("header", ["x_pagefile_user", "x_pagefile_conversation", "mcp_session_id"])
async def test_an_answer_to_one_user_is_not_given_to_another(asked, header):
    """MCP says in headers whose call it is: the same call of another user is another request."""
    app = Slow()
    app.go.set()
    guard = IdempotencyMiddleware(app)
    assert 200 == (await asked(guard, "/mcp", **{header: "ada"}))[0]
    assert (422, "idempotency-reused") == code(await asked(guard, "/mcp", **{header: "bob"}))
    assert (200, 1) == ((await asked(guard, "/mcp", **{header: "ada"}))[0], app.calls)


@pytest.mark.anyio
async def test_answers_are_kept_for_a_day(asked, clock):
    app = Slow()
    app.go.set()
    guard = IdempotencyMiddleware(app)
    await asked(guard)
    clock.advance(24 * 3600 - 1)
    await asked(guard)
    assert 1 == app.calls
    clock.advance(2)
    await asked(guard)
    assert 2 == app.calls


@pytest.mark.anyio
async def test_a_long_answer_is_not_kept_and_not_made_again(asked):
    app = Slow(size=idempotency.MAX_KEPT_BYTES + 1)
    app.go.set()
    guard = IdempotencyMiddleware(app)
    assert idempotency.MAX_KEPT_BYTES + 1 == len((await asked(guard))[2])
    assert (409, "idempotency-gone") == code(await asked(guard))
    assert 1 == app.calls
