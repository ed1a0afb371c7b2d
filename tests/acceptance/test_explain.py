"""What the model saw and why, and what it would have seen: recorded calls explained and replayed, on both faces."""

import re
from dataclasses import replace
from functools import partial

import apsw
import pytest

from pagefile import BudgetError, Memory, NotFoundError, Settings, SettingsError
from pagefile.engine.replay import CHANGEABLE, change_of
from pagefile.settings import FactSettings
from pagefile.testing.fakes import HashingEmbedder
from pagefile.text.tokens import MESSAGE_OVERHEAD, open_counter
from pagefile.tiers.facts import Facts
from pagefile.window.comparison import message_tokens
from tests.transcripts import TRANSCRIPTS

from .cli_calling import pagefile
from .faces import both_faces, opened

SETTINGS = Settings(on_tier_error="raise", checkpoints="manual")
ROWS = "row 价格 12.50 euros, delivered to 杭州\n" * 400
SCREEN = TRANSCRIPTS["anthropic, a picture in a result"]
MEDIUM = "line of a medium result\n" * 120


@pytest.fixture
def face(request):
    return getattr(request, "param", "async")


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/agent.db"


@pytest.fixture
def open_memory(face, url):
    """Opens the same database, again and again."""
    return partial(opened, face, url, settings=SETTINGS, embedder="none")


@pytest.fixture
async def memory(open_memory):
    async with open_memory() as memory:
        yield memory


async def talked(chat, turns=6):
    """Some turns, one of them with a bulky result."""
    steps = [{"tool": "search", "input": {"q": "price"}, "result": ROWS}]
    await chat.record(user="What does it cost? 多少钱？", assistant="12.50 euros.", steps=steps)
    for number in range(turns):
        await chat.record(
            user=f"Question {number} about the invoice", assistant="Answer " * 20, id=f"t{number}"
        )


def rows_of(url):
    """Everything in a database, table by table."""
    database = apsw.Connection(url.removeprefix("sqlite:///"), flags=apsw.SQLITE_OPEN_READONLY)
    names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: sorted(map(repr, database.execute(f"SELECT * FROM {name}"))) for name in names}


# -- explain -------------------------------------------------------------------------------------------------------------


@both_faces
async def test_a_call_is_explained_with_the_messages_as_sent(memory):
    """The bill adds up, every candidate has its verdict, and the messages are those that were handed out."""
    chat = memory.conversation("c", user_id="ada")
    await memory.remember("Ada pays every invoice in euros", user_id="ada")
    await talked(chat)
    window = await chat.context("And the invoice?", window_tokens=900, instructions="Be brief.")
    found = await chat.explain(window.id)
    assert found.messages == window.messages
    assert (found.exact, found.why, found.call.id) == (True, (), window.id)
    assert found.receipt == window.receipt
    assert sum(block.tokens for block in found.blocks) + found.receipt.framing == window.tokens
    assert {block.block for block in found.blocks} >= {"instructions", "current", "recent", "facts"}
    assert (await memory.call(window.id)).scope.conversation == "c"


@both_faces
async def test_a_call_is_listed_as_soon_as_its_window_is_there(memory):
    """Though calls are written when nobody waits."""
    chat = memory.conversation("c", user_id="u")
    window = await chat.context("好的")
    assert [window.id] == [call.id for call in await chat.calls()]
    assert [window.id] == [cost.call_id for cost in await chat.costs()]


async def test_what_came_later_changes_nothing(open_memory):
    """Turns, a checkpoint, a reset, facts that were superseded: the window is that of its moment, in another process too."""
    async with open_memory() as memory:
        chat = memory.conversation("c", user_id="ada")
        await memory.remember("Ada lives in Lyon", user_id="ada", attribute="residence")
        await talked(chat)
        await chat.checkpoint("They spoke of prices.", recent_turns=2)
        turn = await chat.begin("Where does Ada live now?")
        await chat.step(turn, tool="search", input={"q": 2}, result=ROWS[:9000])
        window = await chat.context(window_tokens=4000)
        await chat.step(turn, tool="search", input={"q": 3}, result="another result")
        await chat.complete(turn, "Done.")
        await memory.remember("Ada lives in Porto", user_id="ada", attribute="residence")
        await chat.checkpoint("Something else.", recent_turns=1)
        await chat.reset()
        await chat.record(user="again", assistant="yes")
    async with open_memory() as memory:
        chat = memory.conversation("c", user_id="ada")
        found = await chat.explain(window.id)
        assert (found.messages, found.exact) == (window.messages, True)
        assert found.window.mode == "SUMMARY_N"
        replayed = await chat.replay(window.id, window_tokens=20_000)
        assert "Porto" not in str(replayed.after.messages)
        assert "Lyon" in str(replayed.after.messages)


