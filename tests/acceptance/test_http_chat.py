"""A chat over HTTP: words as they come, tools answered on the way, and a turn that is done or aborted."""

import json
import re
import socket
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import anyio
import httpx
import pytest
import uvicorn

from pagefile import Memory, Settings
from pagefile.records import Scope
from pagefile.service.app import create_app
from pagefile.service.chat_turn import MAX_ROUNDS
from pagefile.settings import ArchiveSettings, ModelSettings, ServiceSettings
from pagefile.stores.key_secrets import new_key
from tests.waiting import PATIENCE_S

from .event_stream import events_in
from .http_serving import serving
from .model_stub import CUT, END, ERROR, NONSENSE, ModelStub, call

pytestmark = pytest.mark.anyio

HERE = {"conversation_id": "诊疗/2026:7", "user_id": "用户-1"}
LONG = "".join(f"第{n}步：配置权限 {n}。\n" for n in range(200))


def settings(tmp_path, url, **more):
    return Settings(
        url=f"sqlite:///{tmp_path}/chat.db",
        model=ModelSettings(name="stub", base_url=url, api_key="sk-secret"),
        archive=ArchiveSettings(threshold=500),
        indexing="manual",
        **more,
    )


def told(answer):
    return [(event["event"], event.json) for event in events_in(answer.text)]


async def asked(client, message, **more):
    answer = await client.post("/v1/chat/stream", json={**HERE, "message": message, **more})
    assert 200 == answer.status_code, answer.text
    assert "text/event-stream; charset=utf-8" == answer.headers["content-type"]
    assert "no-store" == answer.headers["cache-control"]
    return told(answer)


async def turns(client):
    return (await client.get("/v1/turns", params=HERE)).json()["items"]


def of(events, name):
    return [data for kind, data in events if kind == name]


# -- what goes well ------------------------------------------------------------------------------------------------------


async def test_an_answer_streams_and_stays(tmp_path):
    """The events in order, the words of the answer, and the same words and exact tokens in the log."""
    with ModelStub(lambda _: ["不可以，", "您对", "青霉素过敏。"]) as stub:
        async with serving(settings(tmp_path, stub.url)) as client:
            before = {**HERE, "user": "我对青霉素过敏。", "assistant": "已记录。"}
            await client.post("/v1/turns", json=before)
            events = await asked(client, "我可以吃阿莫西林吗？", instructions="你是药房助手。", id="t-2")
            _, turn = await turns(client)
    kinds = ["turn", *["node"] * 3, "token", "token", "token", "node", "node", "done"]
    assert kinds == [kind for kind, _ in events]
    nodes = ["route", "recall", "retrieve", "generate", "persist"]
    assert nodes == [node["node"] for node in of(events, "node")]
    assert all(node["duration_ms"] >= 0 for node in of(events, "node"))
    assert "不可以，您对青霉素过敏。" == "".join(token["text"] for token in of(events, "token"))
    assert ("t-2", "done", "不可以，您对青霉素过敏。") == (turn["id"], turn["status"], turn["assistant"])
    (done,) = of(events, "done")
    assert {key: turn[key] for key in ("seq", "user_tokens", "assistant_tokens", "tokens")} == {
        key: done[key] for key in ("seq", "user_tokens", "assistant_tokens", "tokens")
    }
    assert ("t-2", "stop", 1) == (done["turn_id"], done["finish"], done["model_calls"])
    recall = of(events, "node")[1]
    assert done["window_tokens"] == recall["told"]["tokens"] <= recall["told"]["budget"]
    said = [(message["role"], message["content"]) for message in stub.requests[0]["messages"]]
    assert said[0][0] == "system"
    assert said[0][1].startswith("你是药房助手。\n\n今天是 ")
    assert [("user", "我对青霉素过敏。"), ("assistant", "已记录。")] == said[1:3]
    assert said[-1][1].endswith("我可以吃阿莫西林吗？")
    assert ["load_tool_history", "search_tool_history"] == [
        tool["function"]["name"] for tool in stub.requests[0]["tools"]
    ]


