"""Background work of a whole memory: wherever it is done, all of it is done, and what fails can be seen."""

from dataclasses import replace
from itertools import count

import anyio
import pytest

from pagefile import Memory, Settings, SettingsError
from pagefile.engine import engine as engine_module
from pagefile.engine.background import dedicated
from pagefile.records import Scope
from pagefile.settings import EmbedderSettings
from pagefile.standalone import ConversationSummarizer
from pagefile.tiers import Pace, Tier
from pagefile.tiers.history import WATERMARK, History
from tests.waiting import PATIENCE_S, until

pytestmark = pytest.mark.waits

PLAIN = Settings(embedder=EmbedderSettings(name="none"), window_tokens=1000)
APART = replace(PLAIN, worker="apart")


class Care(Tier):
    """Looks after every conversation."""

    def __init__(self, name="care", **pace):
        self.name = name
        self.pace = Pace(**pace)
        self.done = []

    async def absorb(self, turn):
        return True

    async def maintain(self, scope):
        self.done.append(scope.conversation)


async def test_a_tier_from_outside_is_looked_after_here(tmp_path):
    """A `pagefile worker` does not have it, so nobody else could."""
    tier = Care()
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=APART, tiers=[tier]) as memory:
        await memory.conversation("c").record("hello", "hi")
        await memory.engine.worker.lines["care"].settle()
        assert ["c"] == tier.done


async def test_summaries_of_this_process_are_made_by_it(tmp_path):
    """Also where another one does the work of the tiers: only this one has the summarizer."""
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=APART) as memory:
        summarizer = ConversationSummarizer(store=memory, min_messages=1, window_messages=0)
        await summarizer.store.conversation("c").record("We planted tomatoes.", "Good.")
        summarizer.schedule_update("c")
        await until(lambda: summarizer.get_summary("c"))


@pytest.mark.parametrize("name", ["calls", "jobs", "pinned"])
async def test_a_tier_cannot_take_a_name_of_ours(name):
    """One of them would never be looked after, or be taken for the other."""
    with pytest.raises(SettingsError, match=f"called {name}.*another name"):
        async with Memory.open("memory://", settings=PLAIN, tiers=[Care(name)]):
            pass


async def test_work_that_fails_is_counted_with_all_other_failures():
    """`describe` says so: who watches it need not read the log."""

    class Bad(Care):
        async def maintain(self, scope):
            raise ValueError

    async with Memory.open("memory://", settings=PLAIN, tiers=[Bad(first_rest_s=1000.0)]) as memory:
        await memory.conversation("c").record("hello", "hi")
        await until(lambda: _failed(memory, "care"))
        assert {"care": 1} == (await memory.describe())["tier_failures"]


async def _failed(memory, name):
    return (await memory.describe())["tier_failures"].get(name)


async def test_forgetting_drops_what_was_to_be_done():
    """Work may hold what was said: none of it is begun afterwards."""
    tier, heard = Care(quiet_s=1000.0, longest_wait_s=1000.0), []

    async def job(scope):
        heard.append(scope.conversation)

    async with Memory.open("memory://", settings=PLAIN, tiers=[tier]) as memory:
        for user in ("ada", "bob"):
            chat = memory.conversation(f"of {user}", user_id=user)
            await chat.record("hello", "hi")
        await memory.forget(user_id="ada")
        memory.engine.worker.do(chat.scope, job)
        await memory.settle()
    assert (["of bob"], ["of bob"]) == (tier.done, heard)


async def test_settling_ends_while_others_keep_writing(tmp_path, monkeypatch):
    """Where another process does the work, it is waited for with what is written by now."""
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=APART) as memory:
        numbers = count()

        async def behind():
            return [Scope("tenant", "ada", str(next(numbers)))]

        monkeypatch.setattr(memory.engine.tier(History), "behind", behind)
        with anyio.fail_after(PATIENCE_S):
            await memory.settle()


async def test_turns_written_while_a_conversation_is_looked_after_are_not_missed(tmp_path, monkeypatch):
    """Another process writes them: they stay behind the watermark, and are found by the next look."""
    monkeypatch.setattr(engine_module, "_POLL_S", 0.01)
    url, tended = f"sqlite:///{tmp_path}/a.db", []
    async with Memory.open(url, settings=APART) as memory:
        chat = memory.conversation("c", user_id="ada")
        await chat.record("one", "1")
        async with Memory.open(url, settings=replace(PLAIN, worker="dedicated")) as other:
            history = other.engine.tier(History)
            maintain = history.checkpoints.maintain

            async def tend_and_write(scope, rules):
                tended.append((await chat.head()).last_seq)
                left = await maintain(scope, rules)
                if len(tended) == 1:
                    await chat.record("two", "2")
                return left

            monkeypatch.setattr(history.checkpoints, "maintain", tend_and_write)
            await other.engine.store.watermarks.drop(WATERMARK)
            await until(lambda: tended and tended[-1] == 2)


async def test_a_conversation_begun_again_while_it_is_looked_after_is_not_missed(tmp_path, monkeypatch):
    """It is shorter than the one that was erased, and looked at all the same, with every turn that comes."""
    monkeypatch.setattr(engine_module, "_POLL_S", 0.01)
    url, tended = f"sqlite:///{tmp_path}/a.db", []
    async with Memory.open(url, settings=APART) as memory:
        chat = memory.conversation("c", user_id="ada")
        for number in range(3):
            await chat.record(f"question {number}", "answer")
        async with Memory.open(url, settings=replace(PLAIN, worker="dedicated")) as other:
            history = other.engine.tier(History)
            maintain = history.checkpoints.maintain

            async def begun_again(scope, rules):
                tended.append((await chat.head()).last_seq)
                left = await maintain(scope, rules)
                if len(tended) == 1:
                    await memory.forget(conversation_id="c", user_id="ada")
                    await chat.record("one", "1")
                return left

            monkeypatch.setattr(history.checkpoints, "maintain", begun_again)
            await other.engine.store.watermarks.drop(WATERMARK)
            await until(lambda: tended and tended[-1] == 1)
            await chat.record("two", "2")
            await until(lambda: tended[-1] == 2)


def test_vectors_of_one_process_are_refused():
    """As `pagefile serve --workers` refuses them: two processes cannot open the file."""
    with pytest.raises(SettingsError, match="A Milvus file belongs to one process"):
        dedicated(replace(PLAIN, vectors="milvus:///vectors.db"))