@both_faces
async def test_how_much_of_the_prompt_is_unchanged(memory):
    """Since the call before: in messages and in tokens; nothing for the first call."""
    chat = memory.conversation("c", user_id="ada")
    await talked(chat, turns=3)
    turn = await chat.begin("Look it up.")
    first = await chat.context()
    await chat.step(turn, tool="search", input={"q": 1}, result="one line")
    second = await chat.context()
    found = await chat.explain(second.id)
    assert found.previous == first.id
    assert found.shared_messages == len(first.messages)
    assert found.shared_tokens == first.tokens - 3
    alone = await chat.explain(first.id)
    assert (alone.previous, alone.shared_messages, alone.shared_tokens) == (None, 0, 0)


async def test_what_it_would_have_cost_without_pagefile(memory):
    """Every turn in full with its full results, and without the steps that only brought pages back."""
    chat = memory.conversation("c", user_id="ada")
    await talked(chat, turns=40)
    await chat.checkpoint("All about prices.", recent_turns=1)
    page = (await chat.pages())[0]
    turn = await chat.begin("What did it cost before?")
    text = await chat.call_tool("load_tool_history", {"uuid": page.uuid}, turn=turn)
    await chat.step(turn, tool="load_tool_history", input={"uuid": page.uuid}, result=text)
    window = await chat.context(window_tokens=3000)
    found = await chat.explain(window.id)
    # The same by hand: an agent that sends everything again.
    everything = [{"role": "user", "content": "What did it cost before?"}]
    for told in (await chat.turns(limit=100))[:-1]:
        for step in told.steps:
            call = {"name": step.tool, "arguments": '{"q":"price"}'}
            everything += [
                {"role": "assistant", "content": "", "tool_calls": [{"function": call}]},
                {"role": "tool", "content": ROWS},
            ]
        everything += [
            {"role": "user", "content": told.user},
            {"role": "assistant", "content": told.assistant},
        ]
    count = getattr(memory, "_inner", memory)
    count = getattr(count, "inner", count).engine.counter.count
    assert found.tokens_without == 3 + sum(message_tokens(message, count) for message in everything)
    assert found.saved == found.tokens_without - window.tokens > 0
    costs = await chat.costs()
    assert [(cost.call_id, cost.tokens, cost.tokens_without) for cost in costs] == [
        (window.id, window.tokens, found.tokens_without)
    ]


async def test_a_conversation_that_was_begun_again_costs_what_it_costs_now(open_memory):
    """Sums over the log are kept at hand; one that was erased elsewhere is not mixed with the new one."""
    async with open_memory() as memory, open_memory() as elsewhere:
        chat = memory.conversation("c", user_id="ada")
        await talked(chat, turns=20)
        await chat.context("And the invoice?")
        await memory.settle()
        long = (await chat.costs())[-1].tokens_without
        await chat.record(user="One more", assistant="Yes.")
        await chat.context("And now?")
        await memory.settle()
        assert (await chat.costs())[-1].tokens_without > long
        await elsewhere.forget(conversation_id="c")
        for number in range(30):
            await chat.record(user=f"again {number}", assistant="yes")
        window = await chat.context("And now?")
        found = await chat.explain(window.id)
        await chat.reset()
        short = await chat.explain((await chat.context("And now?")).id)
        assert short.tokens_without < found.tokens_without < long


async def test_a_window_whose_page_was_purged_says_so(memory):
    """What cannot be made again is not made up."""
    chat = memory.conversation("c", user_id="ada")
    await talked(chat)
    page = (await chat.pages())[0]
    window = await chat.context("Show it", load=[page.uuid])
    await memory.purge(uuids=[page.uuid])
    found = await chat.explain(window.id)
    assert not found.exact
    assert any(page.uuid in reason and "purged" in reason for reason in found.why)
    assert found.receipt == window.receipt


async def test_safety_data_is_that_of_the_moment(url):
    """A session has no history: what the window held of it is kept with the call."""
    async with Memory.open(url, embedder="none") as memory:
        chat = memory.conversation("c", user_id="林")
        await chat.record(user="我对青霉素过敏", assistant="记下了。")
        session = {"user_snapshot": {"allergies": ["青霉素"], "name": "林女士"}}
        await memory.engine.sessions.put(chat.scope, session)
        window = await chat.context("我能吃什么药？")
        assert "青霉素" in window.messages[0]["content"]
        await memory.engine.sessions.put(chat.scope, {"user_snapshot": {"allergies": ["头孢"]}})
        assert (await chat.explain(window.id)).messages == window.messages


