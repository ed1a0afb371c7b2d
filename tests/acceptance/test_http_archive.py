"""The archive over HTTP: a bulky tool result becomes a page, is listed, found, loaded, pinned and purged."""

import re

import pytest

from pagefile import Settings
from pagefile.settings import ArchiveSettings

from .http_serving import serving

HERE = {"conversation_id": "门诊/1", "user_id": "王芳"}
THERE = {"conversation_id": "trip", "user_id": "ann"}
GUIDE = "\n\n".join(
    [
        "# 永策Pro 配置指南",
        *(f"第{number}章。高血压患者应少盐，监测血压，按时服药。" * 6 for number in range(20)),
        "第三步：打开系统设置，填写服务器地址 10.0.0.1 和端口 8443，然后点击测试连接。",
        *(
            f"Chapter {number}. The tram passes the old cathedral every ten minutes. " * 4
            for number in range(20)
        ),
        "In Alfama the hotel Memmo has a terrace.",
    ]
)
CHINESE = re.compile("[\u4e00-\u9fff]")
NOBODYS = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
async def client(tmp_path):
    settings = Settings(url=f"sqlite:///{tmp_path}/archive.db", archive=ArchiveSettings(threshold=1000))
    async with serving(settings) as client:
        yield client


async def told(client, path, status=200, **body):
    """The answer to a POST."""
    answer = await client.post(path, json=body)
    assert status == answer.status_code, answer.text
    return answer.json()


async def got(client, path, status=200, **params):
    """The answer to a GET."""
    answer = await client.get(path, params=params)
    assert status == answer.status_code, answer.text
    return answer.json()


async def archived(client, here=HERE, *, text=GUIDE, tool="search_docs", query="配置步骤"):
    """The step of a turn whose result was archived."""
    step = {"tool": tool, "input": {"query": query}, "result": text}
    turn = await told(client, "/v1/turns", 201, **here, user=f"{query}？", assistant="见附件。", steps=[step])
    return turn["steps"][0]


@pytest.mark.anyio
async def test_a_step_says_that_it_is_archived(client):
    """A front end can show 已存档, how long the whole is, and where to load it."""
    step = await archived(client)
    assert (False, len(GUIDE), 0) == (step["whole"], step["page_chars"], step["lost_chars"])
    assert step["page"] in step["result"]
    assert step["page_tokens"] > step["result_tokens"]
    short = await archived(client, text="短")
    assert (True, None, 0) == (short["whole"], short["page"], short["page_chars"])

    page = await got(client, "/v1/pages/page", **HERE, uuid=step["page"])
    assert (True, None, False) == (page["archived"], page["purged"], page["pinned"])
    assert ("search_docs", {"query": "配置步骤"}, "配置步骤") == (
        page["tool"],
        page["input"],
        page["query_summary"],
    )
    assert (len(GUIDE), step["page_tokens"]) == (page["length"], page["tokens"])
    assert page["result_summary"]
    assert 0 < page["stored_bytes"] < len(GUIDE.encode())


@pytest.mark.anyio
async def test_loading_whole_in_parts_and_by_question(client):
    """Parts tile the text, passages answer a question in either language, both say how long the whole is."""
    uuid = (await archived(client))["page"]
    whole = await told(client, "/v1/load", **HERE, uuid=uuid.upper())
    assert (GUIDE, len(GUIDE), None, uuid) == (whole["text"], whole["length"], whole["next"], whole["uuid"])

    read, offset = "", 0
    while offset is not None:
        part = await got(client, "/v1/load", **HERE, uuid=uuid, offset=offset, limit=700)
        assert (offset, len(GUIDE)) == (part["offset"], part["length"])
        read, offset = read + part["text"], part["next"]
    assert GUIDE == read

    for query, answer in (("第三步 端口", "8443"), ("hotel with a terrace", "Memmo")):
        found = await told(client, "/v1/load", **HERE, uuid=uuid, query=query, limit=2000)
        assert len(found["text"]) <= 2000
        assert answer in found["text"]
        assert len(found["text"]) < len(GUIDE)
        assert (query, len(GUIDE), None) == (found["query"], found["length"], found["next"])
    told_off = await told(client, "/v1/load", 422, **HERE, uuid=uuid, offset=len(GUIDE) + 1)
    assert str(len(GUIDE)) in told_off["detail"]
    assert 4 <= (await got(client, "/v1/pages/page", **HERE, uuid=uuid))["loads"]


