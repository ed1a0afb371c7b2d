"""The client where it is not a memory: what it sends again, what it raises, and how it ends."""

import json
import threading
from contextlib import aclosing
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from pagefile import (
    ClosedError,
    ConflictError,
    HandleNotFoundError,
    InvalidArgumentError,
    Memory,
    ModelUnavailableError,
    NotFoundError,
    PagefileError,
    Settings,
    SettingsError,
    StoreError,
    StoreUnavailableError,
    errors,
)
from pagefile.client import BlockingClient, Client
from pagefile.client.transport import error_of
from pagefile.service.app import create_app
from pagefile.service.problems import Kind, answered, kinds, to_problem
from pagefile.settings import ArchiveSettings, ModelSettings
from pagefile.wire.chat import ChatDone, ChatToken, ChatTurn
from tests.waiting import until

from .http_server import listening
from .http_serving import BASE
from .model_stub import CUT, ModelStub


class Breaking(httpx.AsyncBaseTransport):
    """Hands requests to an app; the first ones break before they arrive, or after they were carried out."""

    def __init__(self, app, before=0, after=0):
        self.inner = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        self.before, self.after = before, after
        self.seen = []

    async def handle_async_request(self, request):
        self.seen.append(request)
        if self.before:
            self.before -= 1
            raise httpx.ConnectError("refused", request=request)
        answer = await self.inner.handle_async_request(request)
        if self.after:
            self.after -= 1
            raise httpx.ReadError("reset", request=request)
        return answer


@pytest.fixture
async def app():
    app = create_app(Settings(url="memory://"))
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr("pagefile.client.transport._FIRST_WAIT_S", 0.001)


def answering(*answers):
    """A client of somebody who answers so, one after the other."""
    waiting = list(answers)
    return Client("http://there", transport=httpx.MockTransport(lambda _: waiting.pop(0)))


@pytest.mark.anyio
@pytest.mark.parametrize("broken", [{"before": 2}, {"after": 2}, {"before": 1, "after": 1}])
async def test_what_breaks_is_sent_again_and_done_once(app, broken):
    """Whether the request or the answer was lost: one turn, one fact, one reset, one undoing."""
    transport = Breaking(app)
    async with Client(BASE, transport=transport) as memory:
        chat = memory.conversation("诊疗/2026:7", user_id="u")

        async def again(verb):
            transport.before, transport.after = broken.get("before", 0), broken.get("after", 0)
            return await verb

        await again(chat.record("一", "二"))
        turn = await again(chat.begin("三"))
        await again(chat.step(turn, tool="search", result="少盐"))
        await again(chat.complete(turn, "四"))
        fact = await again(memory.remember("对青霉素过敏", user_id="u"))
        assert "stored" == fact.outcome
        await again(memory.undo("u"))
        await again(chat.reset())
        assert [(1, 0), (2, 1)] == [(turn.seq, len(turn.steps)) for turn in await again(chat.turns())]
        assert ["stored", "undone"] == [one.action for one in await again(memory.fact_revisions("u"))]
        assert 3 == (await again(memory.conversations()))[0].reset_seq


@pytest.mark.anyio
async def test_patience_ends(app):
    """After the last attempt the error says who was not there; with no retries, at once."""
    for retries, attempts in ((2, 3), (0, 1)):
        transport = Breaking(app, before=9)
        async with Client(BASE, transport=transport, retries=retries) as memory:
            with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1"):
                await memory.facts("u")
        assert attempts == len(transport.seen)


@pytest.mark.anyio
async def test_the_service_may_ask_for_patience():
    """503 and 429 are asked again when they say when; a long wait is the caller's decision."""
    busy = {
        "status_code": 503,
        "content": answered(to_problem("closed")).body,
        "headers": {"Retry-After": "0"},
    }
    ready = httpx.Response(200, json={"items": [], "next": None})
    async with answering(httpx.Response(**busy), httpx.Response(**busy), ready) as memory:
        assert [] == await memory.facts("u")
    busy["headers"] = {"Retry-After": "3600"}
    async with answering(httpx.Response(**busy)) as memory:
        with pytest.raises(StoreUnavailableError):
            await memory.facts("u")


