"""A chat over HTTP whose line breaks: the answer goes on, and whoever comes back gets the rest of it."""

import sys
import threading
from datetime import timedelta
from types import SimpleNamespace

import anyio
import httpx
import pytest

from pagefile import Memory, Settings
from pagefile.client import Client
from pagefile.engine import Conversation
from pagefile.ports import Claim
from pagefile.records import Scope
from pagefile.service.streams import Streams
from pagefile.settings import ChatSettings, EmbedderSettings, ModelSettings
from pagefile.testing import FakeClock
from pagefile.wire.chat import ChatDone, ChatToken, ChatTurn
from tests.waiting import PATIENCE_S, until

from .event_stream import events_in, words
from .http_server import listening_async
from .http_serving import serving
from .model_stub import ERROR, ModelStub

pytestmark = pytest.mark.anyio

HERE = {"conversation_id": "诊疗/2026:7", "user_id": "用户-1"}
STREAM = "/v1/chat/stream"


def settings(tmp_path, stub, **more):
    return Settings(
        url=f"sqlite:///{tmp_path}/chat.db",
        model=ModelSettings(name="stub", base_url=stub.url, api_key="k"),
        embedder=EmbedderSettings(name="none"),
        **more,
    )


class Poem:
    """A model that stops in the middle of its answer until it is told to go on."""

    def __init__(self):
        self.goes_on = threading.Event()

    def __call__(self, request):
        yield "床前"
        yield "明月光，"
        self.goes_on.wait(PATIENCE_S)
        yield "疑是"
        yield "地上霜。"


WHOLE = "床前明月光，疑是地上霜。"


async def asked(client, message="写一首诗", headers=None, **more):
    return await client.post(STREAM, json={**HERE, "message": message, **more}, headers=headers)


async def begun(client, **more):
    """Read until the second token, and lose the line."""
    text = ""
    async with client.stream("POST", STREAM, json={**HERE, "message": "写一首诗", **more}) as answer:
        assert 200 == answer.status_code
        async for chunk in answer.aiter_text():
            text += chunk
            if "明月光" in text:
                return events_in(text[: text.rindex("\n\n") + 2])
    raise AssertionError(text)


async def turns(client):
    found = (await client.get("/v1/turns", params=HERE)).json()["items"]
    return [(turn["status"], turn["user"], turn["assistant"]) for turn in found]


async def ended(client):
    async def none_open():
        return "open" not in [status for status, *_ in await turns(client)]

    await until(none_open)
    return await turns(client)


def after(events):
    return {"Last-Event-ID": events[-1]["id"]}


@pytest.fixture
def poem():
    poem = Poem()
    yield poem
    poem.goes_on.set()


@pytest.fixture
def stub(poem):
    with ModelStub(poem) as stub:
        yield stub


@pytest.fixture
async def client(tmp_path, stub):
    async with (
        listening_async(settings(tmp_path, stub)) as base,
        httpx.AsyncClient(base_url=base, timeout=30, trust_env=False) as client,
    ):
        yield client


# -- a line that breaks ----------------------------------------------------------------------------------------------------


async def test_a_lost_line_is_taken_up_where_it_broke(client, stub, poem):
    """Each event arrives once, the words are whole, and the model was asked once."""
    first = await begun(client, id="t")
    poem.goes_on.set()
    answer = await asked(client, id="t", headers=after(first))
    second = events_in(answer.text)
    assert WHOLE == words(first) + words(second)
    assert ["turn"] == [event["event"] for event in first + second if event["event"] == "turn"]
    ids = [event["id"] for event in first + second]
    assert len(ids) == len(set(ids))
    assert "1000" == first[0]["retry"]
    assert [("done", "写一首诗", WHOLE)] == await turns(client)
    assert 1 == len(stub.requests)


async def test_the_answer_goes_on_while_nobody_reads(client, stub, poem):
    """It is in the log before anybody comes back, who then gets the rest from there."""
    first = await begun(client, id="t")
    poem.goes_on.set()
    assert [("done", "写一首诗", WHOLE)] == await ended(client)
    answer = await asked(client, id="t", headers=after(first))
    assert "true" == answer.headers["idempotency-replayed"]
    assert ["token", "done"] == [event["event"] for event in events_in(answer.text)]
    assert WHOLE == words(first) + words(events_in(answer.text))
    assert 1 == len(stub.requests)


