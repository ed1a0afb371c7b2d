"""An erasure between what was read and what is written on the strength of it, one gap at a time."""

from dataclasses import replace
from functools import partial

import anyio
import pytest

from pagefile import ConflictError, ErasedError, Memory, NotFoundError
from pagefile.records import ERASED, Scope
from pagefile.settings import EmbedderSettings
from pagefile.standalone import (
    AgentApp,
    AgentRequest,
    ConversationStore,
    ConversationSummarizer,
    MemoryQueryRequest,
    ToolResultManager,
)
from pagefile.stores import SystemClock
from pagefile.testing.fakes import InMemorySessions
from pagefile.tiers.fact_book import Draft
from pagefile.tiers.facts import Facts
from tests.acceptance.cli_calling import pagefile
from tests.findings.security.looking import tables_with
from tests.waiting import until

from .marking import bulky, marks_in, new_mark
from .process import SETTINGS, TOOL

PLAIN = replace(SETTINGS, embedder=EmbedderSettings(name="none"))


def read(mark):
    """A step whose result becomes a page and is remembered in the workspace."""
    return [{"tool": TOOL, "input": {"q": mark}, "result": bulky(mark)}]


async def test_a_workspace_ends_with_its_conversation(url):
    """What a run has at hand of a conversation is gone when another process erases it; what comes later is at hand again."""
    erased, new = new_mark(), new_mark()
    async with Memory.open(url, settings=PLAIN) as memory, Memory.open(url, settings=PLAIN) as other:
        chat = memory.conversation("chat", user_id="ada")
        await chat.record("Read it.", "Done.", steps=read(erased))
        assert erased in marks_in(chat.workspace().text())
        await other.forget(user_id="ada")
        await chat.record("Hello again.", "Hello.")
        window = await chat.context("What did I read?")
        assert set() == marks_in(repr(window) + chat.workspace().text())
        await chat.record("Read it.", "Done.", steps=read(new))
        await other.forget(user_id="bob")
        await chat.context("What did I read?")
        assert {new} == marks_in(chat.workspace().text())


async def test_a_cached_call_ends_with_its_conversation(url):
    """A call of the erased conversation is made again, not answered from before."""
    async with Memory.open(url, settings=PLAIN) as memory, Memory.open(url, settings=PLAIN) as other:
        chat = memory.conversation("chat", user_id="ada")
        await chat.record("Hello.", "Hello.")
        workspace = chat.workspace()
        await workspace.absorb("get_toc", {"of": "it"}, "1 Beginning")
        assert await workspace.lookup("get_toc", {"of": "it"}) is not None
        await other.forget(conversation_id="chat")
        assert await workspace.lookup("get_toc", {"of": "it"}) is None


@pytest.mark.parametrize("erased_at_once", [False, True])
async def test_a_fact_that_came_while_facts_were_read_is_erased_with_the_others(
    url, monkeypatch, erased_at_once
):
    """An erasure makes the facts of a user look as they did before there were any: what was read in between is not held."""
    mark = new_mark()
    async with Memory.open(url, settings=PLAIN) as memory, Memory.open(url, settings=PLAIN) as other:
        facts = memory.engine.store.facts
        listed = facts.list

        async def late(scope, **given):
            monkeypatch.setattr(facts, "list", listed)
            await other.remember(f"Works at {mark}", user_id="ada")
            found = await listed(scope, **given)
            if erased_at_once:
                await other.forget(user_id="ada")
            return found

        monkeypatch.setattr(facts, "list", late)
        chat = memory.conversation("chat", user_id="ada")
        await chat.context("Where do I work?")
        await other.forget(user_id="ada")
        assert set() == marks_in(repr(await chat.context("Where do I work?")))


async def test_a_turn_keeps_its_page_when_it_is_written_behind_an_erasure(url, gate, gated):
    """A turn with a bulky result that was under way during an erasure is written after it as a whole, or not at all."""
    mark = new_mark()
    for held in ("pages.put", "log.append"):
        async with gated(url, settings=PLAIN) as memory, Memory.open(url, settings=PLAIN) as other:
            chat = memory.conversation(held, user_id="ada")
            await chat.record("Hello.", "Hello.")
            gate.close([held])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda chat=chat: chat.record("Read it.", "Done.", steps=read(mark)))
                await until(lambda: gate.reached)
                await other.forget(user_id="ada")
                gate.open()
            (turn,) = await chat.turns()
            (step,) = turn.steps
            assert (bulky(mark), 0) == (await chat.load(step.page), step.lost_chars)
    verified = await anyio.to_thread.run_sync(pagefile, "--db", url, "verify", "--full")
    assert 0 == verified.code, verified.out