@pytest.mark.anyio
async def test_a_refusal_is_not_sent_again(app):
    """What cannot be done now cannot be done a moment later."""
    transport = Breaking(app)
    async with Client(BASE, transport=transport) as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.record("一", id="t")
        before = len(transport.seen)
        with pytest.raises(ConflictError):
            await chat.record("二", id="t")
        with pytest.raises(NotFoundError):
            await chat.complete("nope", "三")
        with pytest.raises(HandleNotFoundError):
            await chat.load("00000000-0000-4000-8000-000000000000")
        assert 3 == len(transport.seen) - before


@pytest.mark.parametrize("code", sorted(kinds()))
def test_every_problem_is_an_error_of_ours(code):
    """By its code, with its words; the class is the one that the service raised, where there is one."""
    problem = answered(to_problem(code, "was los ist"))
    error = error_of(httpx.Response(problem.status_code, content=problem.body))
    assert "was los ist" == str(error)
    own = {
        known.code: known
        for known in vars(errors).values()
        if isinstance(known, type) and issubclass(known, PagefileError)
    }
    if code in own and code != "closed":
        assert type(error) is own[code]
    assert kinds()[code].status < 500 or not isinstance(error, InvalidArgumentError)
    assert Kind.of(type(error))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(200, text="<html>It works!</html>"), StoreError),
        (httpx.Response(502, text="<html>Bad gateway</html>"), StoreUnavailableError),
        (httpx.Response(404, text="no"), PagefileError),
        (httpx.Response(302, headers={"Location": "/login"}), PagefileError),
    ],
)
async def test_somebody_else_answers(answer, error):
    """A proxy or another program gets no benefit of the doubt, and none of its words are believed."""
    async with answering(answer) as memory:
        with pytest.raises(error, match="is it Pagefile"):
            await memory.facts("u")


@pytest.mark.anyio
async def test_a_key_and_nothing_else_is_sent(app):
    """The key goes along; a tenant that was not named is left to the key."""
    transport = Breaking(app)
    async with Client(BASE, api_key="pf_x", transport=transport) as memory:
        with pytest.raises(errors.UnauthorizedError):
            await memory.conversation("c", user_id="u").record("一")
    request = transport.seen[0]
    assert "Bearer pf_x" == request.headers["authorization"]
    assert "tenant" not in json.loads(request.content)
    assert "pf_x" not in repr(memory)


@pytest.mark.anyio
async def test_a_client_ends(app):
    """Afterwards it says so; and an address that is none is refused before anything is sent."""
    async with Client(BASE, transport=Breaking(app)) as memory:
        chat = memory.conversation("c")
    for verb in (chat.record("一"), memory.facts("u"), memory.settle()):
        with pytest.raises(ClosedError):
            await verb
    with pytest.raises(ClosedError):
        memory.conversation("c")
    await memory.close()
    for url in ("127.0.0.1:8780", "sqlite:///x.db", ""):
        with pytest.raises(SettingsError, match="http"):
            Client(url)
    with pytest.raises(SettingsError, match="retries"):
        Client(BASE, retries=-1)