async def test_a_workspace_is_kept_with_the_call(url):
    """It lives in its process only; the call remembers what it had at hand."""
    async with Memory.open(url, embedder="none") as memory:
        chat = memory.conversation("c", user_id="ada")
        toc = {"reg_id": "angui", "items": [{"title": "第一章 总则", "page_start": 1}]}
        await chat.workspace().absorb("get_toc", {"reg_id": "angui"}, toc)
        window = await chat.context("母线在哪一章？")
        assert any(verdict.block == "chunks" for verdict in window.receipt.kept)
    async with Memory.open(url, embedder="none") as memory:
        chat = memory.conversation("c", user_id="ada")
        found = await chat.explain(window.id)
        assert (found.exact, found.messages) == (True, window.messages)
        without = await chat.replay(window.id, workspace__enabled=False)
        assert [one.change for one in without.comparison.changed] == ["left"]


async def test_recall_by_meaning_is_that_of_the_moment(url):
    """Which turns were near was decided then; later turns, and vectors made since, change nothing."""
    settings = Settings(on_tier_error="raise", recall="always", window_tokens=300)
    async with Memory.open(url, settings=settings, embedder=HashingEmbedder()) as memory:
        chat = memory.conversation("c", user_id="ada")
        other = memory.conversation("other", user_id="ada")
        for number in range(12):
            await other.record(user=f"the bicycle of aunt {number}", assistant="red and old " * 10)
        await memory.settle()
        window = await chat.context("which bicycle was old?")
        assert any(verdict.block == "episodes" for verdict in window.receipt.kept)
        for number in range(12):
            await other.record(user=f"which bicycle was old? {number}", assistant="the old bicycle")
        await memory.settle()
        found = await chat.explain(window.id)
        assert (found.exact, found.messages) == (True, window.messages)
        more = await chat.replay(window.id, window_tokens=2000)
        assert len([one for one in more.comparison.changed if one.change == "entered"]) > 0
        assert "the old bicycle" not in str(more.after.messages)


async def test_a_tier_that_failed_then_fails_in_the_replay(url):
    """The window was made without it, and so it is made again; a replay with other settings says what it would have held."""
    async with Memory.open(url, embedder="none") as memory:
        chat = memory.conversation("c", user_id="ada")
        await memory.remember("Ada pays every invoice in euros", user_id="ada")
        await talked(chat)
        tier = memory.engine.tier(Facts).book
        memory.engine.tier(Facts).book = None
        window = await chat.context("And the invoice?")
        memory.engine.tier(Facts).book = tier
        assert any("facts failed" in note for note in window.receipt.degraded)
        assert (await chat.explain(window.id)).exact
        mended = await chat.replay(window.id, facts__max_injection_tokens=500)
        assert [one.block for one in mended.comparison.changed] == ["facts"]


async def test_a_call_of_an_older_version_is_shown_and_not_made_up(url):
    """It has its receipt and nothing else."""
    async with Memory.open(url, embedder="none") as memory:
        await older_call(memory)


async def older_call(memory):
    chat = memory.conversation("c", user_id="ada")
    await talked(chat)
    window = await chat.context("And the invoice?")
    call = (await chat.explain(window.id)).call
    options = {name: value for name, value in call.options.items() if name != "moment"}
    await memory.engine.store.calls.add([replace(call, id="old", options=options)], keep=10)
    found = await chat.explain("old")
    assert (found.exact, found.window, found.tokens_without) == (False, None, None)
    assert "older version" in found.why[0]
    assert sum(block.tokens for block in found.blocks) + found.receipt.framing == window.tokens
    with pytest.raises(NotFoundError, match="older version"):
        await chat.replay("old")
    assert [cost.tokens_without is None for cost in await chat.costs()] == [False, True]


async def test_only_windows_that_were_handed_out_are_calls(url):
    """A window that gave way to a checkpoint before anybody saw it is none."""
    settings = Settings(on_tier_error="raise", checkpoints="sync", window_tokens=600)
    async with Memory.open(url, settings=settings, embedder="none") as memory:
        chat = memory.conversation("c", user_id="ada")
        await talked(chat, turns=12)
        window = await chat.context("And the invoice?")
        await memory.settle()
        assert window.mode == "SUMMARY_N"
        assert [call.id for call in await chat.calls()] == [window.id]


