"""What a tenant's policy removes is nowhere in the database, whichever way it came in."""

import json
from threading import get_ident

import pytest

from pagefile import Memory, Settings
from pagefile.errors import InvalidArgumentError
from pagefile.ports import ItemWrite
from pagefile.records import Scope
from pagefile.settings import EmbedderSettings, PolicySettings
from pagefile.text.redaction import Redaction

MAIL, PHONE, CARD = "ada.lovelace@mail.example.com", "13912345678", "4111 1111 1111 1111"
SAID = f"I am {MAIL}, call {PHONE}, pay with {CARD}"
PLAIN = {"embedder": EmbedderSettings(name="none"), "policy": PolicySettings(redact="open=none, *=all")}


def held(folder):
    """Every byte that is on the disk."""
    return b"".join(file.read_bytes() for file in folder.iterdir() if file.is_file())


async def test_nothing_of_it_is_written(tmp_path):
    """Turns in every form, steps, answers, metadata, facts, items, session values, questions and recorded windows."""
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=Settings(**PLAIN)) as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.record(
            SAID,
            SAID,
            steps=[{"tool": "find", "input": {"q": SAID}, "result": SAID * 300}],
            metadata={"x": SAID},
        )
        turn = await chat.begin(SAID)
        turn = await chat.step(turn, tool="find", input={"q": SAID}, result=SAID)
        await chat.context()
        await chat.complete(turn, SAID)
        turn = await chat.begin(messages=[{"role": "user", "content": SAID}])
        calls = [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": json.dumps({"q": SAID})}}
        ]
        more = [
            {"role": "assistant", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "1", "content": SAID},
        ]
        turn = await chat.extend(turn, more)
        # Sent twice, they are added once.
        assert turn == await chat.extend(turn.id, more, after=1)
        await chat.complete(turn, SAID)
        window = await chat.context(SAID)
        await memory.remember(f"Writes from {MAIL}", user_id="u")
        await memory.engine.store.items.write(
            Scope(user="u"), [ItemWrite(("n",), "k", {"text": SAID})], now=memory.engine.clock.now()
        )
        await chat.put_session({"global_state": {"shared": {"contact": SAID}}})
        await memory.settle()
        facts = await memory.facts("u")
    assert "[email removed]" in facts[0].text
    assert "[email removed]" in json.dumps(window.messages)
    for secret in (MAIL, PHONE, CARD):
        assert secret not in json.dumps(window.messages)
        assert secret.encode() not in held(tmp_path)


async def test_nor_in_what_lies_beside_them(tmp_path):
    """A caller's summary, the instructions of a recorded window, keys of JSON values, and all columns of a fact."""
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=Settings(**PLAIN)) as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.record("hello", "there", metadata={SAID: 1, "id": SAID, "data": {"type": SAID}})
        await chat.record(
            f"data:{SAID}", "ok", steps=[{"tool": "find", "input": {"data": SAID, MAIL: 1}, "result": "done"}]
        )
        arguments = {"id": "x", "name": "f", "type": "tool_use", "input": {"id": SAID, "data": SAID}}
        results = {"type": "tool_result", "tool_use_id": "x", "content": "done"}
        said = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [arguments]}]
        said += [{"role": "user", "content": [results]}, {"role": "assistant", "content": "gone"}]
        await chat.record(messages=said)
        window = await chat.context("and now?", instructions=f"Answer for {SAID}.")
        await chat.checkpoint(f"The user is {SAID}.", recent_turns=0)
        more = {"category": f"of {MAIL}", "subject": MAIL, "attribute": f"mail {PHONE}"}
        await memory.remember("Writes letters", user_id="u", **more)
        await memory.settle()
    for secret in (MAIL, PHONE, CARD):
        assert secret not in json.dumps(window.messages)
        assert secret.encode() not in held(tmp_path)


async def test_another_tenant_keeps_everything(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=Settings(**PLAIN)) as memory:
        turn = await memory.conversation("c", user_id="u", tenant="open").record(SAID)
    assert SAID == turn.user