@pytest.mark.anyio
async def test_an_export_that_breaks_leaves_no_file(tmp_path):
    """A connection that ends too early is an error, and an earlier export stays as it was."""

    class Half(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            line = b'{"type":"pagefile-export","version":1}\n'
            self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
            self.close_connection = True

        def log_message(self, *_):
            pass

    target = tmp_path / "mine.jsonl"
    target.write_text("earlier")
    with ThreadingHTTPServer(("127.0.0.1", 0), Half) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            async with Client(f"http://127.0.0.1:{server.server_port}") as memory:
                with pytest.raises(StoreUnavailableError):
                    await memory.export(target)
        finally:
            server.shutdown()
            thread.join()
    assert ["earlier"] == [file.read_text() for file in tmp_path.iterdir()]


def test_without_an_event_loop(tmp_path):
    """The blocking client through a real socket: record, page, window, recall, forget."""
    settings = Settings(
        url=f"sqlite:///{tmp_path}/b.db", archive=ArchiveSettings(threshold=500, page_from=500)
    )
    with listening(settings) as url, BlockingClient.open(url) as memory:
        chat = memory.conversation("诊疗/2026:7", user_id="用户-1")
        bulky = "少盐，监测血压。\n\n" * 200
        turn = chat.record("指南怎么说？", "少盐。", steps=[{"tool": "guideline", "result": bulky}])
        assert bulky == chat.load(turn.steps[0].page)
        assert [turn] == list(chat.turns())
        assert chat.context("还有呢？").tokens > 0
        assert [turn.id] == [hit.id for hit in memory.recall("指南", user_id="用户-1")]
        assert memory.forget(user_id="用户-1").total > 0
        assert "BlockingClientConversation" in repr(chat)
    with pytest.raises(ClosedError):
        chat.turns()


def with_model(tmp_path, stub):
    model = ModelSettings(name="stub", base_url=stub.url, api_key="sk-x")
    return Settings(url=f"sqlite:///{tmp_path}/chat.db", model=model, indexing="manual")


def test_an_answer_streams(tmp_path):
    """Words as they come, without an event loop, and the turn is there afterwards."""
    with (
        ModelStub(lambda _: ["不可以，", "您过敏。"]) as stub,
        listening(with_model(tmp_path, stub)) as url,
        BlockingClient.open(url) as memory,
    ):
        chat = memory.conversation("c", user_id="u")
        events = list(chat.stream_chat("可以吃阿莫西林吗？"))
        assert isinstance(events[0], ChatTurn)
        assert isinstance(events[-1], ChatDone)
        assert "不可以，您过敏。" == "".join(one.text for one in events if isinstance(one, ChatToken))
        assert ["不可以，您过敏。"] == [turn.assistant for turn in chat.turns()]


async def none_open(chat):
    return "open" not in [turn.status for turn in await chat.turns()]


@pytest.mark.anyio
@pytest.mark.waits
async def test_a_stream_that_breaks_is_an_error(tmp_path):
    """The model's failure comes out as the model's, and the turn is aborted; so it is when the caller leaves."""
    with ModelStub(lambda _: ["不", CUT]) as stub, listening(with_model(tmp_path, stub)) as url:
        async with Client(url) as memory:
            chat = memory.conversation("c", user_id="u")
            with pytest.raises(ModelUnavailableError):
                async for _ in chat.stream_chat("可以吗？"):
                    pass
            # The error is told first, the turn aborted then.
            await until(lambda: none_open(chat))
            assert ["aborted"] == [turn.status for turn in await chat.turns()]
            async with aclosing(chat.stream_chat("再问")) as events:
                async for _ in events:
                    break
        async with Client(url) as memory:
            with pytest.raises(InvalidArgumentError):
                async for _ in memory.conversation("c").stream_chat(""):
                    pass


RETURNED = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "a", "content": "x\ud800y\0"},
    {"role": "assistant", "content": "ok"},
]  # fmt: skip


@pytest.mark.anyio
async def test_what_a_tool_returned_is_stored_as_a_memory_would(app):
    """Half of a pair of surrogates is replaced, visibly; in the caller's own words it is refused."""
    async with Client(BASE, transport=Breaking(app)) as client, Memory.open("memory://") as memory:
        for chat in (client.conversation("c"), memory.conversation("c")):
            back = await chat.messages(await chat.record(messages=RETURNED))
            assert [*RETURNED[:2], RETURNED[2] | {"content": "x?y␀"}, RETURNED[3]] == back
            with pytest.raises(InvalidArgumentError, match=r"messages\[0\]"):
                await chat.record(messages=[{"role": "user", "content": "x\ud800y"}])


@pytest.mark.anyio
async def test_a_fork_is_its_owners_and_has_its_labels(app):
    """As with a memory: also where nothing was copied; a handle that names nobody is refused."""
    async with Client(BASE, transport=Breaking(app)) as client, Memory.open("memory://") as memory:
        for opened in (client, memory):
            chat = opened.conversation("c", user_id="ada", project="P", language="en")
            turn = await chat.record("q", "a")
            empty = await chat.fork(turn, before=True)
            await empty.record("z", "y")
            head = await empty.head()
            assert ("P", "en", "ada") == (head.project, head.language, head.scope.user)
            with pytest.raises(ConflictError, match="name the user"):
                await opened.conversation("c").fork(turn)


