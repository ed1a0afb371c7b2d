"""Chat and sessions over HTTP: what the model is told after a failure, and what a client can do after one."""

import json
import re
import threading

import anyio
import httpx

from pagefile import Settings
from pagefile.settings import EmbedderSettings, ModelSettings
from tests.acceptance.http_server import listening_async
from tests.acceptance.http_serving import serving
from tests.acceptance.model_stub import ERROR, ModelStub
from tests.findings.marks import finding

HERE = {"conversation_id": "c", "user_id": "u"}
WAIT_S = 10


def settings(url, stub=None):
    model = ModelSettings(name="stub", base_url=stub.url, api_key="k") if stub else ModelSettings()
    return Settings(url=url, model=model, embedder=EmbedderSettings(name="none"))


def events_in(text):
    """The events of a stream, as dictionaries of their fields; comments are passed over."""
    blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
    return [dict(re.findall(r"^(\w+): (.*)$", block, re.MULTILINE)) for block in blocks]


def text_of(answer):
    """The words that a stream brought."""
    tokens = [event for event in events_in(answer.text) if event.get("event") == "token"]
    return "".join(json.loads(token["data"])["text"] for token in tokens)


async def asked(client, message, *, headers=None, **more):
    return await client.post("/v1/chat/stream", json={**HERE, "message": message, **more}, headers=headers)


def last_prompt(stub):
    return json.dumps(stub.requests[-1]["messages"], ensure_ascii=False)


# -- F6: what a user said counts, whatever became of the answer ------------------------------------------------------------


def failing_first(request):
    """Fails on the message about the allergy, and answers everything else."""
    last = str(request["messages"][-1]["content"])
    return [ERROR] if "休克" in last else ["请先告诉我", "您的过敏史。"]


@finding("history-F6")
async def test_a_message_whose_answer_failed_is_known_at_the_next(sqlite_url):
    """What a user said before the model failed is in the next prompt."""
    with ModelStub(failing_first) as stub:
        async with serving(settings(sqlite_url, stub)) as client:
            failed = await asked(client, "我对青霉素过敏，吃了会休克")
            await asked(client, "我可以吃阿莫西林吗？")
    assert "error" == events_in(failed.text)[-1]["event"]
    assert "我可以吃阿莫西林吗？" in last_prompt(stub)
    assert "我对青霉素过敏" in last_prompt(stub)


@finding("history-F6")
async def test_a_message_whose_answer_failed_is_recalled(sqlite_url):
    """What a user said before the model failed is found by recall."""
    with ModelStub(failing_first) as stub:
        async with serving(settings(sqlite_url, stub)) as client:
            await asked(client, "我对青霉素过敏，吃了会休克")
            await asked(client, "我可以吃阿莫西林吗？")
            found = await client.post("/v1/recall", json={"user_id": "u", "query": "我对青霉素过敏吗"})
    assert 200 == found.status_code
    assert "我对青霉素过敏" in found.text


@finding("history-F6")
async def test_after_a_stop_the_model_knows_what_to_continue(sqlite_url):
    """After the stop button, "继续" goes to the model together with what is to be continued."""
    left = threading.Event()

    def poem(request):
        yield "床前"
        if "长诗" in str(request["messages"][-1]["content"]):
            left.wait(WAIT_S)
        yield "明月光"

    with ModelStub(poem) as stub:
        async with (
            listening_async(settings(sqlite_url, stub)) as base,
            httpx.AsyncClient(base_url=base, timeout=30) as client,
        ):
            await begin_and_leave(client, "写一首长诗")
            left.set()
            await until_aborted(client)
            await asked(client, "继续")
    assert "继续" in last_prompt(stub)
    assert "长诗" in last_prompt(stub)


async def begin_and_leave(client, message):
    """Read the first words of an answer, and press the stop button."""
    body = {**HERE, "message": message}
    async with client.stream("POST", "/v1/chat/stream", json=body) as stream:
        async for line in stream.aiter_lines():
            if line == "event: token":
                return


async def until_aborted(client):
    with anyio.fail_after(WAIT_S):
        while ["aborted"] != [turn["status"] for turn in await turns(client)]:
            await anyio.sleep(0.01)


async def turns(client):
    return (await client.get("/v1/turns", params=HERE)).json()["items"]


# -- F10 and F32: the session ----------------------------------------------------------------------------------------------


@finding("history-F10")
async def test_the_session_shows_its_window(sqlite_url):
    """`GET /v1/session` shows the recent messages, as `GetShortMemory` does."""
    async with serving(settings(sqlite_url)) as client:
        await client.post("/v1/turns", json={**HERE, "user": "我头晕", "assistant": "多休息"})
        session = (await client.get("/v1/session", params=HERE)).json()
    assert [
        {"role": "user", "content": "我头晕"},
        {"role": "assistant", "content": "多休息"},
    ] == session["value"]["message_context"]["window_messages"]


