"""`pagefile demo`: something real to look at, written once, and gone without a trace."""

import shutil
from dataclasses import replace

import anyio
import anyio.to_thread
import apsw
import pytest

from pagefile import ConflictError, InvalidArgumentError, Memory, Settings
from pagefile.inspector.demo import demo_present, fill_demo, remove_demo
from pagefile.inspector.demo.script import PEOPLE
from pagefile.settings import EmbedderSettings

from .cli_calling import pagefile

#: The smallest of them is enough where it is not about the contents.
ONE = [person for person in PEOPLE if person.user_id == "demo-wei"]


@pytest.fixture
def settings(tmp_path):
    """Words alone: what is tested here does not depend on vectors, and vectors take a while."""
    return Settings(url=f"sqlite:///{tmp_path}/pagefile.db", embedder=EmbedderSettings(name="none"))


def rows(settings, *, without=()):
    """Everything in the database, but for what is derived."""
    database = apsw.Connection(settings.url.removeprefix("sqlite:///"), flags=apsw.SQLITE_OPEN_READONLY)
    names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    chosen = [name for name in names if name not in without and not name.startswith("sqlite_")]
    return {name: sorted(map(repr, database.execute(f"SELECT * FROM {name}"))) for name in chosen}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder in which `pagefile demo` wrote everything, and what it said."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as there:
        there.chdir(folder)
        there.setenv("PAGEFILE_EMBEDDER__NAME", "none")
        return folder, pagefile("demo")


