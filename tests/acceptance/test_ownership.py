"""Whose a conversation is: its first use decides, and it opens for nobody else."""

import json

import anyio
import pytest

from pagefile import ConflictError, Memory, NotFoundError, Settings
from pagefile.engine import Conversation

from .faces import MEMORIES, opened
from .http_serving import serving
from .keyed import made, settings
from .problems import check

LONG = "The code word is HELIOTROPE. " + "Filler. " * 600
STEP = {"tool": "read", "input": {}, "result": LONG, "call_id": "1"}

#: Everything a handle can be asked for, on a conversation that has a turn "t", a page and a call.
VERBS = {
    "record": lambda chat, found: chat.record(user="hi", assistant="ho"),
    "begin": lambda chat, found: chat.begin("hi"),
    "step": lambda chat, found: chat.step("t", tool="x", result="y"),
    "extend": lambda chat, found: chat.extend("t", [{"role": "assistant", "content": "x"}]),
    "complete": lambda chat, found: chat.complete("t", "x"),
    "abort": lambda chat, found: chat.abort("t"),
    "messages": lambda chat, found: chat.messages(found["turn"]),
    "fork": lambda chat, found: chat.fork("t"),
    "context": lambda chat, found: chat.context("hi"),
    "recall": lambda chat, found: chat.recall("HELIOTROPE"),
    "load": lambda chat, found: chat.load(found["page"]),
    "page": lambda chat, found: chat.page(found["page"]),
    "pages": lambda chat, found: chat.pages(),
    "search": lambda chat, found: chat.search_tool_history("HELIOTROPE"),
    "search here": lambda chat, found: chat.search_tool_history("HELIOTROPE", here=True),
    "fetched": lambda chat, found: chat.fetched("read", {}),
    "pin": lambda chat, found: chat.pin(found["page"]),
    "call_tool": lambda chat, found: chat.call_tool("load_tool_history", {"uuid": found["page"]}),
    "checkpoint": lambda chat, found: chat.checkpoint("short", recent_turns=0),
    "reset": lambda chat, found: chat.reset(),
    "turns": lambda chat, found: chat.turns(),
    "log": lambda chat, found: chat.log(),
    "head": lambda chat, found: chat.head(),
    "session": lambda chat, found: chat.session(),
    "put_session": lambda chat, found: chat.put_session({"user_snapshot": {"allergies": ["x"]}}),
    "checkpoints": lambda chat, found: chat.checkpoints(),
    "calls": lambda chat, found: chat.calls(),
    "explain": lambda chat, found: chat.explain(found["call"]),
    "replay": lambda chat, found: chat.replay(found["call"], window_tokens=4000),
    "costs": lambda chat, found: chat.costs(),
}


@pytest.fixture(params=[*MEMORIES, "client"])
async def memory(request, tmp_path):
    async with opened(request.param, f"sqlite:///{tmp_path}/agent.db", settings=Settings()) as memory:
        yield memory


async def used(memory, owner):
    chat = memory.conversation("c", user_id=owner)
    turn = await chat.record(user="What is the word?", assistant="It is there.", steps=[STEP], id="t")
    window = await chat.context("and now?")
    await memory.settle()
    return {"turn": turn, "page": turn.steps[0].page, "call": window.id}


@pytest.mark.parametrize(("owner", "stranger"), [("olga", "ivan"), ("olga", None), (None, "ivan")])
async def test_no_verb_opens_somebody_elses_conversation(owner, stranger):
    """Whoever is not its owner is refused, whatever they ask for; nothing changes, and nobody learns the owner's name."""
    async with Memory.open("memory://") as memory:
        found = await used(memory, owner)
        before = await memory.conversation("c", user_id=owner).log()
        for name, ask in VERBS.items():
            with pytest.raises((ConflictError, NotFoundError)) as refused:
                await ask(memory.conversation("c", user_id=stranger), found)
            assert "olga" not in str(refused.value), name
        assert before == await memory.conversation("c", user_id=owner).log()
        for name, ask in VERBS.items():
            if name not in {
                "step",
                "extend",
                "complete",
                "abort",
                "checkpoint",
                "replay",
                "explain",
                "reset",
            }:
                await ask(memory.conversation("c", user_id=owner), found)


def test_every_verb_is_asked():
    """One that is added to the handle is added here."""
    verbs = {name for name in vars(Conversation) if not name.startswith("_")}
    asked = {"search_tool_history" if name.startswith("search") else name for name in VERBS}
    assert verbs - {"id", "scope", "workspace"} == asked


@pytest.mark.parametrize(("first", "second"), [("bob", "ada"), (None, "ada"), ("ada", None)])
async def test_who_asks_first_owns_the_conversation(memory, first, second, tmp_path):
    """A window is a use, before anything is written; what was asked is in nobody else's export."""
    await memory.conversation("today", user_id=first).context("my secret question", instructions="SECRET")
    with pytest.raises(ConflictError):
        await memory.conversation("today", user_id=second).record(user="hello", assistant="hi")
    with pytest.raises(ConflictError):
        await memory.conversation("today", user_id=second).context("hello")
    await memory.conversation("today", user_id=first).record(user="hello", assistant="hi")
    if second is not None:
        await memory.export(tmp_path / "theirs.jsonl", user_id=second)
        assert "secret" not in (tmp_path / "theirs.jsonl").read_text(encoding="utf-8").lower()