@pytest.mark.anyio
async def test_pages_are_listed(client):
    """Newest first, of a conversation, a user or everybody, slice by slice."""
    first = (await archived(client))["page"]
    second = (await archived(client, text=GUIDE + "再见"))["page"]
    other = (await archived(client, THERE))["page"]

    async def uuids(**params):
        return [page["uuid"] for page in (await got(client, "/v1/pages", **params))["items"]]

    assert [other, second, first] == await uuids()
    assert [second, first] == await uuids(user_id="王芳")
    assert [second, first] == await uuids(conversation_id="门诊/1", user_id="王芳")
    for stranger in ({}, {"user_id": "ann"}):
        await got(client, "/v1/pages", 409, conversation_id="门诊/1", **stranger)
    assert [] == await uuids(tenant="elsewhere")
    slice_ = await got(client, "/v1/pages", limit=2)
    assert second == slice_["next"]
    assert [first] == await uuids(after=slice_["next"])
    chat = await got(client, "/v1/pages", conversation_id="门诊/1", user_id="王芳", limit=1)
    assert (second, second) == (chat["items"][0]["uuid"], chat["next"])


@pytest.mark.anyio
async def test_pages_are_searched(client):
    """All pages of a user, from any conversation; a hit says where to read on."""
    uuid = (await archived(client))["page"]
    for whose in ({"user_id": "王芳"}, {"user_id": "王芳", "conversation_id": "another"}):
        for query, answer in (("第三步的端口", "8443"), ("terrace in Alfama", "Memmo")):
            hit = (await told(client, "/v1/pages/search", **whose, query=query))["items"][0]
            assert uuid == hit["page"]["uuid"]
            assert answer in hit["passage"]
            assert GUIDE[hit["start"] :].startswith(hit["passage"])
    assert [] == (await told(client, "/v1/pages/search", user_id="ann", query="端口"))["items"]
    assert [] == (await told(client, "/v1/pages/search", user_id="王芳", query="斑马"))["items"]


@pytest.mark.anyio
async def test_pinned_and_purged(client):
    """A pinned page outlives every purge; a purged one is a tombstone that still says what it was."""
    kept = (await archived(client))["page"]
    gone = (await archived(client, text=GUIDE + "再见"))["page"]
    assert (await told(client, "/v1/pages/pin", **HERE, uuid=kept))["pinned"]

    # What is in a window in use goes only by name.
    assert [] == (await told(client, "/v1/pages/purge", user_id="王芳", max_bytes=0))["items"]
    purged = await told(client, "/v1/pages/purge", user_id="王芳", uuids=[kept, gone])
    assert [gone] == [page["uuid"] for page in purged["items"]]
    assert purged["stored_bytes"] == purged["items"][0]["stored_bytes"] > 0
    assert (await told(client, "/v1/load", **HERE, uuid=kept))["text"] == GUIDE

    problem = await told(client, "/v1/load", 410, **HERE, uuid=gone)
    assert "page-purged" == problem["code"]
    tomb = await got(client, "/v1/pages/page", **HERE, uuid=gone)
    assert not tomb["archived"]
    assert tomb["purged"]
    assert tomb["result_summary"]

    unpinned = await told(client, "/v1/pages/pin", **HERE, uuid=kept, pinned=False)
    assert not unpinned["pinned"]
    assert [] == (await told(client, "/v1/pages/purge", older_than_s=3600))["items"]
    assert [kept] == [
        page["uuid"] for page in (await told(client, "/v1/pages/purge", **HERE, uuids=[kept]))["items"]
    ]


