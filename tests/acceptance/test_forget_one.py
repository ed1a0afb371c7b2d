"""One turn or one page, erased alone: through the library, over HTTP and at the command line."""

import json
from uuid import UUID

import anyio
import httpx
import pytest

from pagefile import BlockingMemory, ConflictError, InvalidArgumentError, Memory, NotFoundError, Settings
from pagefile.client import Client
from pagefile.engine.verification import verify
from pagefile.errors import HandleNotFoundError
from pagefile.records import ERASED
from pagefile.service.app import create_app
from pagefile.settings import EmbedderSettings, FactSettings
from pagefile.stores import SystemClock
from pagefile.testing import HashingEmbedder, InMemorySessions
from pagefile.tiers.base import Tier
from tests.findings.security.looking import files_with

from .cli_calling import pagefile
from .http_serving import BASE

pytestmark = pytest.mark.anyio
WORDS = "My passport number is XMARKER4711 and I keep it secret."
RESULT = "line of the tool with ZMARKER0815 in it\n" * 400
SETTINGS = Settings(window_tokens=2000, facts=FactSettings(extract="rules"))


async def told(chat, memory):
    """A conversation in which something was said that should not have been, with everything that is made of it."""
    await chat.record("We travel to Lisbon in May.", "Noted.", id="first")
    turn = await chat.begin(f"{WORDS} I live in XMARKERville.", id="slip")
    await chat.step(turn, tool="search", input={"q": "visa"}, result=RESULT)
    await chat.complete(turn, f"Noted: {WORDS}")
    for number in range(3):
        await chat.record(f"What else about day {number}?", "Bring shoes.", id=f"later-{number}")
    await chat.checkpoint(recent_turns=1)
    await chat.context(WORDS)
    await chat.context("What is my passport number?")
    await memory.settle()


@pytest.fixture
async def memory(tmp_path):
    """A database with the slip in it."""
    url = f"sqlite:///{tmp_path}/a.db"
    cache = InMemorySessions(SystemClock())
    async with Memory.open(url, settings=SETTINGS, embedder=HashingEmbedder(), sessions=cache) as memory:
        await told(memory.conversation("c", user_id="ada"), memory)
        yield memory


async def test_nothing_of_a_turn_is_left(memory, tmp_path):
    """Not in the files, through no verb, and what was made with it is made again without it."""
    chat = memory.conversation("c", user_id="ada")
    assert files_with(tmp_path, "XMARKER") != []
    receipt = await memory.forget(conversation_id="c", user_id="ada", turn_id="slip")
    assert ("slip", (("c", 2),), ()) == (receipt.turn_id, receipt.places, receipt.pending)
    counts = {name: count for name, count in receipt.counts.items() if count}
    assert {"ai_message": 2, "tool_result_archive": 1, "turn_terms": 1}.items() <= counts.items()
    assert {"conversation_episodes", "context_calls", "archive_passage", "blobs"} <= counts.keys()
    await memory.settle()
    assert [] == files_with(tmp_path, "XMARKER") == files_with(tmp_path, "ZMARKER")
    assert [] == [hit.id for hit in await memory.recall("passport number", user_id="ada") if hit.id == "slip"]
    window = await chat.context("What is my passport number?")
    assert "XMARKER" not in str(window.messages)
    assert [] == [fact for fact in await memory.facts("ada") if "XMARKER" in fact.text]
    assert "XMARKER" not in json.dumps(await chat.session())
    report = await verify(memory.engine, full=True)
    assert [] == [one for one in report.findings if one.level != "note"]


async def test_a_cache_that_was_away_shows_nothing_of_it(memory):
    """What it kept is of another version."""
    chat, cache = memory.conversation("s", user_id="ada"), memory.engine.cache
    await chat.record("Hello.", "Hello.")
    slip = await chat.record("Tell me.", WORDS)
    assert "XMARKER" in json.dumps(await memory.engine.sessions.get(chat.scope))
    cache.down = True
    await memory.forget(conversation_id="s", user_id="ada", turn_id=slip.id)
    cache.down = False
    assert "XMARKER" not in json.dumps(await memory.engine.sessions.get(chat.scope))


