"""The session value over HTTP: what a service in another language sets, and what it is refused."""

import pytest

from pagefile import InvalidArgumentError, Memory, Settings
from pagefile.engine.session_change import MAX_SESSION_CHARS

from .faces import MEMORIES, opened
from .http_serving import serving
from .problems import check

HERE = {"conversation_id": "c", "user_id": "ada"}
ACTION = {"tool_name": "book", "tool_params": {"day": "周一"}, "reason": "等待确认"}


@pytest.fixture(params=[*MEMORIES, "client"])
async def memory(request, tmp_path):
    async with opened(request.param, f"sqlite:///{tmp_path}/agent.db") as memory:
        yield memory


async def test_what_is_set_is_there_and_the_rest_stays(memory):
    """Before the first turn, after it, and in several steps; the safety data is in the next window."""
    chat = memory.conversation("c", user_id="ada")
    first = await chat.put_session({"user_snapshot": {"allergies": ["青霉素"], "history": ["高血压"]}})
    assert first["user_snapshot"]["user_id"] == "ada"
    await chat.record("你好", "您好")
    value = await chat.put_session(
        {"global_state": {"pending_action": ACTION, "agent_slots": {"city": "上海"}}}
    )
    assert value == await chat.session()
    assert (["青霉素"], ["高血压"]) == tuple(
        value["user_snapshot"][name] for name in ("allergies", "history")
    )
    assert (ACTION, {"city": "上海"}) == tuple(
        value["global_state"][n] for n in ("pending_action", "agent_slots")
    )
    assert 1 == value["flow_context"]["turn_count"]
    window = str((await chat.context("我可以吃什么药？")).messages)
    assert "青霉素" in window
    assert "高血压" in window


async def test_a_session_can_be_sent_back_as_it_was_read(memory):
    """What comes from the log is not taken over, however old it is by then."""
    chat = memory.conversation("c", user_id="ada")
    await chat.record("一", "1")
    read = dict(await chat.session())
    await chat.record("二", "2")
    read["global_state"] = {**read["global_state"], "current_intent": "预约"}
    value = await chat.put_session(read)
    assert ("预约", 2, "2") == (
        value["global_state"]["current_intent"],
        value["flow_context"]["turn_count"],
        value["flow_context"]["last_bot_message"],
    )
    assert ["一", "1", "二", "2"] == [said["content"] for said in value["message_context"]["window_messages"]]


async def test_entities_have_two_names(memory):
    chat = memory.conversation("c", user_id="ada")
    state = (await chat.put_session({"global_state": {"entities": {"disease": "感冒"}}}))["global_state"]
    assert {"disease": "感冒"} == state["shared"] == state["entities"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "must be an object"),
        ({"user_snapshot": []}, "value.user_snapshot must be an object"),
        ({"user_snapshot": {"allergies": "青霉素"}}, "value.user_snapshot.allergies must be a list of texts"),
        ({"user_snapshot": {"allergies": [" "]}}, "not blank"),
        (
            {"user_snapshot": {"allergy": ["青霉素"]}},
            "has no 'allergy': it takes 'user_id', 'name', 'allergies'",
        ),
        ({"user_snapshot": {"user_id": "bob"}}, "another user"),
        ({"user": {}}, "has no 'user'"),
        ({"global_state": {"pending_action": "book"}}, "an object or null"),
        ({"global_state": {"shared": {"a": 1}, "entities": {"a": 2}}}, "two names for one thing"),
        ({"global_state": {"agent_slots": {"x": "y" * MAX_SESSION_CHARS}}}, "at most 100,000"),
        ({"global_state": {"agent_slots": {"x": float("nan")}}}, "JSON"),
    ],
)
async def test_what_it_does_not_take_is_refused(memory, value, says):
    """With the place and what to give; nothing is changed."""
    chat = memory.conversation("c", user_id="ada")
    before = await chat.put_session({"user_snapshot": {"allergies": ["花生"]}})
    with pytest.raises(InvalidArgumentError, match=says):
        await chat.put_session(value)
    assert before == await chat.session()


async def test_over_http():
    async with serving(Settings(url="memory://")) as client:
        body = {**HERE, "value": {"user_snapshot": {"allergies": "青霉素"}}}
        refused = await client.put("/v1/session", json=body)
        assert "allergies must be a list" in refused.text
        check(
            await client.put("/v1/session", content="{}", headers={"Content-Type": "text/plain"}),
            415,
            "media-type",
        )