async def test_a_session_is_not_saved_behind_an_erasure(url, gate, gated):
    """A session value that was read before the erasure is not in the conversation that starts over."""
    erased = new_mark()
    async with gated(url, settings=PLAIN) as memory, Memory.open(url, settings=PLAIN) as other:
        app = AgentApp(memory)
        await app.create_short_memory(AgentRequest(conversation_id="chat", user_id="ada"))
        session = await app.get_short_memory("chat")
        session.user_snapshot.name = erased
        await app.set_short_memory("chat", session)
        gate.close(["sessions.put"])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_started_over, app)
            await until(lambda: gate.reached)
            await other.forget(user_id="ada")
            gate.open()
        await other.conversation("chat", user_id="ada").record("Hello.", "Hello.")
        assert set() == marks_in(repr(await other.conversation("chat", user_id="ada").session()))


async def _started_over(app):
    """The user's snapshot is carried over, where there is still a user."""
    await app.delete_short_memory("chat")


async def test_a_conversation_begun_during_an_erasure_leaves_no_session_in_the_cache(url, monkeypatch):
    """What a user said in a conversation that began while the user was being erased is erased in the cache, too."""
    mark, cache = new_mark(), InMemorySessions(SystemClock())
    async with (
        Memory.open(url, settings=PLAIN, sessions=cache) as memory,
        Memory.open(url, settings=PLAIN, sessions=cache) as other,
    ):
        await memory.conversation("old", user_id="ada").record("Hello.", "Hello.")
        erase, late = memory.engine.store.erase, other.conversation("late", user_id="ada")

        async def begun_before(scope):
            await late.record(f"I am {mark}.", "Hello.")
            await _snapshot(AgentApp(other), "late", mark)
            return await erase(scope)

        monkeypatch.setattr(memory.engine.store, "erase", begun_before)
        await memory.forget(user_id="ada")
        assert await cache.get(late.scope) is None


async def _snapshot(app, chat, mark):
    session = await app.get_short_memory(chat)
    session.user_snapshot.name = mark
    await app.set_short_memory(chat, session)
    await app.get_short_memory(chat)


# -- summaries that somebody else makes ----------------------------------------------------------------------------------


async def told(memory, mark, turns=10):
    """A conversation whose third turn is to be erased; gives its id."""
    chat = memory.conversation("chat", user_id="ada")
    told = [await chat.record(f"{mark if n == 2 else 'Hello'} {n}.", "Hello.") for n in range(turns)]
    return told[2].id


async def erase_turn(memory, turn_id):
    """The one that should not have been said."""
    await memory.forget(conversation_id="chat", turn_id=turn_id)


async def erase_all(memory, turn_id):
    """And another user begins under that id."""
    await memory.forget(user_id="ada")
    for number in range(12):
        await memory.conversation("chat", user_id="bob").record(f"Fresh {number}.", "Hello.")


ERASURES = pytest.mark.parametrize("erased", [erase_turn, erase_all])


@ERASURES
async def test_a_summary_of_document_002_is_not_kept_behind_an_erasure(url, erased):
    """What the model had read before is made again without it, and is nobody else's summary."""
    mark = new_mark()
    async with Memory.open(url, settings=PLAIN) as memory, Memory.open(url, settings=PLAIN) as other:
        turn = await told(memory, mark)
        left = [erased]

        async def model(text):
            if left:
                await left.pop()(other, turn)
            return f"A summary of {text}"

        summarizer = ConversationSummarizer(model, store=memory)
        assert "A summary" in await summarizer.generate_summary("chat")
        assert set() == marks_in(repr(await summarizer.get_summary("chat")))


