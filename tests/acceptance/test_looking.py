"""Looking into a memory, on both faces and through a service: one conversation, its log, its session, pages by their uuid, turns of many conversations."""

from dataclasses import replace

import httpx
import pytest

from pagefile import (
    Checkpoint,
    ConflictError,
    HandleNotFoundError,
    InvalidArgumentError,
    NotFoundError,
    PagePurgedError,
    Reset,
    Settings,
    Turn,
)
from pagefile.client import Client
from pagefile.service.app import create_app
from pagefile.settings import ArchiveSettings, EmbedderSettings

from .faces import MEMORIES, opened
from .http_serving import BASE

pytestmark = pytest.mark.anyio

SETTINGS = Settings(
    on_tier_error="raise",
    archive=ArchiveSettings(threshold=300, page_from=200),
    embedder=EmbedderSettings(name="none"),
)
GUIDE = "\n\n".join(f"第 {n} 步：打开阀门 V-{n}，等待 {n} 分钟。" for n in range(1, 60))
NO_UUID = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(params=[*MEMORIES, "client"])
async def memory(request, tmp_path):
    url = f"sqlite:///{tmp_path}/agent.db"
    if request.param != "client":
        async with opened(request.param, url, settings=SETTINGS) as memory:
            yield memory
        return
    # Without a socket: what is asked here is asked in many small requests.
    app = create_app(replace(SETTINGS, url=url))
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with app.router.lifespan_context(app), Client(BASE, transport=transport) as memory:
        yield memory


async def told(memory):
    """A conversation with one of everything."""
    chat = memory.conversation("诊疗/2026:7", user_id="王芳", agent="doctor")
    await chat.record("一", "壹", id="t1", steps=[{"tool": "guide", "input": {"q": "阀门"}, "result": GUIDE}])
    await chat.record("二", "贰", id="t2")
    lost = await chat.begin("三", id="t3")
    await chat.abort(lost)
    await chat.checkpoint("摘要：一", recent_turns=1)
    await chat.reset()
    await chat.record("四", "肆", id="t4")
    await chat.begin("五", id="t5")
    return chat


def kinds(log):
    return [(type(entry).__name__, entry.seq) for entry in log]


async def test_the_log_tells_everything_in_order(memory):
    """Turns, those given up and those still open too, checkpoints and resets: whole, in slices, from the end, and by kind."""
    chat = await told(memory)
    whole = await chat.log()
    assert [
        ("Turn", 1),
        ("Turn", 2),
        ("Turn", 3),
        ("Checkpoint", 4),
        ("Reset", 5),
        ("Turn", 6),
        ("Turn", None),
    ] == kinds(whole)
    assert whole.next is None
    assert [one for one in whole if isinstance(one, Turn)] == await chat.turns()
    assert [one for one in whole if isinstance(one, Checkpoint)] == await chat.checkpoints()

    read, after = [], 0
    while after is not None:
        part = await chat.log(after=after, limit=2)
        read, after = [*read, *part], part.next
    assert list(whole) == read
    assert list(whole)[-3:] == await chat.log(newest=True, limit=3)

    for kind, of in (("turn", Turn), ("checkpoint", Checkpoint), ("reset", Reset)):
        assert [one for one in whole if isinstance(one, of)] == await chat.log(kind=kind)
    one = await chat.log(kind="checkpoint", limit=1)
    assert "4" == one.next
    assert [] == await chat.log(kind="checkpoint", limit=1, after=one.next)
    with pytest.raises(InvalidArgumentError, match="'turn', 'checkpoint', 'reset'"):
        await chat.log(kind="summary")
    with pytest.raises(ConflictError):
        await memory.conversation(chat.id, user_id="李雷").log()


async def test_a_conversation_in_one_row(memory):
    """The row of the list; nobody's and somebody else's conversation are not there."""
    chat = await told(memory)
    head = await chat.head()
    assert [head] == await memory.conversations()
    assert ("王芳", "doctor", 6, 5) == (head.scope.user, head.agent, head.last_seq, head.reset_seq)
    assert "肆" == (await chat.session())["flow_context"]["last_bot_message"]
    for nowhere in (memory.conversation("none"), memory.conversation(chat.id, user_id="李雷")):
        with pytest.raises(NotFoundError, match="no such conversation"):
            await nowhere.head()
        with pytest.raises(NotFoundError, match="no such conversation"):
            await nowhere.session()