async def test_the_model_loads_and_searches_what_was_archived(tmp_path):
    """A bulky result leaves the window; the model asks for it, is answered by us, and answers."""

    def script(request):
        text = json.dumps(request["messages"], ensure_ascii=False)
        results = [message["content"] for message in request["messages"] if message["role"] == "tool"]
        if "第三步呢" not in text:
            return ["已配置。"]
        if len(results) == 1:
            (uuid,) = set(re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", results[0]))
            return ["我看看。", *call("load_tool_history", {"uuid": uuid})]
        if len(results) == 2:
            pieces = call("search_tool_history", {"query": "配置权限 3"}, id="s")
            return [*pieces, *call("load_tool_history", "{broken", index=1, id="b"), *call("rm", {}, index=2, id="r")]  # fmt: skip
        return ["第3步：配置权限 3。"]

    with ModelStub(script) as stub:
        async with serving(settings(tmp_path, stub.url)) as client:
            step = {"tool": "docs", "input": {"q": "权限"}, "result": LONG}
            first = await asked(client, "权限怎么配置？", steps=[step])
            second = await asked(client, "第三步呢？")
            _, turn = await turns(client)
    (archived,) = of(first, "archived")
    assert ("docs", len(LONG)) == (archived["tool"], archived["chars"])
    load, search, broken, unknown = of(second, "loaded")
    assert {"uuid": archived["uuid"]} == load["arguments"]
    assert ("load_tool_history", len(LONG)) == (load["tool"], load["chars"])
    assert "search_tool_history" == search["tool"]
    assert "{broken" == broken["arguments"]
    assert "rm" == unknown["tool"]
    seen = [message["content"] for message in stub.requests[-1]["messages"] if message["role"] == "tool"]
    assert LONG == seen[1]
    assert archived["uuid"] in seen[2]
    assert "{broken" in seen[3]
    assert "未知工具" in seen[4]
    assert "我看看。\n\n第3步：配置权限 3。" == "".join(one["text"] for one in of(second, "token"))
    assert "我看看。\n\n第3步：配置权限 3。" == turn["assistant"]
    assert 3 == of(second, "done")[0]["model_calls"]
    nodes = ["recall", "generate", "tools"] * 2 + ["recall", "generate", "persist"]
    assert ["route", "recall", "retrieve", *nodes[1:]] == [node["node"] for node in of(second, "node")]


async def test_a_checkpoint_that_takes_effect_is_told(tmp_path):
    """A window that fills, and a summary in its stead."""
    with ModelStub(lambda _: ["好的。"]) as stub:
        small = settings(tmp_path, stub.url, window_tokens=900, recent_turns=2, checkpoints="sync")
        async with serving(small) as client:
            found = []
            for number in range(8):
                found += of(
                    await asked(client, f"第{number}次：" + "血压一百二十，心率七十。" * 8), "checkpoint"
                )
            listed = (await client.get("/v1/checkpoints", params=HERE)).json()["items"]
    assert found
    assert [(one["id"], one["version"], one["covered_through_seq"]) for one in listed] == [
        (one["id"], one["version"], one["covered_through_seq"]) for one in found
    ]


# -- what goes wrong -----------------------------------------------------------------------------------------------------


async def test_without_a_model_there_is_a_clear_answer():
    """A problem that says what to set; nothing is written."""
    async with serving() as client:
        answer = await client.post("/v1/chat/stream", json={**HERE, "message": "在吗？"})
        assert (501, "no-model") == (answer.status_code, answer.json()["code"])
        assert "model.name" in answer.json()["detail"]
        assert [] == await turns(client)


@pytest.mark.parametrize(
    ("pieces", "status", "code"),
    [
        (["一半", CUT], 200, "model-unavailable"),
        (["一半", ERROR], 200, "model-unavailable"),
        (["一半", NONSENSE], 200, "model-unavailable"),
        (["一半", END], 200, "model-output"),
        ([], 200, "model-output"),
        ([], 500, "model-unavailable"),
        ([], 401, "model-unavailable"),
    ],
)
async def test_a_model_that_fails_aborts_the_turn(tmp_path, caplog, pieces, status, code):
    """The stream ends with a problem; the next window has the question, and nothing of the answer. The key is nowhere."""
    with ModelStub(lambda _: pieces, status=status) as stub:
        async with serving(settings(tmp_path, stub.url)) as client:
            events = await asked(client, "我可以吃阿莫西林吗？")
            window = await client.post("/v1/context", json={**HERE, "query": "还在吗？"})
            (turn,) = await turns(client)
    kind, problem = events[-1]
    assert ("error", code) == (kind, problem["code"])
    assert "stub" in problem["detail"]
    assert ("aborted", None) == (turn["status"], turn["assistant"])
    assert "阿莫西林" in window.text
    assert "一半" not in window.text
    assert "sk-secret" not in caplog.text + json.dumps(events)


async def test_a_model_that_only_calls_tools_is_stopped(tmp_path):
    """It is asked without tools in the end, and when it calls one all the same the turn is aborted."""
    with ModelStub(lambda _: call("search_tool_history", {"query": "x"})) as stub:
        async with serving(settings(tmp_path, stub.url)) as client:
            events = await asked(client, "在吗？")
            (turn,) = await turns(client)
    assert MAX_ROUNDS + 1 == len(stub.requests)
    assert "tools" not in stub.requests[-1]
    assert ("error", "aborted") == (events[-1][0], turn["status"])


async def test_what_nobody_foresaw_is_a_problem_too(tmp_path, caplog, monkeypatch):
    """The log says where, not what was said."""

    async def fail(*_, **__):
        # Written so that the line itself, which the log shows, does not say it.
        raise LookupError("我对{}过敏".format("青" + "霉素"))

    with ModelStub(lambda _: ["好"]) as stub:
        async with serving(settings(tmp_path, stub.url)) as client:
            monkeypatch.setattr("pagefile.service.chat_turn.ChatRun._generate", fail)
            events = await asked(client, "在吗？")
            (turn,) = await turns(client)
    assert ("error", "internal", "aborted") == (events[-1][0], events[-1][1]["code"], turn["status"])
    assert "青霉素" not in caplog.text + json.dumps(events, ensure_ascii=False)


async def test_a_turn_that_was_left_open_is_answered(tmp_path):
    """Whoever asks again under its id goes on where it broke off."""
    with ModelStub(lambda _: ["在。"]) as stub:
        async with serving(settings(tmp_path, stub.url)) as client:
            await client.post("/v1/turns/begin", json={**HERE, "id": "t-1", "user": "在吗？"})
            step = {"turn_id": "t-1", "tool": "look", "input": {}, "result": "有人", "call_id": "c"}
            await client.post("/v1/turns/step", json={**HERE, **step})
            events = await asked(client, "在吗？", id="t-1")
            (turn,) = await turns(client)
    assert ("done", "done", "在。") == (events[-1][0], turn["status"], turn["assistant"])
    assert ["有人"] == [
        message["content"] for message in stub.requests[0]["messages"] if message["role"] == "tool"
    ]


async def test_a_request_that_cannot_be_begun_is_no_stream(tmp_path):
    """Problems as everywhere: a taken id, another's conversation, fields that do not fit."""
    with ModelStub(lambda _: ["好"]) as stub:
        async with serving(settings(tmp_path, stub.url)) as client:
            await asked(client, "在吗？", id="t-1")
            for body, status in [
                ({"id": "t-1", "message": "不同的话"}, 409),
                ({"user_id": "别人", "message": "在吗？"}, 409),
                ({"message": ""}, 422),
                ({"message": " "}, 422),
                ({"message": "在吗？", "model": "gpt"}, 422),
                ({"message": "在吗？", "window_tokens": 0}, 422),
            ]:
                answer = await client.post("/v1/chat/stream", json={**HERE, **body})
                assert status == answer.status_code, answer.text
                assert "application/problem+json" == answer.headers["content-type"]
            assert ["done"] == [turn["status"] for turn in await turns(client)]
    assert 1 == len(stub.requests)


async def test_a_key_chats_for_nobody_else(tmp_path):
    """In its own tenant and for its own user; another's conversation is refused before the model is asked."""
    with ModelStub(lambda _: ["好"]) as stub:
        chosen = settings(tmp_path, stub.url, service=ServiceSettings(require_keys=True))
        mine, shown = new_key("mine", Scope("clinic", "ada"), created=datetime.now(UTC))
        async with Memory.open(settings=chosen) as memory:
            await memory.engine.store.keys.add(mine)
            await memory.conversation("theirs", user_id="bob", tenant="clinic").record("我的秘密是 42", "好")
        async with serving(chosen) as client:
            body = {"conversation_id": "own", "message": "在吗？"}
            assert 401 == (await client.post("/v1/chat/stream", json=body)).status_code
            key = {"Authorization": f"Bearer {shown}"}
            for other in ({"user_id": "bob"}, {"tenant": "firm"}, {"conversation_id": "theirs"}):
                answer = await client.post("/v1/chat/stream", json={**body, **other}, headers=key)
                assert answer.status_code in {403, 404, 409}, answer.text
            assert [] == stub.requests
            answer = await client.post("/v1/chat/stream", json=body, headers=key)
            assert "done" == told(answer)[-1][0]
    assert "42" not in json.dumps(stub.requests)
    async with Memory.open(settings=chosen) as memory:
        (turn,) = await memory.conversation("own", user_id="ada", tenant="clinic").turns()
    assert ("ada", "done") == (turn.scope.user, turn.status)


# -- through a socket ----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def listening(chosen):
    """The service on a socket, and a client that talks to it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(create_app(chosen), log_level="warning"))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with anyio.create_task_group() as together:
            together.start_soon(server.serve, [listener])
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client:
                while not server.started:
                    await anyio.sleep(0.01)
                yield client, server
            server.should_exit = True


def forever(_):
    while True:
        yield "嗯" * 500


async def ended(client):
    """The turns, as soon as none is open any more."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            found = await turns(client)
            if found and all(turn["status"] != "open" for turn in found):
                return found
            await anyio.sleep(0.01)


@pytest.mark.waits
async def test_a_client_that_goes_away_aborts_the_turn(tmp_path):
    """The model's answer is ended, nothing of it is kept, and the next question is answered."""
    with ModelStub(lambda request: ["好"] if "第二" in str(request) else forever(request)) as stub:
        async with listening(settings(tmp_path, stub.url)) as (client, _server):
            body = {**HERE, "message": "第一个问题"}
            async with client.stream("POST", "/v1/chat/stream", json=body) as answer:
                async for line in answer.aiter_lines():
                    if line == "event: token":
                        break
            (turn,) = await ended(client)
            assert ("aborted", None) == (turn["status"], turn["assistant"])
            assert await anyio.to_thread.run_sync(stub.left.wait, PATIENCE_S)
            events = await asked(client, "第二个问题")
            assert "done" == events[-1][0]
            sent = json.dumps(stub.requests[-1], ensure_ascii=False)
            assert ("第一个问题" in sent, "没有得到回答" in sent) == (True, True)


@pytest.mark.waits
async def test_a_service_that_stops_aborts_what_it_cannot_finish(tmp_path):
    """Nothing hangs, and no half answer is taken for a whole one."""
    with ModelStub(forever) as stub:
        chosen = settings(tmp_path, stub.url)
        async with listening(chosen) as (client, server):
            server.config.timeout_graceful_shutdown = 1
            body = {**HERE, "message": "第一个问题"}
            async with client.stream("POST", "/v1/chat/stream", json=body) as answer:
                async for line in answer.aiter_lines():
                    if line == "event: token":
                        server.should_exit = True
                        break
                with anyio.fail_after(PATIENCE_S):
                    try:
                        async for _ in answer.aiter_bytes():
                            pass
                    except (httpx.TransportError, httpx.StreamError):
                        pass
        async with serving(chosen) as client:
            (turn,) = await turns(client)
    assert ("aborted", None) == (turn["status"], turn["assistant"])


async def test_many_chats_at_once(tmp_path):
    """Each gets its own words, and leaves its own turn."""

    def script(request):
        number = re.findall(r"问题(\d+)", request["messages"][-1]["content"])[-1]
        return [f"答案{number}", "。"]

    with ModelStub(script) as stub:
        async with listening(settings(tmp_path, stub.url)) as (client, _server):
            heard = {}

            async def ask(number):
                body = {"conversation_id": f"c{number}", "user_id": f"u{number}", "message": f"问题{number}"}
                answer = await client.post("/v1/chat/stream", json=body)
                heard[number] = "".join(one["text"] for one in of(told(answer), "token"))

            async with anyio.create_task_group() as together:
                for number in range(12):
                    together.start_soon(ask, number)
    assert {number: f"答案{number}。" for number in range(12)} == heard