async def test_an_answer_is_taken_up_after_a_restart(tmp_path, stub, poem):
    """The service that began it is gone; the log has what is missing, to the character."""
    chosen = settings(tmp_path, stub)
    async with listening_async(chosen) as base, httpx.AsyncClient(base_url=base, timeout=30) as client:
        first = await begun(client, id="t")
        poem.goes_on.set()
        await ended(client)
    async with serving(chosen) as client:
        answer = await asked(client, id="t", headers=after(first))
        again = await asked(client, id="t")
    assert WHOLE == words(first) + words(events_in(answer.text))
    assert WHOLE == words(events_in(again.text))
    assert 1 == len(stub.requests)


async def test_two_workers_ask_the_model_once(tmp_path, stub, poem):
    """A request that reaches another worker while it is being answered waits for that answer."""
    chosen = settings(tmp_path, stub)
    headers = {"Idempotency-Key": "k"}
    answers = []

    async def ask(worker):
        answers.append(await asked(worker, headers=headers))

    async def is_asked():
        return bool(stub.requests)

    async with (
        listening_async(chosen) as base,
        httpx.AsyncClient(base_url=base, timeout=30) as client,
        serving(chosen) as other,
        anyio.create_task_group() as group,
    ):
        group.start_soon(ask, client)
        await until(is_asked)
        group.start_soon(ask, other)
        await anyio.sleep(1)
        poem.goes_on.set()
    assert [WHOLE, WHOLE] == [words(events_in(answer.text)) for answer in answers]
    assert 1 == len(stub.requests)


@pytest.mark.parametrize("end", ["complete", "abort"])
async def test_a_turn_that_ended_meanwhile_is_not_answered_again(tmp_path, stub, poem, monkeypatch, end):
    """Another worker ended it after this one had read it as open, and gave its lease back."""
    poem.goes_on.set()
    begin = Conversation.begin

    async def overtaken(chat, *args, **named):
        turn = await begin(chat, *args, **named)
        await (chat.complete(turn, WHOLE) if end == "complete" else chat.abort(turn))
        return turn

    monkeypatch.setattr(Conversation, "begin", overtaken)
    async with serving(settings(tmp_path, stub)) as client:
        events = events_in((await asked(client, id="t")).text)
    assert [] == stub.requests
    assert (WHOLE if end == "complete" else "") == words(events)
    assert {"complete": "done", "abort": "error"}[end] == events[-1]["event"]


async def test_a_killed_workers_turn_is_closed_months_later(tmp_path):
    """Whoever comes next closes it, and other requests in between do not make the service forget."""
    clock = FakeClock()
    async with Memory.open(f"sqlite:///{tmp_path}/late.db", clock=clock) as memory:
        chat, leases = memory.conversation("c"), memory.engine.store.leases
        turn = await chat.begin("被杀", id="killed")
        async with anyio.create_task_group() as group:
            await Streams(group, memory)._take(SimpleNamespace(chat=chat), ("default", "c", turn.id))
            clock.advance(90 * 24 * 3600)
            now = clock.now()
            other = Claim("other", Scope("default"), "", now, now + timedelta(minutes=1), now + timedelta(1))
            assert await leases.claim(other) is None
            await Streams(group, memory).close_abandoned(chat, memory.engine.store.reader, besides="next")
        assert "aborted" == (await chat.extend("killed", ())).status


async def test_the_turn_of_a_killed_worker_is_closed_by_the_next_answer(tmp_path, stub, poem, monkeypatch):
    """Once its lease has ended. The open turn of an agent, which no worker answers, stays open."""
    monkeypatch.setattr("pagefile.service.streams._LEASE_S", 0.2)
    chosen = settings(tmp_path, stub)
    poem.goes_on.set()
    killed = f"""
import anyio, os
from pagefile import Memory, Settings
from pagefile.service import streams
streams._LEASE_S = 0.2

async def main():
    async with Memory.open(settings=Settings(url={chosen.url!r}, recall="never", indexing="manual")) as memory:
        chat = memory.conversation({HERE["conversation_id"]!r}, user_id={HERE["user_id"]!r})
        await chat.begin("我在等", id="agent")
        class Run:
            ending = False
            async def run(self, say):
                os._exit(9)
        Run.chat, Run.turn = chat, await chat.begin("被杀", id="killed")
        async with streams.open_streams(memory) as open:
            open.start(Run(), 9)
            await anyio.sleep(9)

anyio.run(main)
"""
    given = await anyio.run_process([sys.executable, "-c", killed], check=False)
    assert 9 == given.returncode, given.stderr.decode()
    await anyio.sleep(0.3)
    async with serving(chosen) as client:
        assert {"agent": "open", "killed": "open"} == await statuses(client)
        await asked(client, id="next")
        assert {"agent": "open", "killed": "aborted", "next": "done"} == await statuses(client)