@both_faces
async def test_calls_of_others_are_not_there(memory):
    """Another user, another conversation, another tenant, an unknown id."""
    chat = memory.conversation("c", user_id="ada")
    await talked(chat)
    window = await chat.context("And the invoice?")
    strangers = (
        memory.conversation("c", user_id="bob"),
        memory.conversation("else", user_id="ada"),
        memory.conversation("c", user_id="ada", tenant="firm"),
    )
    for stranger in strangers:
        with pytest.raises(NotFoundError):
            await stranger.explain(window.id)
        with pytest.raises(NotFoundError):
            await stranger.replay(window.id)
    with pytest.raises(NotFoundError, match="calls"):
        await chat.explain("nothing")
    with pytest.raises(NotFoundError):
        await memory.call(window.id, tenant="firm")


async def test_what_was_mutated_is_not_what_is_compared(memory):
    """The messages belong to the caller, who may change them; what is compared is what was handed out."""
    chat = memory.conversation("c", user_id="ada")
    await talked(chat)
    window = await chat.context("And the invoice?")
    window.messages.append({"role": "user", "content": "more"})
    assert (await chat.explain(window.id)).exact


# -- replay --------------------------------------------------------------------------------------------------------------


@both_faces
async def test_a_smaller_window_drops_what_fits_no_more(memory):
    """Both windows, the difference by block, and candidate by candidate."""
    chat = memory.conversation("c", user_id="ada")
    await talked(chat, turns=12)
    window = await chat.context("And the invoice?", window_tokens=4000)
    again = await chat.replay(window.id, window_tokens=300)
    assert (again.before.messages, again.exact) == (window.messages, True)
    assert again.after.tokens <= 300 == again.after.budget
    assert again.changes == {"window_tokens": 300}
    assert again.comparison.difference == again.after.tokens - window.tokens < 0
    assert {one.change for one in again.comparison.changed} >= {"left"}
    assert any(line.sign == "-" for line in again.comparison.diff)


async def test_another_threshold_shows_results_as_they_would_have_been_stored(memory):
    """A page that would have stayed whole is whole; a result that would have become a page is a placeholder."""
    chat = memory.conversation("c", user_id="ada")
    steps = [{"tool": "search", "input": {"q": "price"}, "result": ROWS}]
    await chat.record(user="What does it cost?", assistant="12.50 euros.", steps=steps)
    steps = [{"tool": "list", "input": {}, "result": MEDIUM}]
    await chat.record(user="And the rest?", assistant="Here.", steps=steps)
    window = await chat.context("Thanks", window_tokens=30_000)
    shown = [message["content"] for message in window.messages if message["role"] == "tool"]
    assert [text.startswith("📎") for text in shown] == [True, False]
    wide = await chat.replay(window.id, archive__threshold=1_000_000)
    assert [m["content"] for m in wide.after.messages if m["role"] == "tool"] == [ROWS, MEDIUM]
    narrow = await chat.replay(window.id, **{"archive.threshold": 2_000})
    again = [m["content"] for m in narrow.after.messages if m["role"] == "tool"]
    assert [text.startswith("📎") for text in again] == [True, True]
    assert again[0] == shown[0]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"placement": "head"}, lambda window: "<memory>" in window.messages[0]["content"]),
        ({"language": "zh"}, lambda window: "工具结果存档" in str(window.messages)),
        ({"facts__enabled": False}, lambda window: "Ada pays" not in str(window.messages)),
        ({"recent_turns": 1}, lambda window: sum(v.block == "recent" for v in window.receipt) == 1),
        ({"instructions": "Sing."}, lambda window: window.messages[0]["content"].startswith("Sing.")),
        ({"query": "价格呢？"}, lambda window: window.messages[-1]["content"] == "价格呢？"),
        (
            {"archive__strategy": "hybrid", "query": "之前的价格"},
            lambda window: str(window.messages).count("row 价格") > 100,
        ),
        ({"tokenizer": "cl100k_base"}, lambda window: window.receipt.counter == "cl100k_base"),
    ],
)
async def test_everything_that_decides_can_be_changed(memory, changes, told):
    """One at a time."""
    chat = memory.conversation("c", user_id="ada")
    await memory.remember("Ada pays every invoice in euros", user_id="ada")
    await talked(chat)
    window = await chat.context("And the invoice?")
    again = await chat.replay(window.id, **changes)
    assert (told(again.before), told(again.after)) == (False, True)
    assert again.before.messages == window.messages


