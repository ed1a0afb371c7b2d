"""The conversation graph's router, knowledge base and session behind `/v1/chat/stream`."""

import json

import pytest

from pagefile import Settings
from pagefile.errors import SettingsError
from pagefile.service.app import create_app
from pagefile.settings import ChatSettings, EmbedderSettings, ModelSettings

from .event_stream import JsonStub, events_in, words
from .http_serving import serving
from .model_stub import ModelStub

pytestmark = pytest.mark.anyio

STREAM = "/v1/chat/stream"


def settings(tmp_path, stub, **more):
    model = ModelSettings(name="stub", base_url=stub.url, api_key="k")
    return Settings(
        url=f"sqlite:///{tmp_path}/chat.db", model=model, embedder=EmbedderSettings(name="none"), **more
    )


FILMS = [{"title": "电影库", "content": "《星际穿越》的导演是诺兰。"}]


class Films:
    """A knowledge base by its import path."""

    async def retrieve(self, query, kb_prefix):
        return FILMS if kb_prefix == "movie" else []


def to_the_films(*, message, session_id):
    return {"kb_prefix": "movie" if "导演" in message else "general", "agent_type": f"films-{session_id}"}


def down(**_):
    raise ConnectionError("a secret address")


async def answered(tmp_path, hooks, message="导演是谁？", **more):
    with ModelStub(lambda _: ["诺兰。"]) as stub:
        async with serving(settings(tmp_path, stub, chat=ChatSettings(**hooks))) as client:
            body = {"message": message, "user_id": "u", "session_id": "s", **more}
            events = events_in((await client.post(STREAM, json=body)).text)
    assert "诺兰。" == words(events)
    told = {event.json["node"]: event.json["told"] for event in events if event["event"] == "node"}
    return told, json.dumps(stub.requests[-1]["messages"], ensure_ascii=False)


async def test_a_router_and_a_knowledge_base_by_import_path(tmp_path):
    """What was found is in the prompt of the questions that the router sends there, and of no others."""
    hooks = {"router": f"{__name__}:to_the_films", "retriever": f"{__name__}:Films"}
    told, prompt = await answered(tmp_path, hooks)
    assert {"kb_prefix": "movie", "agent_type": "films-s", "use_retrieval": True, "degraded": []} == told[
        "route"
    ]
    assert 1 == told["retrieve"]["results"]
    assert 0 < told["retrieve"]["tokens"]
    assert "[1] 电影库: 《星际穿越》的导演是诺兰。" in prompt
    told, prompt = await answered(tmp_path, hooks, "你好")
    assert (0, False) == (told["retrieve"]["results"], told["route"]["use_retrieval"])
    assert "检索" not in prompt


async def test_a_knowledge_base_behind_a_url(tmp_path):
    """It is asked with the document's names and whose question it is; without a router, for every question."""
    answer = {"data": [{"filename": "f.md", "content": [{"type": "text", "text": "诺兰 1970"}]}]}
    with JsonStub(answer) as server:
        told, prompt = await answered(
            tmp_path, {"retriever": server.url, "api_key": "kb"}, agent_type="film_agent"
        )
    assert "f.md: 诺兰 1970" in prompt
    assert "film_agent" == told["route"]["agent_type"]
    ((headers, body),) = server.requests
    assert "Bearer kb" == headers["Authorization"]
    assert {"query": "导演是谁？", "kb_prefix": "", "user_id": "u", "tenant": "default"} == body


@pytest.mark.parametrize("what", ["router", "retriever"])
@pytest.mark.parametrize("how", [f"{__name__}:down", "http://127.0.0.1:9/none"])
async def test_a_knowledge_base_that_is_down_costs_no_answer(tmp_path, what, how):
    """The event says what failed and not where; the question is answered."""
    hooks = {"router": f"{__name__}:to_the_films", "retriever": f"{__name__}:Films", what: how}
    told, _ = await answered(tmp_path, hooks)
    (note,) = told["route" if what == "router" else "retrieve"]["degraded"]
    assert note.startswith(f"{what} failed: Conn")
    assert "secret" not in json.dumps(told)


async def test_a_knowledge_base_keeps_to_its_room(tmp_path):
    """However much it finds, the window is not exceeded."""
    hooks = {"retriever": f"{__name__}:library", "retrieval_tokens": 300}
    told, _ = await answered(tmp_path, hooks, window_tokens=2000)
    assert 0 < told["retrieve"]["tokens"] <= 300
    assert 0 < told["retrieve"]["results"] < 50
    assert told["recall"]["tokens"] + told["retrieve"]["tokens"] <= told["recall"]["budget"] + 300


def library(**_):
    return [f"第{n}本书讲的是电影和导演。" for n in range(50)]


async def test_debug_shows_the_prompt(tmp_path):
    """And only debug does."""
    for debug in (True, False):
        told, prompt = await answered(tmp_path, {}, debug=debug)
        assert debug == ("prompt" in told["generate"])
        if debug:
            assert json.loads(prompt) == told["generate"]["prompt"]


async def test_a_session_is_one_conversation(tmp_path):
    """The same user and session talk on; another user's session of that name is another."""
    with ModelStub(lambda _: ["好。"]) as stub:
        async with serving(settings(tmp_path, stub)) as client:
            for user in ("u", "u", "v"):
                body = {"message": f"{user}说", "user_id": user, "session_id": "s"}
                assert "done" == events_in((await client.post(STREAM, json=body)).text)[-1]["event"]
            refused = await client.post(STREAM, json={"message": "谁？", "session_id": "s"})
    assert "u说" in str(stub.requests[1]["messages"][:-1])
    assert "u说" not in str(stub.requests[2]["messages"])
    assert 422 == refused.status_code
    assert "session_id" in refused.text


def test_what_cannot_be_imported_is_said_at_the_start(tmp_path):
    """Before anything is served, with the name of the setting."""
    for wrong in ("no.such.module:x", f"{__name__}:nothing", "nothing"):
        with pytest.raises(SettingsError, match=r"chat\.retriever"):
            create_app(Settings(chat=ChatSettings(retriever=wrong)))