async def test_the_log_says_that_something_was_erased(memory):
    """Its place is there, its words are not, and nobody writes under its id again."""
    chat = memory.conversation("c", user_id="ada")
    await memory.forget(conversation_id="c", turn_id="slip")
    turn = next(one for one in await chat.turns(limit=100) if one.id == "slip")
    assert (2, "aborted", ERASED, True) == (turn.seq, turn.status, turn.user, turn.erased)
    with pytest.raises(ConflictError, match="was erased"):
        await chat.record(WORDS, "again", id="slip")
    with pytest.raises(ConflictError, match="erased"):
        await chat.complete("slip", "late")


async def test_a_turn_is_gone_from_exports_too(memory, tmp_path):
    """What is exported can be read into another memory, place by place."""
    await memory.forget(conversation_id="c", turn_id="slip")
    await memory.export(tmp_path / "ada.jsonl", user_id="ada")
    assert [] == files_with(tmp_path, "XMARKER")
    async with Memory.open(f"sqlite:///{tmp_path}/b.db", settings=SETTINGS) as other:
        await other.import_(tmp_path / "ada.jsonl")
        before = await memory.conversation("c", user_id="ada").turns(limit=100)
        assert before == await other.conversation("c", user_id="ada").turns(limit=100)
        assert [] == [one for one in (await verify(other.engine)).findings if one.level == "damage"]


async def test_a_fork_loses_its_copy(memory, tmp_path):
    """Pages that the fork has of its own too."""
    chat = memory.conversation("c", user_id="ada")
    fork = await chat.fork("later-0", id="f")
    receipt = await memory.forget(conversation_id="f", turn_id="slip")
    assert [("c", 2), ("f", 2)] == sorted(receipt.places)
    assert 2 == receipt.counts["tool_result_archive"]
    assert [] == files_with(tmp_path, "XMARKER") == files_with(tmp_path, "ZMARKER")
    assert ["first", "later-0"] == [turn.id for turn in await fork.turns(limit=9) if turn.status == "done"]


async def test_a_page_alone(memory, tmp_path):
    """Its turn stays, with a note where its result was."""
    chat = memory.conversation("c", user_id="ada")
    uuid = (await memory.pages(user_id="ada"))[0].uuid
    receipt = await memory.forget(page=uuid, user_id="ada")
    assert (uuid, 1, 1) == (receipt.page, receipt.counts["tool_result_archive"], receipt.counts["blobs"])
    assert [] == files_with(tmp_path, "ZMARKER")
    turn = next(one for one in await chat.turns(limit=100) if one.id == "slip")
    assert (WORDS in (turn.user or ""), [ERASED]) == (True, [step.result for step in turn.steps])
    with pytest.raises(HandleNotFoundError):
        await chat.load(uuid)
    assert [] == [one for one in (await verify(memory.engine, full=True)).findings if one.level != "note"]
    assert 0 == (await memory.forget(page=uuid)).total


async def test_windows_that_showed_it_are_not_explained(memory):
    """They are no longer there, and the error says that they may have been erased."""
    chat = memory.conversation("c", user_id="ada")
    call = (await chat.calls())[0]
    await memory.forget(conversation_id="c", turn_id="slip")
    with pytest.raises(NotFoundError, match="erased"):
        await chat.explain(call.id)


@pytest.mark.parametrize(
    "asked",
    [
        {"turn_id": "slip"},
        {"turn_id": "slip", "user_id": "ada"},
        {"turn_id": "slip", "conversation_id": "c", "page": "x"},
    ],
)
async def test_what_is_named_by_halves_is_not_guessed(memory, asked):
    """A turn needs its conversation, and one thing is erased at a time."""
    with pytest.raises(InvalidArgumentError):
        await memory.forget(**asked)
    with pytest.raises(HandleNotFoundError):
        await memory.forget(page="no uuid")