@pytest.mark.anyio
async def test_a_window_shows_a_page_that_is_asked_for(client):
    """For one window only; a uuid that leads nowhere is in the receipt and costs nothing."""
    uuid = (await archived(client))["page"]
    # Passages of a page come by themselves as soon as it is indexed.
    assert (await told(client, "/v1/settle"))["settled"]
    ask = {**HERE, "query": "第三步再说一下"}
    plain = await told(client, "/v1/context", **ask)
    assert GUIDE not in [message["content"] for message in plain["messages"]]
    full = await told(client, "/v1/context", **ask, load=[uuid])
    assert GUIDE in [message["content"] for message in full["messages"]]
    assert plain["messages"] == (await told(client, "/v1/context", **ask))["messages"]
    lost = await told(client, "/v1/context", **ask, load=[NOBODYS])
    assert plain["messages"] == lost["messages"]
    assert any(NOBODYS in note for note in lost["receipt"]["degraded"])


# -- the tools of a model ------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_the_tools_have_schemas(client):
    """What the service offers is what it answers to."""
    tools = (await got(client, "/v1/tools"))["items"]
    assert ["load_tool_history", "search_tool_history"] == [tool["name"] for tool in tools]
    assert [["uuid"], ["query"]] == [tool["parameters"]["required"] for tool in tools]
    for scene in ("details", "reviewed", '"before", "just now"'):
        assert scene in tools[0]["description"]
    said = (await got(client, "/v1/tools", language="zh"))["items"]
    for scene in ("细节", "回顾", '"之前"、"刚才"、"上次说的"'):
        assert scene in said[0]["description"]
    assert [tool["name"] for tool in said] == [tool["name"] for tool in tools]
    await got(client, "/v1/tools", 422, language="fr")


@pytest.mark.anyio
async def test_the_tools_come_in_the_shape_of_an_api(client):
    """What a caller passes on to OpenAI, Anthropic or MCP needs no rewriting: the same tool in each shape."""
    plain = (await got(client, "/v1/tools"))["items"][0]
    name, description, parameters = plain["name"], plain["description"], plain["parameters"]
    said = {"name": name, "description": description}
    shapes = {
        "openai": {"type": "function", "function": plain},
        "responses": {"type": "function", **plain},
        "anthropic": {**said, "input_schema": parameters},
        "mcp": {**said, "inputSchema": parameters},
    }
    for shape, expected in shapes.items():
        assert expected == (await got(client, "/v1/tools", shape=shape))["items"][0]


@pytest.mark.anyio
async def test_a_model_pages_in(client):
    """Begin, search, load, step, complete: an agent's loop with the archive, with a scripted model."""
    uuid = (await archived(client))["page"]
    for number in range(4):
        await told(client, "/v1/turns", 201, **HERE, user=f"闲聊{number}", assistant="嗯。")
    await told(client, "/v1/turns/begin", 201, **HERE, id="t2", user="之前说的第三步再详细说一下")
    call = {**HERE, "turn_id": "t2"}
    found = await told(
        client, "/v1/tools/call", **call, name="search_tool_history", arguments={"query": "第三步"}
    )
    assert uuid in found["text"]
    arguments = {"uuid": uuid}
    loaded = await told(client, "/v1/tools/call", **call, name="load_tool_history", arguments=arguments)
    assert GUIDE == loaded["text"]
    stepped = await told(
        client, "/v1/turns/step", **call, tool="load_tool_history", input=arguments, result=loaded["text"]
    )
    assert [uuid] == [step["page"] for step in stepped["steps"]], "a loaded page is not archived again"
    window = await told(client, "/v1/context", **call)
    assert GUIDE == window["messages"][-1]["content"]
    await told(client, "/v1/turns/complete", **call, assistant="端口是 8443。")
    later = await told(client, "/v1/context", **HERE, query="谢谢")
    assert GUIDE not in [message["content"] for message in later["messages"]]