#: Arguments that a memory refuses, each for its own reason.
REFUSED = {
    "forget nothing": lambda memory: memory.forget(),
    "forget a turn of nowhere": lambda memory: memory.forget(turn_id="t"),
    "purge nothing": lambda memory: memory.purge(),
    "purge one text": lambda memory: memory.purge(uuids="abc"),
    "export of a number": lambda memory: memory.export("x.jsonl", user_id=5),
    "export of an empty tenant": lambda memory: memory.export("x.jsonl", tenant=""),
    "facts at no time": lambda memory: memory.facts("ada", as_of=0),
    "facts of nobody": lambda memory: memory.facts(None),
    "recall of nobody": lambda memory: memory.recall("q", user_id=None),
    "no limit": lambda memory: memory.conversation("c").turns(limit=None),
    "limit 0": lambda memory: memory.pages(limit=0),
    "no place": lambda memory: memory.conversation("c").turns(after=None),
    "pages to load are one text": lambda memory: memory.conversation("c").context("q", load="abc"),
    "no pages to load": lambda memory: memory.conversation("c").context("q", load=None),
    "a threshold of 7": lambda memory: memory.conversation("c").context("q", threshold=7),
    "an odd placement": lambda memory: memory.conversation("c").context("q", placement="middle"),
    "a step's input": lambda memory: memory.conversation("c").step("t", tool="x", input={1, 2}),
    "a step's tool": lambda memory: memory.conversation("c").step("t", tool=" "),
    "an empty turn": lambda memory: memory.conversation("c").record(),
    "a number as a message": lambda memory: memory.conversation("c").record(5),
    "an odd kind": lambda memory: memory.conversation("c").log(kind="page"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_client_refuses_what_a_memory_refuses(app, name):
    """With the same error and the same words."""
    raised = []
    async with Memory.open("memory://") as memory, Client(BASE, transport=Breaking(app)) as client:
        for one in (memory, client):
            with pytest.raises(PagefileError) as refused:
                await REFUSED[name](one)
            raised.append((type(refused.value), str(refused.value)))
    assert raised[0] == raised[1]


async def test_everybody_is_named_by_none(app):
    """`user_id=None` searches the pages of a whole tenant; left out it is an error, so it must be sent."""
    async with Client(BASE, transport=Breaking(app)) as client:
        assert [] == await client.search_tool_history("anything", user_id=None)


async def test_the_same_step_of_the_same_turn_is_added_once(app):
    """As with a memory: the number of steps a turn had is part of what is added."""
    async with Client(BASE, transport=Breaking(app)) as client:
        chat = client.conversation("c")
        turn = await chat.begin("look it up")
        one = await chat.step(turn, tool="search", input={"q": 1}, result="found")
        again = await chat.step(turn, tool="search", input={"q": 1}, result="found")
        other = await chat.step(again, tool="search", input={"q": 1}, result="found")
    assert (1, 1, 2) == (len(one.steps), len(again.steps), len(other.steps))


async def test_a_fork_is_made_once(app):
    """However often it is sent, and by whichever worker it is answered."""
    async with Client(BASE, transport=Breaking(app, after=1)) as client:
        chat = client.conversation("c")
        await chat.record("hello", "hi", id="t")
    async with Client(BASE, transport=Breaking(app)) as client:
        fork = {"conversation_id": "c", "turn_id": "t"}
        asked = [
            await Breaking(app).handle_async_request(
                httpx.Request(
                    "POST",
                    f"{BASE}/v1/memory/conversations/fork",
                    json=fork,
                    headers={"Idempotency-Key": "k"},
                )
            )
            for _ in range(2)
        ]
        assert {201} == {answer.status_code for answer in asked}
        assert 2 == len(await client.conversations())


async def test_a_fact_is_true_since_a_time(app):
    """A time is sent as text, and read as one."""
    since = datetime(2024, 5, 1, tzinfo=UTC)
    async with Client(BASE, transport=Breaking(app)) as client:
        fact = await client.remember("Works at the clinic", user_id="ada", valid_from=since)
    assert since == fact.valid_from
