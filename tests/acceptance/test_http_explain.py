"""Recorded calls over HTTP: explained, replayed and counted as beside the database; sessions and resets besides."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import httpx
import pytest

from pagefile import (
    BudgetError,
    HandleNotFoundError,
    InvalidArgumentError,
    Memory,
    NotFoundError,
    Settings,
    SettingsError,
)
from pagefile.records import Scope
from pagefile.service.app import create_app
from pagefile.settings import EmbedderSettings, ServiceSettings
from pagefile.stores.key_secrets import new_key
from tests.transcripts import CHAT

from .faces import CLIENTS, MEMORIES, opened
from .http_serving import BASE, serving

SETTINGS = Settings(checkpoints="manual", embedder=EmbedderSettings(name="none"), on_tier_error="raise")
ROWS = "row 价格 12.50 euros, delivered to 杭州\n" * 400
FACES = [*MEMORIES, *CLIENTS]
CHANGES = [
    {"window_tokens": 500},
    {"recent_turns": 1, "recall": "never"},
    {"archive__threshold": 50_000},
    {"facts.enabled": False, "placement": "head"},
    {"query": "发票呢？", "instructions": None},
    {},
]

pytestmark = pytest.mark.anyio


@pytest.fixture
async def told(tmp_path):
    """A database with two recorded calls, one made without a moment, and what a memory says of them."""
    url = f"sqlite:///{tmp_path}/agent.db"
    async with Memory.open(url, settings=SETTINGS) as memory:
        chat = memory.conversation("诊疗/1", user_id="林医生")
        await memory.remember("Pays in euros", user_id="林医生")
        steps = [{"tool": "search", "input": {"q": "price"}, "result": ROWS}]
        await chat.record("What does it cost? 多少钱？", "12.50 euros.", steps=steps)
        for number in range(6):
            await chat.record(f"Question {number} about the invoice", "Answer " * 20)
        first = await chat.context("And the invoice?", window_tokens=900, instructions="Be brief.")
        second = await chat.context("And the price? 价格呢？")
        await memory.settle()
        call = await memory.call(first.id)
        options = {name: value for name, value in call.options.items() if name != "moment"}
        await memory.engine.store.calls.add([replace(call, id="older", options=options)], keep=100)
    return url, [first.id, second.id]


async def everything(memory, ids):
    """What is said of the calls, by every verb."""
    chat = memory.conversation("诊疗/1", user_id="林医生")
    return {
        "calls": [await memory.call(one, user_id="林医生") for one in ids],
        "explained": [await chat.explain(one) for one in [*ids, "older"]],
        "replayed": [await chat.replay(ids[0], **changes) for changes in CHANGES],
        "costs": await chat.costs(),
        "newest": await chat.costs(limit=1),
    }


async def test_every_face_says_the_same(told):
    """The memory and its client, each with `await` and blocking: equal records, messages and differences included."""
    url, ids = told
    said = {}
    for face in FACES:
        async with opened(face, url, settings=SETTINGS) as memory:
            said[face] = await everything(memory, ids)
    assert [said["async"]] * 3 == [said[face] for face in FACES[1:]]
    found = said["client"]["explained"]
    assert [(one.exact, bool(one.messages)) for one in found] == [(True, True), (True, True), (False, False)]
    assert found[0].saved > 0
    assert found[1].previous == ids[0]
    replayed = said["client"]["replayed"]
    # Fewer recent turns and no recall: the same words, counted elsewhere.
    assert [one.comparison.same for one in replayed] == [False, True, False, False, False, True]
    assert [bool(one.comparison.changed) for one in replayed] == [True, True, True, True, True, False]
    assert replayed[2].changes == {"archive.threshold": 50_000}
    assert replayed[2].after.id == ""
    assert [cost.call_id for cost in said["client"]["costs"]] == [*ids, "older"]


@pytest.mark.parametrize("face", FACES)
async def test_a_turn_made_of_messages_is_explained_as_far_as_it_was(tmp_path, face):
    """With what came before the model was asked and nothing of what came later, while it is open and when it is done."""
    async with opened(face, f"sqlite:///{tmp_path}/agent.db", settings=SETTINGS) as memory:
        chat = memory.conversation("c", user_id="ada")
        turn, windows = await chat.begin(messages=CHAT[:1]), []
        for message in CHAT[1:]:
            windows.append(await chat.context(turn=turn))
            turn = await chat.extend(turn, [message])
        for end in (chat.context, chat.complete):
            await end(turn=turn)
            for window in windows:
                found = await chat.explain(window.id)
                assert (found.exact, found.why, found.messages) == (True, (), window.messages)
                replayed = await chat.replay(window.id, window_tokens=5000)
                assert replayed.before.messages == window.messages


#: What a replay cannot change, and what it says.
REFUSED = [
    ({"window_token": 1}, SettingsError, "did you mean 'window_tokens'"),
    ({"call_id": "x"}, SettingsError, "a replay cannot change"),
    ({"recall": "sometimes"}, SettingsError, "recall"),
    ({"window_tokens": "many"}, SettingsError, "whole number"),
    ({"archive.threshold": 1, "archive__threshold": 2}, SettingsError, "named twice"),
    ({"placement": ["tail"]}, SettingsError, "'tail' or 'head'"),
    ({"tokenizer": "klingon"}, SettingsError, "klingon"),
    ({"load": 7}, InvalidArgumentError, "list of uuids"),
    ({"load": {"uuid": 1}}, InvalidArgumentError, "list of uuids"),
    ({"load": ["x"]}, HandleNotFoundError, "uuid"),
    ({"window_tokens": 3}, BudgetError, "window"),
]


@pytest.mark.parametrize("face", FACES)
async def test_a_change_that_cannot_be_made_is_refused_alike(told, face):
    """The same error with the same advice, wherever it is asked for."""
    url, ids = told
    async with opened(face, url, settings=SETTINGS) as memory:
        chat = memory.conversation("诊疗/1", user_id="林医生")
        for changes, error, words in REFUSED:
            with pytest.raises(error, match=words):
                await chat.replay(ids[0], **changes)


@pytest.mark.parametrize("face", FACES)
async def test_a_call_that_is_not_there(told, face):
    """Unknown, another conversation's, another user's, another tenant's, or too old to be replayed."""
    url, ids = told
    async with opened(face, url, settings=SETTINGS) as memory:
        mine = memory.conversation("诊疗/1", user_id="林医生")
        other = memory.conversation("诊疗/2", user_id="林医生")
        for asked in (mine.explain("nobody's"), mine.replay("nobody's"), other.explain(ids[0])):
            with pytest.raises(NotFoundError, match="call"):
                await asked
        with pytest.raises(NotFoundError, match="older version"):
            await mine.replay("older")
        for whose in ({"user_id": "someone"}, {"tenant": "elsewhere"}):
            with pytest.raises(NotFoundError, match="call"):
                await memory.call(ids[0], **whose)