async def test_bad_changes_are_refused_with_what_to_do(memory):
    """An unknown name, a value that cannot be, a window too small, the question of a turn."""
    chat = memory.conversation("c", user_id="ada")
    await talked(chat)
    window = await chat.context("And the invoice?")
    for changes, message in (
        ({"window_token": 3}, "window_tokens"),
        ({"embedder": "x"}, "what can be changed: query"),
        ({"window_tokens": 0}, "at least 1"),
        ({"threshold": 2}, "between 0 and 1"),
        ({"recall": "sometimes"}, "recall must be"),
        ({"archive__threshold": -1}, "archive.threshold"),
        ({"tokenizer": "nothing"}, "nothing"),
    ):
        with pytest.raises(SettingsError, match=re.escape(message)):
            await chat.replay(window.id, **changes)
    with pytest.raises(BudgetError):
        await chat.replay(window.id, window_tokens=3)
    await chat.begin("A turn of its own")
    running = await chat.context()
    with pytest.raises(SettingsError, match="question cannot be changed"):
        await chat.replay(running.id, query="another")


async def test_nothing_is_written(open_memory, url):
    """Not a call, not a watermark, not the use of a page, not a checkpoint."""
    async with open_memory() as memory:
        chat = memory.conversation("c", user_id="ada")
        await memory.remember("Ada pays every invoice in euros", user_id="ada")
        await talked(chat, turns=20)
        page = (await chat.pages())[0]
        window = await chat.context("Show me", load=[page.uuid])
        await memory.settle()
        before = rows_of(url)
        await chat.explain(window.id)
        for changes in ({}, {"window_tokens": 300}, {"recall": "always"}, {"archive__threshold": 100_000}):
            await chat.replay(window.id, **changes)
        await chat.costs()
        await memory.call(window.id)
        await memory.settle()
    assert rows_of(url) == before


def test_every_change_can_be_written_as_text():
    """As a command line or a form gives it."""
    assert change_of("window_tokens", "4000") == 4000
    assert change_of("threshold", "0.5") == 0.5
    assert change_of("facts__enabled", "no") is False
    assert change_of("load", "a, b") == ["a", "b"]
    assert change_of("recall", "never") == "never"
    assert change_of("query", "42") == "42"
    assert change_of("window_tokens", "many") == "many"
    assert all(isinstance(change_of(name, ""), str | list) for name in CHANGEABLE)


# -- the command line -------------------------------------------------------------------------------------------------------