async def test_a_tier_of_others_is_told_or_named(tmp_path):
    """One that cannot erase a single turn is in the receipt."""
    seen = []

    class Deaf(Tier):
        name = "deaf"

    class Listening(Tier):
        name = "listening"

        async def forget_part(self, receipt):
            seen.append((receipt.turn_id, receipt.places))

    class Failing(Tier):
        name = "failing"

        async def forget_part(self, receipt):
            raise RuntimeError("broken")

    async with Memory.open("memory://", tiers=[Deaf(), Listening(), Failing()], embedder="none") as memory:
        await memory.conversation("c").record(WORDS, "ok", id="slip")
        receipt = await memory.forget(conversation_id="c", turn_id="slip")
    assert [("slip", (("c", 1),))] == seen
    assert ["'deaf'" in receipt.pending[0], "'failing'" in receipt.pending[1]] == [True, True]


async def test_a_bulky_result_in_the_same_conversation_is_kept_whole(memory):
    """Whose page is being written while another turn is erased: it is written for what is there now."""
    chat = memory.conversation("c", user_id="ada")
    turn = await chat.begin("And now?", id="now")
    put, erased = memory.engine.store.pages.put, anyio.Event()

    async def slow(draft):
        if not erased.is_set():
            erased.set()
            await memory.forget(conversation_id="c", turn_id="slip")
        return await put(draft)

    memory.engine.store.pages.put = slow
    turn = await chat.step(turn, tool="search", input={"q": "2"}, result="other words " * 1000)
    assert (0, True) == (turn.steps[0].lost_chars, turn.steps[0].page is not None)


async def test_over_http(tmp_path):
    """The same verb, and the same receipt."""
    settings = Settings(url=f"sqlite:///{tmp_path}/a.db", embedder=EmbedderSettings(name="none"))
    app = create_app(settings)
    transport = httpx.ASGITransport(app=app)
    async with app.router.lifespan_context(app), Client(BASE, transport=transport) as client:
        chat = client.conversation("c", user_id="ada")
        await chat.record(WORDS, "ok", id="slip")
        receipt = await client.forget(conversation_id="c", user_id="ada", turn_id="slip")
        assert ("slip", (("c", 1),), 1) == (receipt.turn_id, receipt.places, receipt.counts["ai_message"])
        with pytest.raises(InvalidArgumentError):
            await client.forget(turn_id="slip")
        assert 0 == (await client.forget(conversation_id="c", user_id="ada", turn_id="slip")).total
        for mistyped in ({"turn_id": "slop", "conversation_id": "c"}, {"page": str(UUID(int=1))}):
            with pytest.raises(NotFoundError, match="nothing was erased"):
                await client.forget(user_id="ada", **mistyped)
        assert [] == files_with(tmp_path, "XMARKER")


def test_at_the_command_line(tmp_path):
    """`--turn` names a turn of the conversation, `--page` a page."""
    db = "--db", f"sqlite:///{tmp_path}/a.db"
    with BlockingMemory.open(db[1]) as memory:
        chat = memory.conversation("c", user_id="ada")
        turn = chat.begin(WORDS, id="slip")
        uuid = chat.step(turn, tool="search", result=RESULT).steps[0].page
        chat.complete("slip", "ok")
    refused = pagefile("forget", "--turn", "slip", "--yes", *db)
    assert (2, True) == (refused.code, "conversation" in refused.err)
    page = pagefile("forget", "--page", uuid, "--yes", "--json", *db)
    assert (0, uuid) == (page.code, json.loads(page.out)["page"])
    done = pagefile("forget", "c", "--turn", "slip", "--yes", *db)
    assert (0, True) == (done.code, "Erased turn 'slip' of conversation 'c'" in done.out)
    assert [] == files_with(tmp_path, "XMARKER") == files_with(tmp_path, "ZMARKER")
    again = pagefile("forget", "c", "--turn", "slip", "--yes", *db)
    assert "nothing to forget" in again.out + again.err