@pytest.mark.slow
async def test_the_demo_shows_everything_there_is_to_see(filled, settings, tmp_path):
    """Long conversations in two languages, pages, loads, checkpoints, facts that changed, windows that can be explained."""
    shutil.copytree(filled[0], tmp_path, dirs_exist_ok=True)
    async with Memory.open(settings=settings) as memory:
        assert await demo_present(memory)
        heads = await memory.conversations()
        assert {head.scope.conversation for head in heads} == {
            talk.id for person in PEOPLE for talk in person.talks
        }
        assert all((head.scope.user or "").startswith("demo-") and head.agent for head in heads)
        checkpoints, lengths, loads, aborted, languages, resets = 0, [], 0, 0, set(), 0
        for head in heads:
            chat = memory.conversation(head.scope.conversation, user_id=head.scope.user)
            turns = await chat.turns(limit=1000)
            checkpoints += len(await chat.checkpoints()) >= 3
            aborted += sum(turn.status == "aborted" for turn in turns)
            loads += sum(step.tool == "load_tool_history" for turn in turns for step in turn.steps)
            lengths += [step.page_chars for turn in turns for step in turn.steps]
            languages |= {any("\u4e00" <= letter <= "\u9fff" for letter in turn.user) for turn in turns}
            resets += head.reset_seq > 0
            days = (turns[-1].at - turns[0].at).days
            assert days >= 15
            assert [turn.at for turn in turns] == sorted(turn.at for turn in turns)
            calls = await chat.calls(limit=100)
            for call in (calls[0], calls[len(calls) // 2], calls[-1]):
                found = await chat.explain(call.id)
                assert (found.exact, found.why) == (True, ())
        assert (checkpoints >= 4, max(lengths) >= 50_000, loads >= 4, aborted >= 4, resets) == (
            True, True, True, True, 1,
        )  # fmt: skip
        assert languages == {True, False}
        facts = [fact for person in PEOPLE for fact in await memory.facts(person.user_id, history=True)]
        assert sum(fact.valid_to is not None for fact in facts) >= 5
        assert sum(fact.retracted is not None for fact in facts) >= 3
        assert sum(fact.category == "correction" for fact in facts) >= 4
        clinic = memory.conversation("demo-clinic", user_id="demo-lin")
        window = await clinic.context("我能吃阿莫西林吗？")
        assert "头孢" in window.messages[0]["content"]


async def test_a_second_run_adds_nothing(settings):
    """Not a row; how far the first has come is told."""
    told = []
    first = await fill_demo(settings, lambda done, total: told.append((done, total)), people=ONE)
    assert told[-1] == (first.turns, first.turns)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert (first.conversations, first.turns) == (1, len(ONE[0].talks[0].turns()))
    before = rows(settings)
    assert (await fill_demo(settings, people=ONE)).turns == 0
    assert rows(settings) == before


async def test_the_demo_says_the_same_every_time(settings, tmp_path):
    """Every turn, every time, every fact."""

    async def written(url):
        there = replace(settings, url=url)
        await fill_demo(there, people=ONE)
        async with Memory.open(settings=there) as memory:
            turns = await memory.conversation("demo-travel", user_id="demo-wei").turns(limit=1000)
            facts = await memory.facts("demo-wei", history=True)
            cost = await memory.conversation("demo-travel", user_id="demo-wei").costs(limit=100)
        return (
            [(turn.user, turn.assistant, turn.steps, turn.at) for turn in turns],
            [(fact.text, fact.recorded) for fact in facts],
            [(one.tokens, one.tokens_without) for one in cost],
        )

    assert await written(settings.url) == await written(f"sqlite:///{tmp_path}/again.db")


async def test_what_was_interrupted_is_written_whole(settings):
    """The half that was there is not there twice."""

    def interrupted(done, total):
        if done == 30:
            raise InterruptedError("that is enough")

    with pytest.raises(InterruptedError, match="enough"):
        await fill_demo(settings, interrupted, people=ONE)
    report = await fill_demo(settings, people=ONE)
    assert report.turns == len(ONE[0].talks[0].turns())
    async with Memory.open(settings=settings) as memory:
        turns = await memory.conversation("demo-travel", user_id="demo-wei").turns(limit=1000)
        assert len(turns) == report.turns
        facts = await memory.facts("demo-wei", history=True)
        assert len(facts) == report.facts


async def test_what_others_wrote_is_not_touched(settings):
    """Neither by writing the demo nor by removing it."""
    async with Memory.open(settings=settings) as memory:
        chat = memory.conversation("mine", user_id="ada")
        steps = [{"tool": "search", "input": {}, "result": "a long line\n" * 2000}]
        await chat.record(user="Hello", assistant="Hello, Ada.", steps=steps)
        await memory.remember("Ada drinks tea", user_id="ada")
        await chat.context("What do I drink?")
        await memory.settle()
    # That something was erased stays known, by a hash: work on it that is still under way must find out.
    before = rows(settings, without={"scope_epochs"})
    await fill_demo(settings, people=ONE)
    assert rows(settings, without={"scope_epochs"}) != before
    async with Memory.open(settings=settings) as memory:
        counts = await remove_demo(memory)
        assert counts["ai_message"] >= len(ONE[0].talks[0].turns())
        assert not await demo_present(memory)
        assert sum((await remove_demo(memory)).values()) == 0
    after = rows(settings, without={"scope_epochs"})
    assert after == before


async def test_somebody_who_has_the_same_name_is_left_alone(settings):
    """A user of the demo with a conversation of their own is not erased."""
    async with Memory.open(settings=settings) as memory:
        await memory.conversation("my own", user_id="demo-wei").record(user="Hello", assistant="Hello.")
        with pytest.raises(ConflictError, match="my own"):
            await remove_demo(memory)
    with pytest.raises(ConflictError, match="not the demo's"):
        await fill_demo(settings, people=ONE)
    async with Memory.open(settings=settings) as memory:
        assert len(await memory.conversation("my own", user_id="demo-wei").turns()) == 1


@pytest.mark.parametrize("url", ["memory://", "sqlite://"])
async def test_a_memory_that_is_gone_at_once_cannot_be_filled(url):
    """The error says what to name instead."""
    with pytest.raises(InvalidArgumentError, match="name a file"):
        await fill_demo(Settings(url=url))


async def test_how_busy_the_machine_is_cannot_be_seen(settings, monkeypatch):
    """Its windows wait for the vectors of their questions, unless somebody set how long."""
    patience = []

    def opened(*, settings, **others):
        patience.append(settings.embedder.query_timeout_s)
        return open_memory(settings=settings, **others)

    open_memory = Memory.open
    monkeypatch.setattr(Memory, "open", opened)
    await fill_demo(settings, people=())
    await fill_demo(replace(settings, embedder=EmbedderSettings("none", query_timeout_s=2)), people=())
    assert patience == [30, 30, 2, 2]


@pytest.mark.slow
async def test_the_command(filled, tmp_path, monkeypatch):
    """Fills `./pagefile.db`, says what to do next, adds nothing the second time, and takes everything out again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAGEFILE_EMBEDDER__NAME", "none")
    assert pagefile("demo", "--remove").code == 3

    async def said(*arguments):
        return await anyio.to_thread.run_sync(lambda: pagefile(*arguments))

    folder, first = filled
    assert (first.code, (folder / "pagefile.db").exists()) == (0, True)
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for word in ("6 conversations", "pagefile serve", "pagefile demo --remove"):
        assert word in first.words
    again = await said("demo")
    assert (again.code, "nothing was added" in again.words) == (0, True)
    assert (await said("demo", "--json")).json["turns"] == 0
    gone = await said("demo", "--remove", "--json")
    assert (gone.code, gone.json["total"] > 500, gone.json["counts"]["facts"] > 20) == (0, True, True)
    assert (await said("demo", "--remove")).code == 3
    assert (await said("show")).code == 3
