"""A conversation over HTTP, in two languages, told from record to forget."""

import pytest

from pagefile import Settings
from pagefile.settings import ArchiveSettings

from .http_serving import serving

HERE = {"conversation_id": "诊疗/2026:7", "user_id": "用户-1"}


@pytest.fixture
async def client(tmp_path):
    settings = Settings(url=f"sqlite:///{tmp_path}/story.db", archive=ArchiveSettings(threshold=500))
    async with serving(settings) as client:
        yield client


async def answered(client, path, status=200, **body):
    """The answer to a POST that must succeed."""
    answer = await client.post(path, json=body)
    assert status == answer.status_code, answer.text
    return answer.json()


async def listed(client, path, **params):
    """The answer to a GET that must succeed."""
    answer = await client.get(path, params=params)
    assert 200 == answer.status_code, answer.text
    return answer.json()


@pytest.mark.anyio
async def test_a_turn_goes_in_and_a_window_comes_out(client):
    """What was recorded is in the next window, in its own script, with exact tokens and a receipt."""
    turn = await answered(
        client,
        "/v1/turns",
        201,
        **HERE,
        user="我对青霉素过敏。",
        assistant="已记录。",
        metadata={"渠道": "网页"},
    )
    assert (1, "done", {"渠道": "网页"}) == (turn["seq"], turn["status"], turn["metadata"])
    assert ("诊疗/2026:7", "用户-1", "default") == (turn["conversation_id"], turn["user_id"], turn["tenant"])

    window = await answered(
        client,
        "/v1/context",
        **HERE,
        query="我可以吃什么药？",
        instructions="Be careful.",
        window_tokens=2000,
    )
    said = [(message["role"], message["content"]) for message in window["messages"]]
    assert [("user", "我对青霉素过敏。"), ("assistant", "已记录。")] == said[1:3]
    assert said[0][1].startswith("Be careful.\n\n今天是 20")
    assert said[-1][0] == "user"
    assert said[-1][1].endswith("我可以吃什么药？")
    assert 0 < window["tokens"] <= window["budget"] == 2000
    receipt = window["receipt"]
    assert receipt["exact"] is True
    assert turn["id"] in {verdict["id"] for verdict in receipt["verdicts"] if verdict["kept"]}
    assert window["tokens"] == receipt["framing"] + sum(v["tokens"] for v in receipt["verdicts"] if v["kept"])

    calls = await listed(client, "/v1/calls", **HERE)
    assert [window["id"]] == [call["id"] for call in calls["items"]]


@pytest.mark.anyio
async def test_a_window_in_every_shape(client):
    """The same window as OpenAI messages, as Anthropic's system and messages, and as text."""
    await answered(client, "/v1/turns", 201, **HERE, user="I like tea.", assistant="Noted.")
    ask = {**HERE, "query": "What do I like?", "instructions": "Be brief."}
    anthropic = await answered(client, "/v1/context", **ask, format="anthropic")
    told, today = anthropic["system"].split("\n\n")
    assert ("Be brief.", None) == (told, anthropic["text"])
    assert today.startswith("Today is ")
    assert ["user", "assistant", "user"] == [message["role"] for message in anthropic["messages"]]
    text = await answered(client, "/v1/context", **ask, format="text")
    assert (None, None) == (text["system"], text["messages"])
    assert "User: I like tea.\nAI: Noted." in text["text"]
    openai = await answered(client, "/v1/context", **ask)
    assert openai["tokens"] == anthropic["tokens"] == text["tokens"]


@pytest.mark.anyio
async def test_a_loop_with_tools(client):
    """Begin, step, context, complete: the open turn is the current message, and it sees its bulky result whole."""
    await answered(client, "/v1/turns/begin", 201, **HERE, id="t1", user="指南怎么说？")
    bulky = "高血压患者应少盐，监测血压。" * 200
    stepped = await answered(
        client, "/v1/turns/step", **HERE, turn_id="t1", tool="guideline", input={"q": "高血压"}, result=bulky
    )
    page = stepped["steps"][0]["page"]
    assert page
    assert page in stepped["steps"][0]["result"]

    window = await answered(client, "/v1/context", **HERE, turn_id="t1")
    assert ["system", "user", "assistant", "tool"] == [message["role"] for message in window["messages"]]
    assert bulky == window["messages"][-1]["content"], "the turn that fetched it sees it whole"

    done = await answered(client, "/v1/turns/complete", **HERE, turn_id="t1", assistant="少盐。")
    assert ("done", 1) == (done["status"], done["seq"])
    await answered(client, "/v1/turns/begin", 201, **HERE, id="t2", user="没事了")
    aborted = await answered(client, "/v1/turns/abort", **HERE, turn_id="t2")
    assert "aborted" == aborted["status"]


@pytest.mark.anyio
async def test_recall_by_word(client):
    """Past turns come back with reasons and neighbours, by conversation and by user."""
    said = ["我对青霉素过敏。", "I moved to Berlin.", "我养了一只猫。"]
    for number, user in enumerate(said):
        await answered(client, "/v1/turns", 201, **HERE, id=f"t{number}", user=user, assistant="好的。")
    hits = (await answered(client, "/v1/recall", query="who moved to Berlin?", user_id="用户-1"))["items"]
    assert "t1" == hits[0]["id"]
    assert ("t0", "t2") == (hits[0]["before"]["id"], hits[0]["after"]["id"])
    assert hits[0]["parts"]
    hits = (await answered(client, "/v1/recall", **HERE, query="青霉素", limit=1))["items"]
    assert ["t0"] == [hit["id"] for hit in hits]