@finding("history-F32")
async def test_allergies_are_set_over_http(sqlite_url):
    """A service in another language sets a user's allergies over HTTP, and they are in the next window."""
    value = {"user_snapshot": {"allergies": ["青霉素"]}}
    async with serving(settings(sqlite_url)) as client:
        await client.post("/v1/turns", json={**HERE, "user": "我头晕", "assistant": "多休息"})
        put = await client.put("/v1/session", json={**HERE, "value": value})
        window = await client.post("/v1/context", json={**HERE, "query": "我可以吃什么药？"})
    assert put.is_success
    assert "青霉素" in str(window.json()["messages"])


# -- F14: the conversation graph's stream over HTTP ----------------------------------------------------------------------------------


@finding("history-F14")
async def test_the_stream_takes_the_request_of_document_002(sqlite_url):
    """A request with session, kind of agent and debug flag, as the conversation graph takes it, is answered."""
    with ModelStub(lambda _: ["你好"]) as stub:
        async with serving(settings(sqlite_url, stub)) as client:
            body = {"message": "你好", "user_id": "u", "session_id": "s", "agent_type": "default"}
            answer = await client.post("/v1/chat/stream", json={**body, "debug": False})
    assert 200 == answer.status_code
    assert "你好" == text_of(answer)


@finding("history-F14")
async def test_the_stream_has_an_event_for_each_node(sqlite_url):
    """The graph's five nodes each have their event, in their order."""
    with ModelStub(lambda _: ["你好"]) as stub:
        async with serving(settings(sqlite_url, stub)) as client:
            events = events_in((await asked(client, "你好")).text)
    nodes = [json.loads(event["data"])["node"] for event in events if event["event"] == "node"]
    assert ["route", "recall", "retrieve", "generate", "persist"] == nodes


# -- F29 and F30: a stream that broke --------------------------------------------------------------------------------------


@finding("history-F29")
async def test_a_stream_brings_the_stored_answer(sqlite_url):
    """The words of a stream are the words of the turn that is stored."""
    with ModelStub(lambda _: ["你好，", "世界。"]) as stub:
        async with serving(settings(sqlite_url, stub)) as client:
            answer = await asked(client, "你好")
            stored = await turns(client)
    assert "你好，世界。" == text_of(answer)
    assert [("done", "你好，世界。")] == [(turn["status"], turn["assistant"]) for turn in stored]


async def asked_twice(sqlite_url, **same):
    """One question, sent again because its answer was lost: both answers, and how often the model was asked."""
    with ModelStub(lambda request: [f"第{len(stub.requests)}次", "回答"]) as stub:
        async with serving(settings(sqlite_url, stub)) as client:
            answers = [await asked(client, "重试", **same) for _ in range(2)]
    return [text_of(answer) for answer in answers], len(stub.requests)


@finding("history-F29")
async def test_the_same_id_again_brings_the_stored_answer(sqlite_url):
    """Whoever lost the end of a stream asks again under the same id, and gets the answer that is stored."""
    assert (["第1次回答", "第1次回答"], 1) == await asked_twice(sqlite_url, id="turn-1")


@finding("history-F29")
async def test_a_stream_heeds_the_idempotency_key(sqlite_url):
    """A question that is repeated with its `Idempotency-Key` is asked of the model once."""
    same = {"Idempotency-Key": "key-1"}
    assert (["第1次回答", "第1次回答"], 1) == await asked_twice(sqlite_url, headers=same)


@finding("history-F29")
async def test_events_have_ids(sqlite_url):
    """Events carry ids, so that a browser says where it lost the stream."""
    with ModelStub(lambda _: ["你好，", "世界。"]) as stub:
        async with serving(settings(sqlite_url, stub)) as client:
            events = events_in((await asked(client, "你好")).text)
    assert "done" == events[-1]["event"]
    ids = [event.get("id") for event in events]
    assert all(ids)
    assert len(set(ids)) == len(ids)


@finding("history-F30")
async def test_a_model_that_is_busy_says_so(sqlite_url):
    """A model's 429 reaches the client as a 429, with the time after which to ask again."""
    with ModelStub(lambda _: [], status=429) as stub:
        async with serving(settings(sqlite_url, stub)) as client:
            answer = await asked(client, "你好")
    assert (429, "1") == (answer.status_code, answer.headers["Retry-After"])
    assert "title" in answer.json()