@ERASURES
@pytest.mark.parametrize("due", [True, False])
async def test_a_summary_of_document_001_is_not_kept_behind_an_erasure(url, erased, due):
    """It is of the history that was handed out before the erasure; one of what is handed out since is taken."""
    mark = new_mark()
    async with Memory.open(url, settings=PLAIN) as memory, Memory.open(url, settings=PLAIN) as other:
        app, turn = AgentApp(memory), await told(memory, mark)
        asked = MemoryQueryRequest("chat", "Well?", model_context_window=100 if due else 100_000)
        read = await app.query_memory_context(asked)
        await erased(other, turn)
        if due:
            # While a summary is on its way, histories of others are handed out.
            await app.query_memory_context(asked)
        assert {mark} == marks_in(read.full_history)
        with pytest.raises(ErasedError):
            await app.checkpoint_short_memory("chat", f"A summary of {read.full_history}", 2)
        read = await app.query_memory_context(asked)
        await app.checkpoint_short_memory("chat", f"A summary of {read.full_history}", 2, read.read_token)
        assert set() == marks_in(repr(await app.get_short_memory("chat")))


@ERASURES
async def test_a_summary_of_listed_messages_is_not_saved_behind_an_erasure(url, erased):
    """Whoever else lists the messages meanwhile: it may be of those that were listed before. Listed again, it is taken."""
    mark = new_mark()
    async with Memory.open(url, settings=PLAIN) as memory, Memory.open(url, settings=PLAIN) as other:
        store, turn = ConversationStore(memory), await told(memory, mark)
        summary = repr(await store.list_messages("chat"))
        await erased(other, turn)
        with pytest.raises(ErasedError):
            await store.save_summary("chat", summary, 8)
        await store.list_messages("chat", 2, desc=True)
        with pytest.raises(ErasedError):
            await store.save_summary("chat", summary, 8)
        assert await store.get_summary("chat") is None
        summary = repr(await store.list_messages("chat"))
        assert set() == marks_in((await store.save_summary("chat", summary, 8)).summary)


def port_of(memory, name):
    """A port of the store, and one of its verbs."""
    port, verb = name.split(".")
    return getattr(memory.engine.store, port), verb


def in_the_gap(monkeypatch, port, verb, happens):
    """Something happens once, before the next call of a verb reaches its store."""
    through = getattr(port, verb)

    async def late(*args, **kwargs):
        monkeypatch.setattr(port, verb, through)
        await happens()
        return await through(*args, **kwargs)

    monkeypatch.setattr(port, verb, late)


async def _lives_in(memory, mark):
    """A user who is known by what was said in a conversation and by what was said elsewhere."""
    turn = await memory.conversation("chat", user_id="ada").record(f"I live in {mark}.", "Noted.")
    draft = Draft(f"lives in {mark}", source_turn=turn.id, conversation="chat", attribute="residence")
    fact = await memory.engine.tier(Facts).book.remember(Scope("default", "ada"), draft)
    await memory.remember("likes tea", user_id="ada")
    return fact


async def _retracted(memory, fact, erased_meanwhile):
    erased_meanwhile()
    with pytest.raises(NotFoundError):
        await memory.retract(fact.id, user_id="ada")


async def _superseded(memory, fact, erased_meanwhile):
    erased_meanwhile()
    new = await memory.remember("lives in Rome", user_id="ada", attribute="residence")
    assert ("stored", None) == (new.outcome, new.supersedes)


async def _undone(memory, fact, erased_meanwhile):
    await memory.retract(fact.id, user_id="ada")
    number = (await memory.fact_revisions("ada"))[-1].number
    await memory.remember("likes coffee", user_id="ada")
    erased_meanwhile()
    with pytest.raises(ErasedError):
        await memory.undo("ada", number)


@pytest.mark.parametrize("change", [_retracted, _superseded, _undone])
async def test_a_fact_is_not_changed_back_into_being(url, monkeypatch, change):
    """A fact that is erased between being read and being changed stays erased; what else is said is written without it."""
    mark = new_mark()
    async with Memory.open(url, settings=PLAIN) as memory, Memory.open(url, settings=PLAIN) as other:
        fact = await _lives_in(memory, mark)
        forget = partial(other.forget, conversation_id="chat")
        await change(
            memory, fact, partial(in_the_gap, monkeypatch, memory.engine.store.facts, "revise", forget)
        )
        assert [] == await tables_with(url, mark)