@pytest.mark.anyio
async def test_lists_go_on_page_by_page(client):
    """`next` of one page is the `after` of the following one, until it is null."""
    for number in range(5):
        await answered(client, "/v1/turns", 201, **HERE, id=f"t{number}", user=f"第{number}句")
    seen, after = [], None
    while True:
        page = await listed(client, "/v1/turns", **HERE, limit=2, **({"after": after} if after else {}))
        seen += [turn["id"] for turn in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert [f"t{number}" for number in range(5)] == seen
    newest = await listed(client, "/v1/turns", **HERE, limit=2, newest=True)
    assert ["t3", "t4"] == [turn["id"] for turn in newest["items"]]
    found = await listed(client, "/v1/memory/conversations", user_id="用户-1")
    assert [("诊疗/2026:7", 5)] == [(one["conversation_id"], one["turns"]) for one in found["items"]]


@pytest.mark.anyio
async def test_checkpoint_and_reset(client):
    """A summary speaks for the older turns; a reset empties the window and keeps the log."""
    for number in range(3):
        await answered(client, "/v1/turns", 201, **HERE, user=f"message {number}", assistant="ok")
    made = await answered(client, "/v1/checkpoints", 201, **HERE, summary="三条消息", recent_turns=1)
    assert (1, 2, "三条消息") == (made["version"], made["covered_turns"], made["summary"])
    assert [made] == (await listed(client, "/v1/checkpoints", **HERE))["items"]
    window = await answered(client, "/v1/context", **HERE, query="and now?")
    assert "SUMMARY_N" == window["mode"]
    await answered(client, "/v1/reset", 201, **HERE)
    window = await answered(client, "/v1/context", **HERE, query="nothing to do with it")
    assert ("FULL_HISTORY", ["system", "user"]) == (
        window["mode"],
        [one["role"] for one in window["messages"]],
    )
    assert 3 == len((await listed(client, "/v1/turns", **HERE))["items"])


@pytest.mark.anyio
async def test_facts_change_and_change_back(client):
    """A new one takes the old one's place; undo brings it back; secrets are refused; a memory file is taken over."""
    about = {"user_id": "用户-1", "attribute": "residence"}
    first = await answered(client, "/v1/facts", 201, text="住在杭州", **about)
    second = await answered(client, "/v1/facts", 201, text="住在上海", **about)
    assert ("stored", "superseded", first["id"]) == (
        first["outcome"],
        second["outcome"],
        second["supersedes"],
    )
    held = await listed(client, "/v1/facts", user_id="用户-1")
    assert ["住在上海"] == [one["text"] for one in held["items"]]
    then = await listed(client, "/v1/facts", user_id="用户-1", as_of=first["recorded"])
    assert ["住在杭州"] == [one["text"] for one in then["items"]]
    assert 2 == len((await listed(client, "/v1/facts", user_id="用户-1", history=True))["items"])
    changes = (await listed(client, "/v1/facts/revisions", user_id="用户-1"))["items"]
    assert ["stored", "superseded"] == [one["action"] for one in changes]
    undone = await answered(client, "/v1/facts/undo", user_id="用户-1", revision=changes[-1]["number"])
    assert "undone" == undone["action"]
    assert ["住在杭州"] == [
        one["text"] for one in (await listed(client, "/v1/facts", user_id="用户-1"))["items"]
    ]
    refused = await client.post("/v1/facts", json={"text": "密码是 abc123", "user_id": "用户-1"})
    assert (422, "fact-rejected") == (refused.status_code, refused.json()["code"])
    memory = {"facts": [{"content": "Prefers pytest"}, {"content": ""}]}
    counts = await answered(client, "/v1/facts/import", user_id="用户-1", memory=memory)
    assert {"stored": 1, "duplicate": 0, "superseded": 0, "rejected": 1} == counts


async def test_facts_and_forgetting(client):
    """Facts are held, retracted and erased with their user; the receipt counts what went."""
    fact = await answered(client, "/v1/facts", 201, text="对青霉素过敏", user_id="用户-1", category="allergy")
    assert [fact["id"]] == [
        one["id"] for one in (await listed(client, "/v1/facts", user_id="用户-1"))["items"]
    ]
    gone = await answered(client, "/v1/facts/retract", fact_id=fact["id"])
    assert gone["retracted"]
    assert [] == (await listed(client, "/v1/facts", user_id="用户-1"))["items"]

    await answered(client, "/v1/turns", 201, **HERE, user="再见", assistant="再见")
    receipt = await answered(client, "/v1/forget", user_id="用户-1")
    assert receipt["total"] == sum(receipt["counts"].values()) >= 2
    assert [] == (await listed(client, "/v1/turns", **HERE))["items"]


@pytest.mark.anyio
async def test_tenants_do_not_meet(client):
    """The same ids in another tenant are another conversation."""
    await answered(client, "/v1/turns", 201, **HERE, tenant="a", user="secret")
    assert [] == (await listed(client, "/v1/turns", **HERE, tenant="b"))["items"]
    assert [] == (await listed(client, "/v1/turns", **HERE))["items"]
    assert 1 == len((await listed(client, "/v1/turns", **HERE, tenant="a"))["items"])


@pytest.mark.anyio
async def test_health_names_store_and_tokenizer(client):
    """Health asks the store itself."""
    health = await listed(client, "/healthz")
    assert ("ok", "sqlite") == (health["status"], health["store"]["backend"])
    assert {"name": "o200k_base", "exact": True} == health["tokenizer"]