async def test_looking_at_a_page_is_no_load(memory):
    """By its uuid alone: what is known of it, its text whole, by part and by question; nothing is counted."""
    chat = await told(memory)
    uuid = (await chat.pages())[0].uuid
    for whose in ({}, {"user_id": "王芳"}):
        page = await memory.page(uuid, **whose)
        assert page == await chat.page(uuid)
        assert GUIDE == await memory.peek(uuid, **whose)
        part = await memory.peek(uuid, offset=20, limit=200, **whose)
        assert 0 < len(part) <= 200
        assert GUIDE[20:].startswith(part)
        passages = await memory.peek(uuid, query="V-42", limit=100, **whose)
        assert len(passages) < len(GUIDE) / 2
    assert 0 == (await chat.page(uuid)).loads
    assert GUIDE == await chat.load(uuid)
    assert passages == await chat.load(uuid, query="V-42", limit=100)
    assert 2 == (await memory.page(uuid)).loads

    for strange in ({"user_id": "李雷"}, {"tenant": "elsewhere"}):
        for verb in (memory.page, memory.peek):
            with pytest.raises(HandleNotFoundError):
                await verb(uuid, **strange)
    with pytest.raises(HandleNotFoundError):
        await memory.peek(NO_UUID)
    with pytest.raises(InvalidArgumentError, match="the page has"):
        await memory.peek(uuid, query="V-42", offset=len(GUIDE) + 1)
    await memory.purge(uuids=[uuid])
    assert (await memory.page(uuid)).purged is not None
    with pytest.raises(PagePurgedError):
        await memory.peek(uuid)


async def test_turns_of_many_conversations(memory):
    """Turns by conversation and place, of a tenant, a user or a conversation, in slices that leave nothing out."""
    await told(memory)
    for name, user in (("a b", "王芳"), ("乙", "王芳"), ("x", "李雷"), ("nobody's", None)):
        for number in range(3):
            await memory.conversation(name, user_id=user).record(f"{name} {number}", id=f"{name} {number}")
    await memory.conversation("y", user_id="王芳", tenant="elsewhere").record("別")

    async def ids(limit=100, **whose):
        read, after = [], None
        while True:
            part = await memory.turns(limit=limit, after=after, **whose)
            assert len(part) <= limit
            read += [turn.id for turn in part]
            after = part.next
            if after is None:
                return read

    a, b, x, nobody = ([f"{name} {n}" for n in range(3)] for name in ("a b", "乙", "x", "nobody's"))
    mine = [*a, *b, "t1", "t2", "t3", "t4"]
    for limit in (1, 2, 3, 100):
        assert mine == await ids(limit, user_id="王芳")
        assert [*a, *nobody, *x, *b, "t1", "t2", "t3", "t4"] == await ids(limit)
        assert b == await ids(limit, conversation_id="乙", user_id="王芳")
    assert nobody == await ids(conversation_id="nobody's")
    assert [] == await ids(conversation_id="乙", user_id="李雷")
    assert 1 == len(await ids(tenant="elsewhere"))
    for wrong in ("nonsense", "7", " x", "x y", "9" * 30 + " x"):
        with pytest.raises(InvalidArgumentError):
            await memory.turns(after=wrong)


async def test_pages_are_searched_as_wide_as_one_says(memory):
    """Of one conversation, of a user, of everybody; whoever says nothing is asked."""
    for name, user in (("一", "王芳"), ("二", "王芳"), ("三", "李雷")):
        step = {"tool": "guide", "input": {"q": name}, "result": f"{GUIDE}\n\n第 {name} 份"}
        await memory.conversation(name, user_id=user).record(name, steps=[step])

    def seen(hits):
        return sorted(hit.page.scope.conversation for hit in hits)

    chat = memory.conversation("一", user_id="王芳")
    assert ["一"] == seen(await chat.search_tool_history("阀门 V-42", here=True))
    assert ["一", "二"] == sorted(seen(await chat.search_tool_history("阀门 V-42")))
    assert ["一", "二"] == sorted(seen(await memory.search_tool_history("阀门 V-42", user_id="王芳")))
    assert ["一", "三", "二"] == seen(await memory.search_tool_history("阀门 V-42", user_id=None))
    with pytest.raises(TypeError):
        await memory.search_tool_history("阀门 V-42")
    told = await memory.describe()
    assert (16_000, None) == (told["window_tokens"], told["model"])
