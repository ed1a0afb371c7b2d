"""What the doors to frameworks share, without any framework: whose history it is, tools, and a database that is locked."""

from time import monotonic

import anyio
import pytest

from pagefile import Memory, Settings
from pagefile.integrations.door import Door, assistant, result, user, whose
from pagefile.settings import ArchiveSettings
from tests.findings.frameworks.promises import locked

ADA = whose("ada", "c1")
LONG = "\n".join(f"Line {number} tells nothing new." for number in range(300))


@pytest.fixture
def database(tmp_path):
    return tmp_path / "doors.db"


@pytest.fixture
async def memory(database):
    settings = Settings(language="en", archive=ArchiveSettings(threshold=1000, page_from=1000))
    async with Memory.open(f"sqlite:///{database}", settings=settings, embedder="none") as opened:
        yield opened


async def answers(door, asked, answer, before=()):
    told = [*before, [user(asked)], [assistant(answer)]]
    await door.finish(ADA, told)
    return told


@pytest.mark.parametrize("from_log", [True, False])
async def test_a_history_that_is_empty_is_filled_from_the_log_unless_it_is_ours(memory, from_log):
    door = Door(memory, "test", from_log=from_log)
    await answers(door, "My cat is called Momo.", "A fine name.")
    request = await door.request(ADA, [[user("And my dog?")]])
    assert from_log is any("Momo" in str(shown.message) for shown in request.shown)


@pytest.mark.parametrize("tools", [True, False])
async def test_a_result_leaves_a_request_only_where_it_can_be_loaded(memory, tools):
    door = Door(memory, "test")
    call = assistant(None, [("call_1", "report", {})])
    before = [[user("Get the report.")], [call], [result("call_1", LONG)], [assistant("I have it.")]]
    await door.finish(ADA, before)
    request = await door.request(ADA, [*before, [user("What is in it?")]], tools=tools)
    (shown,) = [one for one in request.shown if one.at == 2]
    assert tools is bool(shown.results)


async def test_a_locked_database_costs_a_run_one_time_out(memory, database):
    """However many model calls, tools and histories a run has; what it said is in the log afterwards."""
    door = Door(memory, "test", timeout_s=0.5)
    told = await answers(door, "Hello.", "Hello to you.")
    with locked(database):
        begun = monotonic()
        for _ in range(3):
            assert await door.request(ADA, [*told, [user("Still there?")]]) is None
            assert await door.answer("recall", {"query": "anything"}, ADA)
        await answers(door, "Still there?", "Of course.", told)
        took = monotonic() - begun
    assert took < 3 * 0.5
    assert 7 == door.edge.failures
    chat = memory.conversation("c1", user_id="ada")
    with anyio.fail_after(30):
        while [turn.assistant for turn in await chat.turns()] != ["Hello to you.", "Of course."]:
            await anyio.sleep(0.05)
