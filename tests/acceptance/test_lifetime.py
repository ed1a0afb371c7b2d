"""How long a memory is open: for a `with` block, or from `connect` to `close`, in whatever task."""

import asyncio
import subprocess
import sys
import threading

import anyio
import pytest

from pagefile import BlockingMemory, Memory, Settings, load_settings
from pagefile.engine.background import look_after
from pagefile.engine.worker import Worker
from pagefile.errors import ClosedError, NotOpenError, SettingsError
from pagefile.stores.sqlite import SqliteStore


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/kept.db"


async def said(memory):
    return [turn.user for turn in await memory.conversation("chat").turns()]


async def test_a_memory_is_connected_and_closed(url):
    """Without a `with` block; what was recorded is there the next time."""
    memory = await Memory.connect(url)
    await memory.conversation("chat").record("hello", "hi")
    await memory.close()
    await memory.close()
    with pytest.raises(ClosedError):
        await memory.conversations()
    again = await Memory.connect(url)
    assert ["hello"] == await said(again)
    await again.close()


async def test_it_is_closed_from_another_task(url):
    """As by a fixture or an exit stack, also where the one that opened it is long gone."""
    memory = await asyncio.ensure_future(Memory.connect(url))
    await asyncio.ensure_future(memory.close())
    with pytest.raises(ClosedError):
        await memory.conversations()


async def test_a_block_may_be_left_early(url):
    """`close` inside the block closes it, and the end of the block finds nothing to do."""
    async with Memory.open(url) as memory:
        await memory.close()
        with pytest.raises(ClosedError):
            await memory.conversations()


async def test_what_cannot_be_opened_says_so(tmp_path):
    """The error is the one of opening it, and no task stays behind."""
    before = asyncio.all_tasks()
    for opened in (
        Memory.connect(f"sqlite:///{tmp_path}"),
        Memory.open(f"sqlite:///{tmp_path}").__aenter__(),
    ):
        with pytest.raises(SettingsError, match="is a directory"):
            await opened
    assert before == asyncio.all_tasks()


async def test_a_caller_who_is_cancelled_leaves_nothing_open(url):
    """Neither a task nor a lock on the file."""
    before = asyncio.all_tasks()
    opening = asyncio.ensure_future(Memory.connect(url))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert before == asyncio.all_tasks()
    async with Memory.open(url) as memory:
        assert [] == await said(memory)


async def test_a_caller_who_is_cancelled_does_not_wait_for_background_work(url, monkeypatch):
    """What is left to do is made up for by whoever opens it next."""
    drained = []

    async def drain(self):
        drained.append(self)

    monkeypatch.setattr(Worker, "drain", drain)
    with anyio.CancelScope() as scope:
        async with Memory.open(url) as memory:
            scope.cancel()
            await anyio.sleep(60)
    assert [] == drained
    with pytest.raises(ClosedError):
        await memory.conversations()
    async with Memory.open(url):
        pass
    assert 1 == len(drained)


async def test_a_worker_that_fails_ends_its_process(url, monkeypatch):
    """It says why instead of waiting for a signal that never comes."""
    started = anyio.Event()

    async def run(self):
        await started.wait()
        raise RuntimeError("broken")

    monkeypatch.setattr(Worker, "run", run)
    async with Memory.open(url):
        pass
    with anyio.fail_after(30), pytest.raises(BaseException) as failure:
        await look_after(Settings(url=url), started.set)
    assert failure.group_contains(RuntimeError, match="broken")


async def test_an_error_in_the_block_is_the_callers(url):
    """It is neither wrapped nor swallowed."""
    with pytest.raises(KeyError, match="mine"):
        async with Memory.open(url):
            raise KeyError("mine")


async def test_a_forgotten_with_is_explained(url):
    """`open` gives no memory yet, and says how to get one."""
    opening = Memory.open(url)
    with pytest.raises(NotOpenError, match=r"async with Memory.open.*await Memory.connect"):
        opening.conversation("chat")
    with pytest.raises(NotOpenError, match=r"async with Memory.open"):
        await opening
    assert not hasattr(opening, "conversation")


def test_the_blocking_face_does_the_same(url):
    """Connected in one thread, closed in another."""
    memory = BlockingMemory.connect(url)
    memory.conversation("chat").record("hello", "hi")
    closing = threading.Thread(target=memory.close)
    closing.start()
    closing.join()
    memory.close()
    with pytest.raises(ClosedError):
        memory.conversations()
    with BlockingMemory.open(url) as again:
        assert ["hello"] == [turn.user for turn in again.conversation("chat").turns()]
    with pytest.raises(NotOpenError, match=r"with BlockingMemory.open.*BlockingMemory.connect"):
        BlockingMemory.open(url).conversation("chat")