async def statuses(client):
    found = (await client.get("/v1/turns", params=HERE)).json()["items"]
    return {turn["id"]: turn["status"] for turn in found}


async def test_two_readers_get_the_same_answer(client, stub, poem):
    """The same id while the answer is being made: everything from the beginning."""
    heard = []

    async def listen():
        heard.append(words(events_in((await asked(client, id="t")).text)))

    async with anyio.create_task_group() as together:
        together.start_soon(listen)
        await until(lambda: stub.requests)
        together.start_soon(listen)
        await anyio.sleep(0.1)
        poem.goes_on.set()
    assert [WHOLE, WHOLE] == heard
    assert 1 == len(stub.requests)


async def test_who_does_not_come_back_ends_the_answer(tmp_path, stub):
    """After `chat.resume_s` the turn is aborted; what the user said stays in the log, and coming back is told so."""
    chosen = settings(tmp_path, stub, chat=ChatSettings(resume_s=0.2))
    async with listening_async(chosen) as base, httpx.AsyncClient(base_url=base, timeout=30) as client:
        first = await begun(client, id="t")
        assert [("aborted", "写一首诗", None)] == await ended(client)
        answer = await asked(client, id="t", headers=after(first))
    assert (409, "conflict") == (answer.status_code, answer.json()["code"])
    assert "new id" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, "aborted"),
        ({"on_disconnect": "continue"}, "done"),
        ({"id": "t", "on_disconnect": "abort"}, "aborted"),
    ],
)
async def test_what_becomes_of_an_answer_is_the_clients_choice(client, poem, more, status):
    """By default an answer goes on if its request was named, and a client that leaves any other stops it."""
    await begun(client, **more)
    await anyio.sleep(0.3)
    poem.goes_on.set()
    assert [status] == [turn[0] for turn in await ended(client)]


async def test_an_answer_is_stopped_by_aborting_its_turn(client, poem):
    """Whoever reads it learns so, and nothing of it is kept."""
    heard = []

    async def listen():
        heard.extend(events_in((await asked(client, id="t")).text))

    async with anyio.create_task_group() as together:
        together.start_soon(listen)
        await until(lambda: _open(client))
        await client.post("/v1/turns/abort", json={**HERE, "turn_id": "t"})
    assert ("error", 409) == (heard[-1]["event"], heard[-1].json["status"])
    assert [("aborted", "写一首诗", None)] == await turns(client)


async def test_an_answer_that_is_stopped_before_its_window_is_made(tmp_path, stub, poem, monkeypatch):
    """The reader is told the same as later on."""
    context = Conversation.context

    async def stopped(chat, *args, **named):
        await chat.abort("t")
        return await context(chat, *args, **named)

    monkeypatch.setattr(Conversation, "context", stopped)
    async with serving(settings(tmp_path, stub)) as client:
        last = events_in((await asked(client, id="t")).text)[-1]
    assert ("error", 409) == (last["event"], last.json["status"])


async def _open(client):
    return ["open"] == [status for status, *_ in await turns(client)]


async def test_an_id_of_another_answer_begins_from_the_start(client, poem):
    """Ids that are not ours, or of an attempt whose words were others, cost nothing but the beginning."""
    poem.goes_on.set()
    await asked(client, id="t")
    for foreign in ("7", "t:3:4:00000000", "t:3:9999:00000000", "t:٣:1:00000000", "x:end", "::::", "é"):
        answer = await asked(client, id="t", headers={"Last-Event-ID": foreign.encode()})
        assert WHOLE == words(events_in(answer.text)), foreign


# -- the same request again ------------------------------------------------------------------------------------------------


async def test_a_key_names_an_answer(tmp_path):
    """The same `Idempotency-Key` brings the stored answer; after a failure the model is asked again."""
    pieces = [[ERROR], ["好。"], ["别的。"]]
    with ModelStub(lambda _: pieces.pop(0)) as stub:
        async with serving(settings(tmp_path, stub)) as client:
            answers = [await asked(client, headers={"Idempotency-Key": "k"}) for _ in range(3)]
            statuses = [status for status, *_ in await turns(client)]
    assert ["error", "done", "done"] == [events_in(one.text)[-1]["event"] for one in answers]
    assert ["", "好。", "好。"] == [words(events_in(one.text)) for one in answers]
    assert (["aborted", "done"], 2) == (statuses, len(stub.requests))


BUSY = {"status": 429, "headers": {"Retry-After": "7"}}