@pytest.mark.parametrize("verb", ["pages.put", "log.restore"])
async def test_a_fork_is_made_without_a_turn_that_is_erased_meanwhile(url, monkeypatch, verb):
    """It begins again behind the erasure, and is whole."""
    mark, kept = new_mark(), new_mark()
    async with Memory.open(url, settings=PLAIN) as memory, Memory.open(url, settings=PLAIN) as other:
        chat = memory.conversation("chat", user_id="ada")
        slip = await chat.record(f"I am {mark}.", "Hello.", steps=read(mark))
        last = await chat.record("Read on.", "Done.", steps=read(kept))
        forget = partial(other.forget, conversation_id="chat", turn_id=slip.id)
        in_the_gap(monkeypatch, *port_of(memory, verb), forget)
        fork = await chat.fork(last, id="fork")
        assert [ERASED, "Read on."] == [turn.user for turn in await fork.turns()]
        assert [] == await tables_with(url, mark)
        (page,) = await fork.pages()
        assert bulky(kept) == await fork.load(page.uuid)


@pytest.mark.parametrize("verb", ["pages.put", "log.restore"])
async def test_nothing_is_forked_of_a_conversation_that_is_erased_meanwhile(url, monkeypatch, verb):
    """There is no such turn any more, and no copy of its page."""
    mark = new_mark()
    async with Memory.open(url, settings=PLAIN) as memory, Memory.open(url, settings=PLAIN) as other:
        chat = memory.conversation("chat", user_id="ada")
        turn = await chat.record(f"I am {mark}.", "Hello.", steps=read(mark))
        forget = partial(other.forget, conversation_id="chat")
        in_the_gap(monkeypatch, *port_of(memory, verb), forget)
        with pytest.raises(NotFoundError):
            await chat.fork(turn, id="fork")
        assert [] == await tables_with(url, mark)
        assert [] == await memory.conversation("fork", user_id="ada").pages()


async def test_a_fork_that_is_refused_leaves_no_pages(url, monkeypatch):
    """Somebody else was faster under its id."""
    async with Memory.open(url, settings=PLAIN) as memory, Memory.open(url, settings=PLAIN) as other:
        chat = memory.conversation("chat", user_id="ada")
        turn = await chat.record("Read it.", "Done.", steps=read(new_mark()))
        begin = partial(other.conversation("fork", user_id="ada").record, "Hello.", "Hello.")
        in_the_gap(monkeypatch, memory.engine.store.log, "restore", begin)
        with pytest.raises(ConflictError):
            await chat.fork(turn, id="fork")
        assert [] == await other.conversation("fork", user_id="ada").pages()


async def _taken_over(other):
    """Somebody else begins the conversation that was forgotten."""
    await other.forget(conversation_id="chat")
    await other.conversation("chat", user_id="bob").record("Hello.", "Hello.")


async def _by_hand(memory, mark):
    await ToolResultManager(memory).process_tool_result(TOOL, {"q": mark}, bulky(mark) * 20, "chat")


async def _in_a_workspace(memory, mark):
    await memory.conversation("chat").workspace().absorb(TOOL, {"q": mark}, bulky(mark))


@pytest.mark.parametrize("archived", [_by_hand, _in_a_workspace])
async def test_a_page_without_a_turn_is_not_put_into_the_conversation_of_another(url, monkeypatch, archived):
    """Whose the conversation is was decided before it was erased: the next one's pages are their own."""
    mark = new_mark()
    async with Memory.open(url, settings=PLAIN) as memory, Memory.open(url, settings=PLAIN) as other:
        in_the_gap(monkeypatch, memory.engine.store.pages, "put", partial(_taken_over, other))
        with pytest.raises(ConflictError):
            await archived(memory, mark)
        assert [] == await memory.conversation("chat", user_id="bob").pages()
        assert [] == await tables_with(url, mark)


@pytest.mark.parametrize("archived", [_by_hand, _in_a_workspace])
async def test_a_page_without_a_turn_is_kept_behind_an_erasure(url, monkeypatch, archived):
    """It has just come in: the conversation begins again with it."""
    mark = new_mark()
    async with Memory.open(url, settings=PLAIN) as memory, Memory.open(url, settings=PLAIN) as other:
        forget = partial(other.forget, conversation_id="chat")
        in_the_gap(monkeypatch, memory.engine.store.pages, "put", forget)
        await archived(memory, mark)
        assert 1 == len(await memory.conversation("chat").pages())