@pytest.mark.parametrize("close", ["", "memory.close()"])
def test_a_program_ends_whether_it_closed_or_not(url, close):
    """An exception before `close` does not keep the program from ending, and what was recorded is there."""
    program = f"""
from pagefile import BlockingMemory
memory = BlockingMemory.connect({url!r})
memory.conversation("chat").record("hello", "hi")
{close}
raise SystemExit(3)
"""
    assert 3 == subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode
    with BlockingMemory.open(url) as again:
        assert ["hello"] == [turn.user for turn in again.conversation("chat").turns()]


@pytest.mark.waits
def test_what_is_left_open_is_closed_before_its_threads_refuse_work(url):
    """A result is archived and a program ends without `close`: nothing on stderr, and its passages have their vectors."""
    program = f"""
from pagefile import BlockingMemory
memory = BlockingMemory.connect({url!r})
chat = memory.conversation("chat", user_id="ada")
turn = chat.step(chat.begin("Read the log."), tool="read_log", input={{}}, result="A line of words.\\n" * 900)
chat.complete(turn, "Read.")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=60, check=False, text=True
    )
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


def test_a_forked_child_leaves_the_memory_of_its_parent_alone(url):
    """Its threads are not there: to close it would wait for them forever."""
    program = f"""
import multiprocessing
from pagefile import BlockingMemory
memory = BlockingMemory.connect({url!r})
child = multiprocessing.get_context("fork").Process(target=print, args=("child",))
child.start()
child.join(20)
raise SystemExit(child.exitcode)
"""
    assert 0 == subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode


async def test_two_who_close_wait_for_the_same_end(url, monkeypatch):
    """Whoever comes second returns when it is closed, not before."""
    closed = SqliteStore.close
    ends = []

    async def slowly(store):
        await asyncio.sleep(0.2)
        await closed(store)
        ends.append("closed")

    monkeypatch.setattr(SqliteStore, "close", slowly)
    memory = await Memory.connect(url)
    first = asyncio.ensure_future(memory.close())
    await asyncio.sleep(0.05)
    await memory.close()
    assert ["closed"] == ends
    await first


def test_closing_after_the_event_loop_is_nothing(url):
    """A loop that ended has closed its memories."""
    memory = asyncio.run(Memory.connect(url))
    asyncio.run(memory.close())


async def test_a_file_needs_no_url(tmp_path, monkeypatch):
    """`Memory.open("plain.db")`, as the command line takes it; a `Path` too."""
    monkeypatch.chdir(tmp_path)
    async with Memory.open("plain.db") as memory:
        await memory.conversation("c").record("I live in Oslo.", "Noted.")
    async with Memory.open(tmp_path / "plain.db") as memory:
        assert ["I live in Oslo."] == [turn.user for turn in await memory.conversation("c").turns()]
    for word in ("memory", "sqlite", "postgres"):
        with pytest.raises(SettingsError, match="No store is known"):
            await Memory.connect(word)


async def test_a_settings_file_that_is_not_read_is_named(tmp_path, monkeypatch, caplog):
    """A program that opens a memory without settings does not get those of the command beside it, and hears of it once."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pagefile.toml").write_text("window_tokens = 4321\n", encoding="utf-8")
    for _ in range(2):
        async with Memory.open("plain.db") as memory:
            assert Settings().window_tokens == memory.settings.window_tokens
    (told,) = [one.getMessage() for one in caplog.records if one.name == "pagefile.settings"]
    assert str(tmp_path / "pagefile.toml") in told
    assert "settings=pagefile.load_settings()" in told
    async with Memory.open("plain.db", settings=load_settings()) as memory:
        assert 4321 == memory.settings.window_tokens


def test_which_settings_file_was_read_is_said(tmp_path, monkeypatch, caplog):
    """`load_settings` logs the file, or that there is none and where it looked."""
    monkeypatch.chdir(tmp_path)
    caplog.set_level("INFO", "pagefile.settings")
    load_settings(environ={})
    (tmp_path / "pagefile.toml").write_text("window_tokens = 4321\n", encoding="utf-8")
    load_settings(environ={})
    none, read = [one.getMessage() for one in caplog.records]
    assert f"There is no pagefile.toml in {tmp_path}: defaults and the environment apply." == none
    assert "Settings are read from pagefile.toml." == read


def test_a_closed_blocking_memory_names_itself(url):
    """Not the other one, which would have to be awaited."""
    with BlockingMemory.open(url) as memory:
        chat = memory.conversation("c")
    for verb in (lambda: chat.record("a", "b"), lambda: memory.conversation("d")):
        with pytest.raises(ClosedError, match=r"with `BlockingMemory\.open\(…\)`"):
            verb()