# -- as HTTP ---------------------------------------------------------------------------------------------------------


@pytest.fixture
async def client():
    async with serving(replace(SETTINGS, url="memory://")) as client:
        yield client


HERE = {"conversation_id": "诊疗/1", "user_id": "u"}


async def handed_out(client, here=HERE, **headers):
    """A conversation with a recorded call; its id."""
    await client.post(
        "/v1/turns", json={**here, "user": "我对青霉素过敏。", "assistant": "已记录。"}, **headers
    )
    return (await client.post("/v1/context", json={**here, "query": "能吃什么药？"}, **headers)).json()["id"]


async def test_the_answers_add_up(client):
    """What is beside the records: what was saved, and what each change costs."""
    call_id = await handed_out(client)
    found = (await client.get("/v1/explain", params={**HERE, "call_id": call_id})).json()
    assert found["saved"] == found["tokens_without"] - found["call"]["tokens"]
    assert found["window"]["messages"][-1]["content"].endswith("能吃什么药？")
    bill = sum(block["tokens"] for block in found["blocks"]) + found["receipt"]["framing"]
    assert bill == found["call"]["tokens"]
    body = {**HERE, "call_id": call_id, "changes": {"window_tokens": 30}}
    compared = (await client.post("/v1/replay", json=body)).json()["comparison"]
    assert compared["difference"] == sum(block["difference"] for block in compared["blocks"]) < 0
    assert not compared["same"]
    costs = (await client.get("/v1/costs", params=HERE)).json()["items"]
    assert [(one["call_id"], one["tokens"]) for one in costs] == [(call_id, found["call"]["tokens"])]


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ('{"threshold": NaN}', 422, None),
        ('{"threshold": 1e999}', 422, None),
        ('{"nope": 1}', 422, "settings"),
        ('{"tokenizer": "file:/etc/hostname"}', 422, "settings"),
        ('{"window_tokens": 1}', 422, "budget"),
        ('["window_tokens"]', 422, "validation"),
        ('{"query": "\\u0000"}', 422, None),
        ('{"instructions": "\\ud800"}', 422, None),
    ],
)
async def test_a_bad_change_is_a_problem(client, text, status, code):
    """Never an internal error, and always a problem document."""
    call_id = await handed_out(client)
    start = json.dumps({**HERE, "call_id": call_id})[:-1]
    body = f'{start}, "changes": {text}}}'
    answer = await client.post(
        "/v1/replay", content=body.encode(), headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["status"]) == (status, status), answer.text
    assert code in {None, answer.json()["code"]}


