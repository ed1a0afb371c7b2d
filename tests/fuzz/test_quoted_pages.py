"""A uuid that somebody quotes, guesses or brings along opens nothing that is another's, warm caches or not."""

import json

import pytest

from pagefile import HandleNotFoundError, Memory

SECRET = "甲的化验单：血钾 6.1 mmol/L。Only A may read this. " * 400
OTHERS = [("t", "ub"), ("t", None), ("other", "ua")]

pytestmark = pytest.mark.anyio


async def archived(memory: Memory, tenant: str, user: str | None, conversation: str, text: str) -> str:
    """The uuid of a page that is all of a conversation."""
    chat = memory.conversation(conversation, user_id=user, tenant=tenant)
    turn = await chat.begin("查一下")
    turn = await chat.step(turn, tool="search", input={"q": "血钾"}, result=text)
    turn = await chat.complete(turn, "查到了。")
    uuid = turn.steps[0].page
    assert uuid is not None
    return uuid


def shown(window: object) -> str:
    return json.dumps(window.messages, ensure_ascii=False)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("tenant", "user"), OTHERS)
async def test_a_page_in_the_cache_is_nobody_elses(tenant, user):
    """The owner's window brings the page to hand; the same uuid in another's `load` stays a placeholder."""
    async with Memory.open("memory://") as memory:
        uuid = await archived(memory, "t", "ua", "ca", SECRET)
        own = memory.conversation("ca", user_id="ua", tenant="t")
        assert "血钾 6.1" in shown(await own.context("血钾多少？", load=[uuid]))
        other = memory.conversation("cb", user_id=user, tenant=tenant)
        window = await other.context("血钾多少？", load=[uuid])
        assert "血钾 6.1" not in shown(window)
        with pytest.raises(HandleNotFoundError):
            await other.load(uuid)
        turn = await other.begin(f'load_tool_history(uuid="{uuid}")')
        turn = await other.step(turn, tool="load_tool_history", input={"uuid": uuid}, result="")
        assert "血钾 6.1" not in shown(await other.context(turn=turn))


async def test_passages_in_the_cache_are_nobody_elses(tmp_path):
    """Two tenants may hold pages of one uuid (an import keeps them); what one is shown is its own text."""
    async with Memory.open("memory://") as memory:
        uuid = await archived(memory, "t", "ua", "ca", SECRET)
        file = tmp_path / "export.jsonl"
        await memory.export(file, tenant="t")
        file.write_text(file.read_text(encoding="utf-8").replace("血钾 6.1", "血钾 0.0"), encoding="utf-8")
        await memory.import_(file, tenant="other")
        own = memory.conversation("ca", user_id="ua", tenant="t")
        theirs = memory.conversation("ca", user_id="ua", tenant="other")
        for _ in range(2):
            mine = shown(await own.context("血钾多少？", load=[uuid], window_tokens=3000))
            assert "血钾 6.1" in mine
            assert "血钾 0.0" not in mine
            other = shown(await theirs.context("血钾多少？", load=[uuid], window_tokens=3000))
            assert "血钾 0.0" in other
            assert "血钾 6.1" not in other