async def test_allergies_that_were_set_over_http_are_in_every_prompt():
    """In the window, however small, and in the text of the history."""
    async with serving(Settings(url="memory://")) as client:
        turn = {**HERE, "user": "你好", "assistant": "你好！"}
        assert 201 == (await client.post("/v1/turns", json=turn)).status_code
        body = {**HERE, "value": {"user_snapshot": {"allergies": ["青霉素"], "history": ["高血压"]}}}
        assert (await client.put("/v1/session", json=body)).is_success
        asked = {**HERE, "query": "我可以吃阿莫西林吗？", "window_tokens": 100}
        window = (await client.post("/v1/context", json=asked)).json()
        told = (await client.get("/v1/history", params=HERE)).text
    for text in (window["messages"][0]["content"], told):
        assert "过敏史: 青霉素" in text
        assert "慢病史: 高血压" in text


async def test_what_an_application_stored_may_be_sent_back():
    """Names that are not known but stored already are its own."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="ada")
        await memory.engine.sessions.put(chat.scope, {"own": 1, "user_snapshot": {"weight": 70}})
        value = await chat.put_session({"own": 2, "user_snapshot": {"weight": 71, "allergies": ["花生"]}})
    assert (2, {"weight": 71, "allergies": ["花生"], "user_id": "ada"}) == (
        value["own"],
        value["user_snapshot"],
    )


# -- the history ---------------------------------------------------------------------------------------------------------


async def test_the_history_is_a_text_and_its_token_goes_with_the_summary():
    """The document's lines with the safety data; a summary covers what its author read, not what was written meanwhile."""
    async with serving(Settings(url="memory://")) as client:
        assert (await client.get("/v1/history", params=HERE)).json()["history"] == ""
        await client.put("/v1/session", json={**HERE, "value": {"user_snapshot": {"allergies": ["青霉素"]}}})
        for number in range(4):
            await client.post("/v1/turns", json={**HERE, "user": f"问{number}", "assistant": f"答{number}"})
        read = (
            await client.get("/v1/history", params={**HERE, "query": "然后？", "window_tokens": 50})
        ).json()
        lines = [line for number in range(4) for line in (f"用户: 问{number}", f"AI: 答{number}")]
        assert ["过敏史: 青霉素", *lines] == read["full_history"].splitlines()
        assert read["should_checkpoint_summary"]
        await client.post("/v1/turns", json={**HERE, "user": "问4", "assistant": "答4"})
        summary = {**HERE, "summary": "问了四次", "recent_turns": 1, "read_token": read["read_token"]}
        made = await client.post("/v1/checkpoints", json=summary)
        assert (201, "问了四次") == (made.status_code, made.json()["summary"])
        after = (await client.get("/v1/history", params=HERE)).json()
        kept = ["历史摘要: 问了四次", "过敏史: 青霉素", "用户: 问4", "AI: 答4"]
        assert ("SUMMARY_N", kept) == (after["mode"], after["history"].splitlines())
        check(await client.post("/v1/checkpoints", json={**summary, "summary": "旧的"}), 409, "conflict")


@pytest.mark.parametrize("whose", [{"user_id": "bob"}, {"user_id": None}])
async def test_the_history_of_another_user_is_refused(whose):
    async with serving(Settings(url="memory://")) as client:
        await client.post("/v1/turns", json={**HERE, "user": "秘密", "assistant": "好"})
        named = {name: value for name, value in {**HERE, **whose}.items() if value}
        refused = await client.get("/v1/history", params=named)
        check(refused, 409, "conflict")
        body = {**named, "summary": "x", "read_token": "1.0"}
        check(await client.post("/v1/checkpoints", json=body), 409, "conflict")


async def test_a_token_needs_its_summary_and_its_form():
    async with serving(Settings(url="memory://")) as client:
        await client.post("/v1/turns", json={**HERE, "user": "a", "assistant": "b"})
        alone = await client.post("/v1/checkpoints", json={**HERE, "read_token": "1.0"})
        assert "give the summary, too" in alone.text
        odd = await client.post("/v1/checkpoints", json={**HERE, "summary": "s", "read_token": "x"})
        assert "read_token" in odd.json()["detail"]