@pytest.fixture
async def recorded(tmp_path, monkeypatch):
    """A database in the working directory, and a call in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("PAGEFILE_EMBEDDER__NAME", "none")
    settings = Settings(facts=FactSettings())
    async with Memory.open("sqlite:///pagefile.db", settings=settings, embedder="none") as memory:
        chat = memory.conversation("门诊", user_id="林")
        await memory.remember("林女士对青霉素过敏", user_id="林")
        await talked(chat, turns=12)
        return await chat.context("我对什么过敏？", window_tokens=2000)


async def said(*arguments):
    """A command runs an event loop of its own."""
    import anyio

    return await anyio.to_thread.run_sync(partial(pagefile, *arguments))


async def test_calls_are_listed(recorded):
    """With as much of each id as `explain` needs; whole for scripts."""
    told = await said("calls", "门诊")
    assert (
        told.code,
        f"pagefile explain {recorded.id[:8]}" in told.out,
        "我对什么过敏" in told.words.replace(" ", ""),
    ) == (
        0,
        True,
        True,
    )
    assert [call["id"] for call in (await said("calls", "门诊", "--json")).json] == [recorded.id]
    assert (await said("calls", "nobody")).code == 3


async def test_calls_are_listed_before_anything_is_written(recorded):
    """A window of an empty conversation was handed out too, and can be explained."""
    async with Memory.open("sqlite:///pagefile.db", embedder="none") as memory:
        window = await memory.conversation("空的", user_id="李雷").context("在吗？")
    for named in ((), ("--user-id", "李雷")):
        assert [call["id"] for call in (await said("calls", "空的", "--json", *named)).json] == [window.id]
    assert (await said("calls", "空的", "--user-id", "nobody")).code == 1
    assert (await said("explain", window.id, "--json")).json["exact"] is True


async def test_calls_fit_into_a_narrow_terminal(recorded, monkeypatch):
    """The question is on one line, and the beginning of an id, as it is listed, is as good as the id."""
    monkeypatch.setenv("COLUMNS", "80")
    (row,) = [line for line in (await said("calls", "门诊")).out.splitlines() if "我对什么过敏？" in line]
    short = row.split()[0]
    assert (len(short), recorded.id.startswith(short)) == (8, True)
    assert (await said("explain", short, "--json")).json["call"]["id"] == recorded.id
    assert (await said("replay", short, "--json")).json["call"]["id"] == recorded.id


async def test_the_beginning_of_an_id_must_be_of_one_call(recorded):
    """Else nobody guesses: both are named."""
    async with Memory.open("sqlite:///pagefile.db") as memory:
        call = await memory.call(recorded.id)
        other = replace(call, id=f"{call.id[:12]}-another")
        await memory.engine.store.calls.add([other], keep=10)
    listed = (await said("calls", "门诊")).out
    assert {call.id[:13], other.id[:13]} <= set(listed.split())
    refused = await said("explain", call.id[:8])
    assert refused.code == 1
    assert call.id in refused.err
    assert other.id in refused.err
    assert (await said("explain", call.id[:13])).code == 0
    assert (await said("explain", "zzzzzzzz")).code == 3
    assert (await said("explain", call.id[:3])).code == 3


async def test_a_call_is_explained_on_the_command_line(recorded):
    """The bill for people, everything for scripts."""
    told = await said("explain", recorded.id)
    assert told.code == 0
    for word in ("byte for byte", "without Pagefile", "recent", f"{recorded.tokens:,} of 2,000 tokens"):
        assert word in told.words
    assert "我对什么过敏？" in (await said("explain", recorded.id, "--messages")).out
    found = (await said("explain", recorded.id, "--json")).json
    assert (found["window"]["messages"], found["exact"]) == (recorded.messages, True)
    assert sum(block["tokens"] for block in found["blocks"]) + found["receipt"]["framing"] == recorded.tokens


async def test_a_turn_made_of_messages_is_explained_on_the_command_line(recorded):
    """As far as it was, with what its picture costs on both sides of the bill; and `verify` finds nothing to tell."""
    async with Memory.open("sqlite:///pagefile.db", settings=SETTINGS, embedder="none") as memory:
        chat = memory.conversation("screens", user_id="ada")
        turn, windows = await chat.begin(messages=SCREEN[:1]), []
        for message in SCREEN[1:]:
            windows.append(await chat.context(turn=turn))
            turn = await chat.extend(turn, [message])
        await chat.complete(turn)
    for window in windows:
        told = await said("explain", window.id)
        assert told.code == 0
        assert "byte for byte" in told.words
        # Without Pagefile nothing would say what day it is.
        said_today = open_counter().count(window.parts.today) + MESSAGE_OVERHEAD
        assert f"without Pagefile: {window.tokens - said_today:,} tokens" in told.words
        found = (await said("explain", window.id, "--json")).json
        assert (found["exact"], found["window"]["messages"]) == (True, window.messages)
        assert (await said("replay", window.id, "--set", "window_tokens=5000")).code == 0
    checked = (await said("verify", "--full", "--json")).json
    assert checked["findings"] == []


async def test_a_call_is_replayed_on_the_command_line(recorded):
    """`--set` again and again; what changed is named."""
    told = await said("replay", recorded.id, "--set", "window_tokens=300", "--set", "facts.enabled=false")
    assert told.code == 0
    for word in ("window_tokens=300", "left", "in all", "no longer offered"):
        assert word in told.words
    found = (await said("replay", recorded.id, "--set", "window_tokens=300", "--json")).json
    assert found["comparison"]["tokens_before"] == recorded.tokens
    assert found["before"]["messages"] == recorded.messages
    assert "Both windows are the same." in (await said("replay", recorded.id)).out


async def test_mistakes_are_explained_on_the_command_line(recorded):
    """With what to write instead, and the exit codes of everything else."""
    for arguments, code, message in (
        (("explain", "nothing"), 3, "no recorded call"),
        (("replay", recorded.id, "--set", "window"), 1, "NAME=VALUE"),
        (("replay", recorded.id, "--set", "windowtokens=4"), 1, "did you mean 'window_tokens'"),
        (("replay", recorded.id, "--set", "window_tokens=many"), 1, "whole number"),
        (("replay", recorded.id, "--set", "window_tokens=5"), 1, "raise window_tokens"),
    ):
        told = await said(*arguments)
        assert (told.code, message in told.err) == (code, True), told.err