@pytest.mark.anyio
async def test_loads_of_one_turn_share_the_window(tmp_path):
    """With the turn named, what it loaded already leaves less room for the next page."""
    settings = Settings(
        url=f"sqlite:///{tmp_path}/small.db", window_tokens=12_000, archive=ArchiveSettings(threshold=1000)
    )
    async with serving(settings) as client:
        uuid = (await archived(client))["page"]
        await told(client, "/v1/turns/begin", 201, **HERE, id="t2", user="第三步？")
        call = {**HERE, "turn_id": "t2", "name": "load_tool_history", "arguments": {"uuid": uuid}}
        first = await told(client, "/v1/tools/call", **call)
        assert GUIDE == first["text"]
        for number in range(3):
            await told(
                client,
                "/v1/turns/step",
                **HERE,
                turn_id="t2",
                tool="load_tool_history",
                input={"uuid": uuid},
                call_id=f"call-{number}",
                result=first["text"],
            )
        again = await told(client, "/v1/tools/call", **call)
        assert len(again["text"]) < len(GUIDE)


@pytest.mark.anyio
@pytest.mark.parametrize("said", ["去哪里看门诊？", "Where is the clinic?"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("load_tool_history", {"uuid": "nope"}),
        ("load_tool_history", {"uuid": NOBODYS}),
        ("load_tool_history", {"uuid": ["a", {"b": None}]}),
        ("load_tool_history", {"uuid": "病历\n\x00"}),
        ("load_tool_history", {}),
        ("search_tool_history", {"query": ""}),
        ("search_tool_history", {"query": "7/11"}),
        ("search_tool_history", {"query": 5}),
        ("drop_tables", {"all": True}),
        ("", {}),
    ],
)
async def test_a_model_gets_words_for_its_mistakes(client, said, name, arguments):
    """Never an error: text in the language of the conversation that says what to do."""
    await told(client, "/v1/turns", 201, **HERE, user=said)
    answer = await told(client, "/v1/tools/call", **HERE, name=name, arguments=arguments)
    assert answer["text"].startswith("[")
    ours = answer["text"].replace(repr("病历\n\x00"), "")
    assert said.isascii() == (CHINESE.search(ours) is None)


@pytest.mark.anyio
async def test_half_a_character_is_answered(client):
    """A model's JSON may hold a lone surrogate; what quotes it can still be sent."""
    body = '{"conversation_id": "c", "name": "search_tool_history", "arguments": {"query": "\\ud800"}}'
    answer = await client.post("/v1/tools/call", content=body, headers={"Content-Type": "application/json"})
    assert 200 == answer.status_code, answer.text
    assert answer.json()["text"]


@pytest.mark.anyio
async def test_a_strangers_page_is_not_there(client):
    """Known by its uuid or not: for another user a page does not exist, in every verb."""
    uuid = (await archived(client))["page"]
    stranger = {"conversation_id": "门诊/1", "user_id": "eve"}
    assert "conflict" == (await told(client, "/v1/load", 409, **stranger, uuid=uuid))["code"]
    stranger["conversation_id"] = "hers"
    assert "handle-not-found" == (await told(client, "/v1/load", 404, **stranger, uuid=uuid))["code"]
    await got(client, "/v1/pages/page", 404, **stranger, uuid=uuid)
    await told(client, "/v1/pages/pin", 404, **stranger, uuid=uuid)
    assert [] == (await told(client, "/v1/pages/purge", user_id="eve", uuids=[uuid]))["items"]
    answer = await told(
        client, "/v1/tools/call", **stranger, name="load_tool_history", arguments={"uuid": uuid}
    )
    assert answer["text"].startswith("[archive not found]")
    same = await told(client, "/v1/load", conversation_id="another", user_id="王芳", uuid=uuid)
    assert GUIDE == same["text"], "a user's page follows them into every conversation"