async def test_no_file_is_opened_for_somebody_elsewhere(client, tmp_path):
    """Whether a file is there cannot be asked: the answer is the same for one that is and one that is not."""
    call_id = await handed_out(client)
    there = tmp_path / "there.json"
    there.write_text("{}")
    said = set()
    for path in (there, tmp_path / "missing.json"):
        body = {**HERE, "call_id": call_id, "changes": {"tokenizer": f"file:{path}"}}
        said.add((await client.post("/v1/replay", json=body)).json()["detail"])
        params = {"call_id": call_id, "set.tokenizer": f"file:{path}"}
        page = await client.get("/inspector/replay", params=params, headers={"Accept": "text/html"})
        assert "opens no tokenizer from a file" in page.text
    assert len(said) == 1


async def test_sessions_and_resets(client):
    """What the pages show of them."""
    await handed_out(client)
    session = (await client.get("/v1/session", params=HERE)).json()
    assert session["value"]["flow_context"]["last_bot_message"] == "已记录。"
    assert (await client.get("/v1/session", params={"conversation_id": "none"})).status_code == 404
    assert (await client.get("/v1/session", params={**HERE, "user_id": "other"})).status_code == 404
    made = [(await client.post("/v1/reset", json=HERE)).json() for _ in range(3)]
    first = (await client.get("/v1/resets", params={**HERE, "limit": 2})).json()
    rest = (await client.get("/v1/resets", params={**HERE, "after": first["next"]})).json()
    assert first["items"] + rest["items"] == made
    assert rest["next"] is None
    other = await client.get("/v1/resets", params={**HERE, "user_id": "other"})
    assert made[0]["id"] not in other.text


async def test_a_key_opens_the_calls_of_its_holder_only():
    """By the id alone, within the own conversation and within the other's: a user's key, and a tenant's."""
    app = create_app(replace(SETTINGS, url="memory://", service=ServiceSettings(require_keys=True)))
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url=BASE) as client,
    ):
        shown, ids = {}, {}
        for scope in (Scope("red", "ada"), Scope("red", "bob"), Scope("blue", "ada"), Scope("red")):
            key, text = new_key("k", scope, created=datetime.now(UTC))
            await app.state.memory.engine.store.keys.add(key)
            shown[scope] = {"headers": {"Authorization": f"Bearer {text}"}}
            here = {"conversation_id": f"of {scope.user}"}
            ids[scope] = await handed_out(client, here, **shown[scope])
        for holder, headers in shown.items():
            for owner, call_id in ids.items():
                mine = owner.tenant == holder.tenant and holder.user in {None, owner.user}
                asked = {"conversation_id": f"of {owner.user}", "call_id": call_id}
                if holder.user is None:
                    asked |= {"user_id": owner.user} if owner.user else {}
                answers = [
                    await client.get("/v1/calls/call", params={"call_id": call_id}, **headers),
                    await client.get("/v1/explain", params=asked, **headers),
                    await client.post("/v1/replay", json={**asked, "changes": {}}, **headers),
                ]
                codes = {answer.status_code for answer in answers}
                assert codes == {200} if mine else codes <= {403, 404}, (holder, owner)
                own = {"conversation_id": f"of {holder.user}", "call_id": call_id}
                strange = await client.get("/v1/explain", params=own, **headers)
                assert strange.status_code == (200 if owner == holder else 404)