async def test_a_busy_model_says_when_to_ask_again(tmp_path):
    """A model's 429 is the response's own status, with its `Retry-After`, and the same for whoever asks meanwhile."""
    with ModelStub(lambda _: [], **BUSY) as stub:
        async with serving(settings(tmp_path, stub)) as client:
            answers = [await asked(client, id="t") for _ in range(2)]
            statuses = [status for status, *_ in await turns(client)]
    for answer in answers:
        told = answer.json()
        assert (429, "7") == (answer.status_code, answer.headers["Retry-After"])
        assert "application/problem+json" == answer.headers["Content-Type"]
        assert (429, "model-busy", 7) == (told["status"], told["code"], told["retry_after_s"])
    assert (["aborted"], 1) == (statuses, len(stub.requests))


async def test_a_key_is_free_after_a_refusal(tmp_path):
    """A client that asks again when it was told to has its answer, and the question stands in the log once for each attempt."""
    with ModelStub(lambda _: [], **BUSY) as busy, ModelStub(lambda _: ["好。"]) as ready:
        for stub, status in ((busy, 429), (ready, 200)):
            async with serving(settings(tmp_path, stub)) as client:
                answer = await asked(client, headers={"Idempotency-Key": "k"})
                assert status == answer.status_code
        assert "好。" == words(events_in(answer.text))


async def test_a_model_that_is_slow_to_refuse_does_so_in_the_stream(tmp_path, monkeypatch):
    """The response is not held for long: then a 429 is an event, and its time also the stream's own `retry`."""
    monkeypatch.setattr("pagefile.service.streams._HOLD_S", 0.05)
    with ModelStub(lambda _: [], **BUSY, after_s=0.3) as stub:
        async with serving(settings(tmp_path, stub)) as client:
            answer = await asked(client)
    assert 200 == answer.status_code
    *_, last = events_in(answer.text)
    assert (429, "model-busy", 7) == (last.json["status"], last.json["code"], last.json["retry_after_s"])
    assert "7000" == last["retry"]


# -- as a browser reads ----------------------------------------------------------------------------------------------------


async def test_an_event_source_reads_and_comes_back(client, poem):
    """GET follows an answer in progress; after the last event there is nothing left, which ends an `EventSource`."""
    first = await begun(client, id="t")
    poem.goes_on.set()
    params = {**HERE, "id": "t"}
    second = events_in((await client.get(STREAM, params=params, headers=after(first))).text)
    assert WHOLE == words(first) + words(second)
    assert 204 == (await client.get(STREAM, params=params, headers=after(second))).status_code
    assert WHOLE == words(events_in((await client.get(STREAM, params=params)).text))


async def test_nothing_to_read_is_said(client):
    """An unknown turn, one of somebody else, and one that nobody answers."""
    await client.post("/v1/turns/begin", json={**HERE, "id": "open", "user": "在吗？"})
    for params, status in [
        ({"id": "none"}, 404),
        ({"id": "open"}, 409),
        ({"id": "open", "user_id": "别人"}, 409),
    ]:
        answer = await client.get(STREAM, params={**HERE, **params})
        assert status == answer.status_code, answer.text


# -- the Python client -----------------------------------------------------------------------------------------------------


class Breaking(httpx.AsyncHTTPTransport):
    """Breaks each line of the first connections after some bytes."""

    def __init__(self, times):
        super().__init__()
        self.left = times

    async def handle_async_request(self, request):
        answer = await super().handle_async_request(request)
        if "event-stream" in answer.headers.get("content-type", "") and self.left:
            self.left -= 1
            answer.stream = Cut(answer.stream)
        return answer


class Cut(httpx.AsyncByteStream):
    def __init__(self, stream):
        self.stream = stream

    async def __aiter__(self):
        async for chunk in self.stream:
            yield chunk
            if b"event: token" in chunk:
                raise httpx.ReadError("the line broke")

    async def aclose(self):
        await self.stream.aclose()


async def test_the_client_takes_a_broken_line_up_again(tmp_path, stub, poem):
    """Its caller sees one answer, with each event once."""
    poem.goes_on.set()
    async with (
        listening_async(settings(tmp_path, stub)) as base,
        Client(base, transport=Breaking(2)) as memory,
    ):
        events = [event async for event in memory.conversation("c", user_id="u").stream_chat("写一首诗")]
    assert WHOLE == "".join(event.text for event in events if isinstance(event, ChatToken))
    assert (1, 1) == tuple(sum(isinstance(e, kind) for e in events) for kind in (ChatTurn, ChatDone))
    assert 1 == len(stub.requests)