async def test_the_same_turn_twice_is_one(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=Settings(**PLAIN)) as memory:
        chat = memory.conversation("c", user_id="u")
        assert await chat.record(SAID, id="t") == await chat.record(SAID, id="t")


async def test_an_export_that_contains_it_is_refused(tmp_path):
    """It is stored as it is, with its digests; one that was redacted comes in."""
    plain, file = tmp_path / "plain.db", tmp_path / "export.jsonl"
    async with Memory.open(f"sqlite:///{plain}", settings=Settings(**PLAIN)) as memory:
        await memory.conversation("c", user_id="u", tenant="open").record(SAID)
        await memory.conversation("c", user_id="u").record(SAID)
        await memory.export(file, tenant="open")
        with pytest.raises(InvalidArgumentError, match=r"policy\.redact"):
            await memory.import_(file, tenant="clinic")
        await memory.export(file, tenant="default")
        await memory.import_(file, tenant="clinic")
        (turn,) = await memory.conversation("c", user_id="u", tenant="clinic").turns()
        assert "[email removed]" in turn.user


async def test_a_tenant_imports_its_own_export(tmp_path):
    """Ids are stored as they are, however much they look like a card or a phone number: in turns, receipts and traces."""
    file, rules = tmp_path / "export.jsonl", Settings(**PLAIN)
    uuid = "11142348-9282-4e90-bf35-0440d9fe3487"
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=rules) as memory:
        chat = memory.conversation("4111111111111111", user_id=PHONE)
        result = f"order {uuid} at 1763902202300 ms " * 300
        steps = [{"tool": "find", "input": {"q": uuid}, "result": result}]
        await chat.record(f"the kayak is {uuid}", "noted", id=PHONE, steps=steps)
        await memory.remember("Paddles a kayak", user_id=PHONE)
        await chat.record("and the paddle?", "too", id=MAIL)
        await chat.context("where is the kayak?")
        await chat.checkpoint(recent_turns=0)
        await memory.settle()
        await memory.export(file, tenant="default")
    async with Memory.open(f"sqlite:///{tmp_path}/b.db", settings=rules) as memory:
        counts = await memory.import_(file, tenant="default")
        turns = await memory.conversation("4111111111111111", user_id=PHONE).turns()
    assert (1, 3, 1) == (counts["conversation"], counts["entry"], counts["fact"])
    assert [f"the kayak is {uuid}", "and the paddle?"] == [turn.user for turn in turns]


async def test_a_text_that_is_too_long_is_refused_before_it_is_read(tmp_path, monkeypatch):
    def read(_redaction, text):
        raise AssertionError(f"{len(text)} characters were read")

    monkeypatch.setattr(Redaction, "text", read)
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=Settings(**PLAIN)) as memory:
        chat, text = memory.conversation("c", user_id="u"), "1" * 3_000_000
        with pytest.raises(InvalidArgumentError, match="2,000,000"):
            await chat.record(text)
        with pytest.raises(InvalidArgumentError, match="2,000,000"):
            await chat.record("a", text)
        with pytest.raises(InvalidArgumentError, match="2,000,000"):
            await chat.record(messages=[{"role": "user", "content": text}])
        with pytest.raises(InvalidArgumentError, match="2,000,000"):
            await chat.begin(text)


async def test_a_long_text_is_read_beside_the_event_loop(tmp_path, monkeypatch):
    """Nobody waits for it."""
    threads, text = set(), Redaction.text

    def read(redaction, given):
        if len(given) > 20_000:
            threads.add(get_ident())
        return text(redaction, given)

    monkeypatch.setattr(Redaction, "text", read)
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=Settings(**PLAIN)) as memory:
        chat, long = memory.conversation("c", user_id="u"), "so we talked " * 5_000
        await chat.record(long, metadata={"a": long}, steps=[{"tool": "t", "input": {}, "result": long}])
        await chat.record(messages=[{"role": "user", "content": long}])
        turn = await chat.begin("hello " * 10_000)
        await chat.complete(turn, long)
    assert threads
    assert get_ident() not in threads