async def test_looking_claims_nothing(memory):
    """Nor does an incognito window: whoever comes then may have the id."""
    bobs = memory.conversation("free", user_id="bob")
    assert ([], []) == (list(await bobs.turns()), list(await bobs.calls()))
    assert [] == await bobs.recall("anything")
    with pytest.raises(NotFoundError):
        await bobs.head()
    await memory.conversation("free", user_id="ada").record(user="mine", assistant="yes")


async def test_an_incognito_window_claims_nothing():
    """It leaves no trace."""
    async with Memory.open("memory://") as memory:
        await memory.conversation("free", user_id="bob", incognito=True).context("who am I?")
        assert [] == list(await memory.conversations())
        await memory.conversation("free", user_id="ada").record(user="mine", assistant="yes")


async def test_a_conversation_that_was_only_asked_in_is_carried_over(tmp_path):
    """Its owner is in the export, and is its owner after the import."""
    async with Memory.open("memory://") as memory:
        await memory.conversation("c", user_id="ada").context("what is it?")
        await memory.export(tmp_path / "all.jsonl")
    async with Memory.open("memory://") as memory:
        assert {"conversation": 1, "call": 1} == await memory.import_(tmp_path / "all.jsonl")
        with pytest.raises(ConflictError):
            await memory.conversation("c", user_id="bob").context("hello")
        assert ["what is it?"] == [
            call.query for call in await memory.conversation("c", user_id="ada").calls()
        ]


async def test_who_looks_after_a_tenant_names_no_user(memory, tmp_path):
    """Lists, exports and erasures of the memory itself are about everybody."""
    await memory.conversation("hers", user_id="ada").record(user="zebra", assistant="stripes")
    await memory.conversation("none").record(user="yak", assistant="wool")
    assert {"hers", "none"} == {head.scope.conversation for head in await memory.conversations()}
    assert ["zebra"] == [turn.user for turn in await memory.turns(conversation_id="hers")]
    counts = await memory.export(tmp_path / "hers.jsonl", conversation_id="hers")
    assert 1 == counts["turn"]
    assert 1 == (await memory.forget(conversation_id="hers")).counts["conversations"]


async def test_a_scope_without_a_user_recalls_its_own_only(memory):
    """Neither turns nor facts of users reach a conversation that has none, and no user recalls from it."""
    await memory.remember("likes zebra stripes", user_id="ada")
    await memory.conversation("hers", user_id="ada").record(user="zebra stripes", assistant="noted")
    await memory.conversation("none").record(user="zebra hooves", assistant="noted")
    await memory.settle()
    window = await memory.conversation("none").context("what about the zebra stripes?")
    assert "likes zebra stripes" not in json.dumps(window.messages)
    assert "zebra stripes\n" not in json.dumps(window.messages[:-1])
    assert {"none"} == {hit.conversation_id for hit in await memory.conversation("none").recall("zebra")}
    assert {"hers"} == {hit.conversation_id for hit in await memory.recall("zebra", user_id="ada")}


# -- over HTTP -----------------------------------------------------------------------------------------------------------


async def test_keys_and_owners(tmp_path, monkeypatch):
    """A user's question stays theirs, and a tenant's key names the user whose conversation it opens."""
    monkeypatch.chdir(tmp_path)
    _, clinic = await anyio.to_thread.run_sync(made, "clinic", "--tenant", "clinic")
    _, ada = await anyio.to_thread.run_sync(made, "ada", "--tenant", "clinic", "--user", "ada")
    _, bob = await anyio.to_thread.run_sync(made, "bob", "--tenant", "clinic", "--user", "bob")
    async with serving(settings()) as client:
        asked = {"conversation_id": "today", "query": "BOBSECRET?", "instructions": "BOBPROMPT"}
        assert 200 == (await client.post("/v1/context", headers=bob, json=asked)).status_code
        turn = {"conversation_id": "today", "user": "hello", "assistant": "hi"}
        refused = await client.post("/v1/turns", headers=ada, json=turn)
        check(refused, 403, "forbidden")
        assert "bob" not in refused.text
        exported = await client.get("/v1/export", headers=ada)
        assert "BOB" not in exported.text
        for named in ({}, {"user_id": "ada"}):
            refused = await client.post("/v1/turns", headers=clinic, json={**turn, **named})
            check(refused, 409, "conflict")
            assert "bob" not in refused.text
        assert "name the user" in (await client.post("/v1/turns", headers=clinic, json=turn)).text
        recorded = await client.post("/v1/turns", headers=clinic, json={**turn, "user_id": "bob"})
        assert 201 == recorded.status_code
        whole = await client.get("/v1/export", headers=clinic, params={"conversation_id": "today"})
        assert "BOBSECRET?" in whole.text
        page = await client.get(
            "/inspector/conversation.json", headers=clinic, params={"conversation_id": "today"}
        )
        assert 200 == page.status_code
