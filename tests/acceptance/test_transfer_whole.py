"""Whoever moves to another database takes everything along: the log, the bills of its calls, sessions, and how facts came to be."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from pagefile import BlockingMemory, ConflictError, Memory, NotFoundError, Settings, TransferError
from pagefile.engine.export_lines import FORMAT, LINE
from pagefile.engine.verification import verify
from pagefile.records import Scope
from pagefile.settings import ArchiveSettings, FactSettings
from pagefile.testing import FakeClock
from tests.integration.postgres.serving import fresh_url

from .cli_calling import pagefile

SETTINGS = Settings(
    indexing="manual",
    checkpoints="manual",
    on_tier_error="raise",
    archive=ArchiveSettings(threshold=400, page_from=200),
)


def opened(url, clock, settings=SETTINGS):
    return Memory.open(url, settings=settings, clock=clock)


async def lived(memory, clock):
    """Two users with tools, checkpoints, a reset, an open turn, sessions, facts that changed, and windows of all that."""
    for user in ("甲", "b/2"):
        chat = memory.conversation(f"c:{user}", user_id=user, agent="triage")
        await chat.context("还没开始说")
        step = {"tool": "search", "input": {"q": [1, None]}, "result": f"关于{user}的结果。" * 120}
        await chat.record("我对青霉素过敏。", "记住了。", steps=[step], id="t1")
        first = await memory.remember("住在上海", user_id=user, category="home")
        clock.advance(60)
        await memory.remember("喜欢绿茶", user_id=user)
        await chat.context("我住在哪里？", window_tokens=2000)
        await memory.retract(first.id)
        clock.advance(60)
        await chat.record("And now?", "Now this.", id="t2")
        await chat.checkpoint("摘要：青霉素过敏。", recent_turns=1)
        await chat.context("Which allergy?", window_tokens=900, instructions="简短。")
        session = await memory.engine.sessions.get(chat.scope)
        session = json.loads(json.dumps(session))
        session["user_snapshot"]["allergies"] = ["青霉素"]
        session["own"] = {"毫克": 2.5}
        await memory.engine.sessions.put(chat.scope, session)
        await chat.context("带上安全信息")
        await memory.undo(user_id=user)
        await chat.reset()
        turn = await chat.begin("Anew.")
        turn = await chat.step(turn, tool="read", input={}, result="r" * 900)
        await chat.context(turn=turn)
        clock.advance(60)
    await memory.conversation("asked only", user_id="甲").context("有人吗？")
    await memory.engine.sessions.put(memory.conversation("begun", user_id="甲").scope, {"a": 1})
    await memory.settle()


async def lines(memory, path, **whose):
    """What an export says, line by line, without its first."""
    await memory.export(path, **whose)
    return path.read_text(encoding="utf-8").splitlines()[1:]


async def told(memory, tenant=None):
    """What can be asked of the past: every window, what facts were held when, and what undoing would find."""
    found = {}
    for user in ("甲", "b/2"):
        for name in (f"c:{user}", "asked only") if user == "甲" else (f"c:{user}",):
            chat = memory.conversation(name, user_id=user, tenant=tenant)
            for call in await chat.calls(limit=50):
                seen = await chat.explain(call.id)
                assert (seen.exact, seen.why) == (True, ())
                again = await chat.replay(call.id, window_tokens=700)
                other = replace(seen.call, scope=replace(seen.call.scope, tenant="-"))
                found[call.id] = (
                    other,
                    seen.messages,
                    seen.previous,
                    seen.tokens_without,
                    again.after.messages,
                )
        revisions = await memory.fact_revisions(user_id=user, tenant=tenant)
        found[user] = [
            (one.number, one.at, one.action, [fact.text for fact in one.after]) for one in revisions
        ]
        for moment in [one.at for one in revisions] + [revisions[0].at + timedelta(seconds=90)]:
            held = await memory.facts(user_id=user, tenant=tenant, as_of=moment)
            found[user, moment] = [replace(fact, scope=replace(fact.scope, tenant="-")) for fact in held]
    return found


@pytest.fixture(params=["sqlite → postgres", "postgres → sqlite", "sqlite → memory"])
def urls(request, tmp_path):
    kinds = {"sqlite": lambda n: f"sqlite:///{tmp_path}/{n}.db", "memory": lambda _: "memory://", "postgres": lambda _: fresh_url()}  # fmt: skip
    return [kinds[kind](number) for number, kind in enumerate(request.param.split(" → "))]


async def test_everything_moves_to_another_database(tmp_path, urls):
    """Under another tenant, too: the same lines come out again, every window is made again, changes can be undone."""
    clock, file = FakeClock(), tmp_path / "all.jsonl"
    async with opened(urls[0], clock) as memory:
        await lived(memory, clock)
        before, past = await lines(memory, file), await told(memory)
    async with opened(urls[1], clock) as memory:
        counts = await memory.import_(file, tenant="firm")
        assert counts == {"conversation": 4, "page": 4, "entry": 10, "session": 3, "call": 11, "fact": 4, "revision": 8}  # fmt: skip
        for _ in range(2):
            assert await lines(memory, tmp_path / "again.jsonl", tenant="firm") == before
            report = await verify(memory.engine, full=True)
            assert report.findings == ()
            assert (report.checked["calls"], report.checked["revisions"]) == (11, 8)
            assert await told(memory, "firm") == past
            assert await memory.import_(file, tenant="firm") == {"conversation": 0, "entry": 0}
        last = (await memory.fact_revisions(user_id="甲", tenant="firm"))[-1]
        undone = await memory.undo(user_id="甲", tenant="firm")
        assert undone.number > last.number
        assert undone.after == last.before


async def test_an_export_holds_only_what_was_asked_for(tmp_path):
    """Of a user their own, of a conversation its own: no facts and no changes of them there."""
    clock = FakeClock()
    async with opened(f"sqlite:///{tmp_path}/from.db", clock) as memory:
        await lived(memory, clock)
        mine = [json.loads(line) for line in await lines(memory, tmp_path / "u.jsonl", user_id="甲")]
        chat = await lines(memory, tmp_path / "c.jsonl", user_id="b/2", conversation_id="c:b/2")
        asked = await lines(memory, tmp_path / "a.jsonl", conversation_id="asked only")
        await memory.forget(user_id="甲")
        rest = await lines(memory, tmp_path / "rest.jsonl")
    assert {"甲"} == {line["user_id"] for line in mine}
    assert {"conversation", "session", "page", "turn", "checkpoint", "reset", "call", "fact", "revision"} == {
        line["type"] for line in mine
    }
    assert ["conversation", "call"] == [json.loads(line)["type"] for line in asked]
    assert set(chat) < set(rest)
    assert not any("甲" in line for line in rest)
    async with opened("memory://", clock) as memory:
        await memory.import_(tmp_path / "c.jsonl")
        assert (await verify(memory.engine, full=True)).whole
        assert [] == await memory.facts(user_id="b/2", history=True)
        assert [] == [line for line in await lines(memory, tmp_path / "x.jsonl") if line not in chat]


async def test_what_was_said_without_a_name_is_the_owners(tmp_path):
    """A handle that named nobody once worked for the owner: an export of that user has its windows too."""
    clock = FakeClock()
    async with opened(f"sqlite:///{tmp_path}/from.db", clock) as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.record("你好", "您好")
        await chat.context("谁？")
        (call,) = await chat.calls()
        await memory.engine.store.calls.add(
            [replace(call, id="old", scope=replace(call.scope, user=None))], keep=1
        )
        told = [json.loads(line) for line in await lines(memory, tmp_path / "u.jsonl", user_id="u")]
    assert ["u"] == [line["user_id"] for line in told if line["type"] == "call"]
    async with opened("memory://", clock) as memory:
        await memory.import_(tmp_path / "u.jsonl")
        chat = memory.conversation("c", user_id="u")
        (call,) = await chat.calls()
        assert (await chat.explain(call.id)).exact


async def test_a_fact_that_was_retracted_is_not_read_again(tmp_path):
    """Turns that were read for facts stay read; without that, the first settling would bring it back."""
    settings = replace(SETTINGS, facts=FactSettings(extract="rules"))
    clock, file = FakeClock(), tmp_path / "all.jsonl"
    async with opened(f"sqlite:///{tmp_path}/from.db", clock, settings) as memory:
        await memory.conversation("c", user_id="u").record("我对青霉素过敏。", "好")
        await memory.settle()
        (fact,) = await memory.facts(user_id="u")
        await memory.retract(fact.id)
        before = await lines(memory, file)
    async with opened(f"sqlite:///{tmp_path}/to.db", clock, settings) as memory:
        assert 1 == (await memory.import_(file))["watermark"]
        await memory.settle()
        assert [] == await memory.facts(user_id="u")
        assert before == await lines(memory, tmp_path / "again.jsonl")
        await memory.conversation("c", user_id="u").record("我对花生过敏。", "好")
        await memory.settle()
        assert 1 == len(await memory.facts(user_id="u"))


async def test_calls_of_a_log_that_got_other_places_are_left_out(tmp_path):
    """A conversation that goes on here already keeps its calls and its session, and nothing leads astray."""
    clock, file = FakeClock(), tmp_path / "all.jsonl"
    async with opened(f"sqlite:///{tmp_path}/from.db", clock) as memory:
        await lived(memory, clock)
        await memory.export(file, user_id="甲")
    async with opened(f"sqlite:///{tmp_path}/to.db", clock) as memory:
        chat = memory.conversation("c:甲", user_id="甲")
        await chat.record("Something of my own.", "Yes.")
        own = await memory.remember("住在杭州", user_id="甲")
        session = await memory.engine.sessions.get(chat.scope)
        counts = await memory.import_(file)
        assert (counts["entry"], counts["call"], counts["fact"]) == (3, 1, 2)
        assert not {"revision"} & counts.keys()
        assert [] == await chat.calls()
        assert session["global_state"] == (await memory.engine.sessions.get(chat.scope))["global_state"]
        assert own in await memory.facts(user_id="甲")
        assert ["stored"] * 3 == [one.action for one in await memory.fact_revisions(user_id="甲")]
        report = await verify(memory.engine, full=True)
        assert report.findings == ()


async def test_a_conversation_that_has_calls_keeps_those(tmp_path):
    """What was trimmed here since the export does not come back behind what is newer."""
    settings = replace(SETTINGS, calls_kept=2)
    clock, file = FakeClock(), tmp_path / "all.jsonl"
    async with opened(f"sqlite:///{tmp_path}/a.db", clock, settings) as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.record("你好", "您好")
        await chat.context("一")
        await memory.export(file)
        for query in "二三四":
            await chat.context(query)
        await memory.settle()
        before = await lines(memory, tmp_path / "before.jsonl")
        assert await memory.import_(file) == {"conversation": 0, "entry": 0}
        assert before == await lines(memory, tmp_path / "after.jsonl")


async def test_a_window_that_is_newer_than_the_log_in_the_file_is_passed_over(tmp_path):
    """Whoever goes on while an export is written leaves windows behind of turns that are not in it."""
    clock, file = FakeClock(), tmp_path / "all.jsonl"
    async with opened(f"sqlite:///{tmp_path}/from.db", clock) as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.record("一", "1", id="t1")
        await chat.context("二")
        await chat.record("二", "2", id="t2")
        await chat.context("三")
        turn = await chat.begin("三", id="t3")
        await chat.context(turn=turn)
        found = await lines(memory, file)
    gone = {"t2", "t3"}
    kept = [line for line in found if json.loads(line).get("id") not in gone]
    file.write_text("\n".join([json.dumps({"type": FORMAT, "version": 1}), *kept]), encoding="utf-8")
    async with opened("memory://", clock) as memory:
        assert 1 == (await memory.import_(file))["call"]
        assert (await verify(memory.engine, full=True)).findings == ()


async def test_nobody_puts_windows_into_a_conversation_of_somebody_else(tmp_path):
    """One that somebody only asked in is theirs alone; windows of before that was so are taken only where nobody else is the owner."""
    clock, file = FakeClock(), tmp_path / "all.jsonl"
    async with opened(f"sqlite:///{tmp_path}/from.db", clock) as memory:
        await memory.conversation("c", user_id="eve").context("mine?")
        assert await memory.export(file) == {"conversation": 1, "call": 1}
    head, _, call = file.read_text(encoding="utf-8").splitlines()
    loose = tmp_path / "loose.jsonl"
    loose.write_text(f"{head}\n{call}\n", encoding="utf-8")
    async with opened("memory://", clock) as memory:
        chat = memory.conversation("c", user_id="ada")
        await chat.record("你好", "您好")
        with pytest.raises(ConflictError):
            await memory.import_(file)
        assert await memory.import_(loose) == {}
        assert [] == await memory.engine.store.calls.list(Scope())
    async with opened("memory://", clock) as memory:
        assert await memory.import_(loose) == {"call": 1}
        with pytest.raises(ConflictError):
            await memory.conversation("c", user_id="ada").record("你好", "您好")


HEAD = json.dumps({"type": FORMAT, "version": 1})
CHAT = '{"type":"conversation","id":"c","user_id":"u","agent":null}'
SESSION = {"type": "session", "user_id": "u", "conversation_id": "c", "value": {"a": 1}}
MARK = {"type": "watermark", "user_id": "u", "conversation_id": "c", "tier": "facts", "seq": 1}
FACT = {
    "conversation_id": None, "id": "f", "text": "喜欢绿茶", "category": None, "confidence": 1.0, "valid_from": "2026-01-01T00:00:00+00:00",
    "valid_to": None, "recorded": "2026-01-01T00:00:00+00:00", "retracted": None, "source_turn": None, "source_quote": None,
    "tokens": 2, "counter": "other",
}  # fmt: skip
REVISION = {
    "type": "revision", "user_id": "u", "number": 3, "at": "2026-01-01T00:00:00+00:00", "action": "stored",
    "facts": [{"before": None, "after": FACT}],
}  # fmt: skip
RECEIPT = {"verdicts": [], "budget": 10, "framing": -1, "counter": "other", "exact": True, "degraded": []}
VERDICT = {"id": "x", "block": "facts", "kept": True, "form": None, "tokens": 1, "reason": "", "score": 2.5}
MOMENT = {
    "at": "2026-01-01T00:00:00+00:00", "owner": None, "last_seq": 0, "reset_seq": 0, "covered_through_seq": 0, "checkpoint_seq": None,
    "live_turns": 0, "live_tokens": 0, "steps": 0, "profile": None, "settings": {}, "traces": {}, "messages_hash": "h",
}  # fmt: skip
ASKED = {
    "window_tokens": 10,
    "threshold": 1,
    "recent_turns": 1,
    "load": [],
    "instructions": None,
    "placement": "tail",
}
CALL = {
    "type": "call", "user_id": "u", "conversation_id": "c", "id": "k", "at": "2026-01-01T00:00:00+00:00", "turn_id": None, "query": "?",
    "options": {}, "tokens": 1, "ratio": 1.5, "mode": "FULL_HISTORY", "prefix_hash": "h", "receipt": RECEIPT,
}  # fmt: skip


def within(moment):
    return CALL | {"options": ASKED | {"moment": MOMENT | moment}}


def written(path, *records):
    path.write_text("\n".join([HEAD, CHAT, *map(json.dumps, records)]), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "broken",
    [
        SESSION | {"value": []},
        SESSION | {"value": {"user_snapshot": True}},
        SESSION | {"value": {"a": "\0"}},
        SESSION | {"conversation_id": "else"},
        MARK | {"tier": "episodes"},
        MARK | {"seq": -1},
        REVISION | {"facts": []},
        REVISION | {"number": True},
        REVISION | {"user_id": None},
        REVISION | {"facts": [{"before": None, "after": None}]},
        REVISION | {"facts": [{"before": None, "after": FACT | {"recorded": None}}]},
        CALL | {"at": None},
        CALL | {"conversation_id": None},
        CALL | {"conversation_id": "else", "turn_id": "t"},
        CALL | {"ratio": "full"},
        CALL | {"receipt": {}},
        CALL | {"receipt": RECEIPT | {"verdicts": [VERDICT | {"block": "nowhere"}]}},
        CALL | {"receipt": RECEIPT | {"verdicts": ["x"]}},
        within({"last_seq": None}),
        within({"traces": []}),
        within({"traces": {"episodes": [["c", 1]]}}),
        within({"traces": {"workspace": [{}]}}),
        within({"at": "soon"}),
        within({"live_tokens": "many"}),
        within({"messages": -1}),
        CALL | {"options": {"moment": MOMENT}},
        CALL | {"options": ASKED | {"moment": MOMENT, "placement": "nowhere"}},
    ],
    ids=lambda record: record["type"],
)
async def test_a_damaged_line_is_named_and_nothing_is_written(tmp_path, broken):
    """Whatever is wrong with it, in a file and over HTTP alike."""
    file = written(tmp_path / "x.jsonl", SESSION, CALL, broken)
    async with opened("memory://", FakeClock()) as memory:
        with pytest.raises(TransferError, match=r"(?i)line 5"):
            await memory.import_(file)
        assert [] == await lines(memory, tmp_path / "left.jsonl")
    if broken not in (SESSION | {"value": {"a": "\0"}}, SESSION | {"value": {"user_snapshot": True}}, SESSION | {"conversation_id": "else"}, CALL | {"conversation_id": "else", "turn_id": "t"}):  # fmt: skip
        with pytest.raises(ValueError):
            LINE.validate_json(json.dumps(broken))


async def test_lines_as_above_are_read(tmp_path):
    """What the test above breaks is whole; a conversation that only has a session has its window, too."""
    records = (SESSION, CALL | {"receipt": RECEIPT | {"verdicts": [VERDICT]}}, REVISION)
    file = written(tmp_path / "x.jsonl", *records)
    for record in (*records, MARK, within({})):
        LINE.validate_json(json.dumps(record))
    async with opened("memory://", FakeClock()) as memory:
        assert await memory.import_(file) == {
            "conversation": 1,
            "session": 1,
            "call": 1,
            "fact": 1,
            "revision": 1,
        }
        assert [3] == [one.number for one in await memory.fact_revisions(user_id="u")]
        assert {"a": 1} == await memory.engine.store.sessions.get(memory.conversation("c", user_id="u").scope)
        with pytest.raises(NotFoundError, match="no revision 2"):
            await memory.undo("u", 2)


async def test_two_changes_of_one_number_are_damage(tmp_path):
    """Twice the same line is not; nothing of the file is written."""
    other = REVISION | {"action": "else"}
    async with opened("memory://", FakeClock()) as memory:
        with pytest.raises(TransferError, match=r"user 'u'.*two revisions 3"):
            await memory.import_(written(tmp_path / "x.jsonl", SESSION, REVISION, other))
        assert [] == await lines(memory, tmp_path / "left.jsonl")
        assert 1 == (await memory.import_(written(tmp_path / "y.jsonl", REVISION, REVISION)))["revision"]


async def test_a_fact_that_two_users_have_is_damage(tmp_path):
    """Only the second line shows it: by then nothing may be written."""
    file = written(tmp_path / "x.jsonl", SESSION, REVISION, {"type": "fact", "user_id": "v", **FACT})
    async with opened("memory://", FakeClock()) as memory:
        with pytest.raises(TransferError, match="on line 5"):
            await memory.import_(file)
        assert [] == await lines(memory, tmp_path / "left.jsonl")


async def test_a_fact_of_somebody_else_is_refused_with_its_history(tmp_path):
    """An id that another user has: as for every write, and nothing of this user comes in."""
    async with opened("memory://", FakeClock()) as memory:
        await memory.import_(written(tmp_path / "x.jsonl", REVISION))
        with pytest.raises(ConflictError):
            await memory.import_(written(tmp_path / "y.jsonl", REVISION | {"user_id": "v"}))
        assert [] == await memory.fact_revisions(user_id="v")


def test_the_command_line_counts_them(tmp_path):
    """Out of one file and into another."""
    db, other, file = (str(tmp_path / name) for name in ("a.db", "b.db", "all.jsonl"))
    pagefile("--db", db, "record", "c", "--user-id", "u", "--user", "我吃素", "--assistant", "好")
    with BlockingMemory.open(f"sqlite:///{db}", settings=SETTINGS) as memory:
        memory.conversation("c", user_id="u").context("晚饭吃什么？")
    pagefile("--db", db, "remember", "吃素", "--user-id", "u")
    expected = "1 conversation, 1 session, 1 turn, 1 call, 1 fact, 1 revision"
    assert expected in pagefile("--db", db, "export", file).words
    expected = "1 conversation, 1 entry, 1 session, 1 call, 1 fact, 1 revision"
    assert expected in pagefile("--db", other, "import", file).words
    assert "0 conversations, 0 entries." in pagefile("--db", other, "import", file).words
    assert "Everything recorded is there." in pagefile("--db", other, "verify", "--full").words


def test_windows_of_nothing_are_looked_at_too(tmp_path):
    """Calls of conversations that nobody wrote to, of any tenant, come along and are made again: that is no empty database."""
    db, other, file = (str(tmp_path / name) for name in ("a.db", "b.db", "all.jsonl"))
    with BlockingMemory.open(f"sqlite:///{db}", settings=SETTINGS) as memory:
        for number in range(2):
            memory.conversation(f"c{number}", user_id="林").context("有人吗？")
        memory.conversation("c", tenant="诊所").context("有人吗？")
    assert "Looked at 3 conversations, 3 recorded windows" in pagefile("--db", db, "verify").words
    pagefile("--db", db, "export", file)
    pagefile("--db", other, "import", file)
    told = pagefile("--db", other, "verify").words
    assert "Looked at 2 conversations, 2 recorded windows" in told
    assert "Everything recorded is there." in told
    assert (
        "Looked at 1 conversation, 1 recorded window"
        in pagefile("--db", db, "verify", "--tenant", "诊所").words
    )
