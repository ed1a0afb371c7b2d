"""The first requests of a process: what they need is still being loaded, and they wait for it instead of going without memory."""

import asyncio
import gc
import logging
import re
import threading
import time
import weakref
from contextlib import contextmanager

import openai
import pytest

import pagefile
from pagefile import BlockingMemory, Memory, Settings
from pagefile.gateway.session import Call
from pagefile.settings import EmbedderSettings, GatewaySettings
from pagefile.testing import HashingEmbedder
from pagefile.tiers import loading
from tests.gateway.behind import behind
from tests.gateway.upstream import Said, Upstream
from tests.waiting import until, until_so

#: Shorter than loading takes in these tests.
DEADLINE_S = 0.3
SETTINGS = Settings(
    url="memory://",
    gateway=GatewaySettings(deadline_s=DEADLINE_S),
    embedder=EmbedderSettings(query_timeout_s=0.05),
)

pytestmark = pytest.mark.waits


class Loading(HashingEmbedder):
    """One of our own that answers once it was let go."""

    local = True

    def __init__(self):
        super().__init__()
        self.asked, self.loaded = threading.Event(), threading.Event()

    async def embed(self, texts):
        self.asked.set()
        await until(self.loaded.is_set)
        return await super().embed(texts)


@contextmanager
def wrapped(embedder, settings=SETTINGS):
    """A client of a memory that knows of the boiler, whose encoder is being loaded."""
    with (
        Upstream(lambda _: Said("heard")) as upstream,
        BlockingMemory.open(settings=settings, embedder=embedder) as memory,
        openai.OpenAI(base_url=f"{upstream.url}/v1", api_key="sk-vendor", max_retries=0) as client,
    ):
        memory.conversation("before", user_id="ada").record("The boiler was serviced in May.", "Good.")
        yield pagefile.wrap(client, memory, user_id="ada"), memory, upstream


def asked(client, words="Is the heating fine?"):
    """The headers of an answer."""
    create = client.chat.completions.with_raw_response.create
    return create(model="gpt-5", messages=[{"role": "user", "content": words}]).headers


def told(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_request_waits_for_what_is_being_loaded(caplog):
    """Longer than it may take otherwise, and longer than a window waits for a vector: it has all that memory can find."""
    embedder = Loading()
    with wrapped(embedder) as (client, memory, upstream):
        threading.Timer(4 * DEADLINE_S, embedder.loaded.set).start()
        head = asked(client)
        assert "memory" == head["x-pagefile-status"]
        assert "The boiler was serviced in May." in str(upstream.last)
        chat = memory.conversation(head["x-pagefile-conversation"], user_id="ada")
        (call,) = chat.calls()
        assert not call.receipt.get("degraded")
    assert [] == told(caplog)


def test_it_waits_no_longer_than_it_has_patience(monkeypatch):
    """Counted from the beginning of the loading, by whichever request; memory goes on with words."""
    monkeypatch.setattr(loading, "PATIENCE_S", 3 * DEADLINE_S)
    embedder = Loading()
    with wrapped(embedder) as (client, _, upstream):
        began = time.monotonic()
        assert "recorded" == asked(client)["x-pagefile-status"]
        assert 2 * DEADLINE_S < time.monotonic() - began
        assert "memory" == asked(client, "When was the boiler serviced?")["x-pagefile-status"]
        assert "The boiler was serviced in May." in str(upstream.last)
        embedder.loaded.set()


def test_wrapping_begins_to_load_and_opening_does_not():
    embedder = Loading()
    settings = Settings(url="memory://", indexing="manual")
    with BlockingMemory.open(settings=settings, embedder=embedder) as memory:
        assert not embedder.asked.wait(0.2)
        with openai.OpenAI(api_key="sk-vendor") as client:
            pagefile.wrap(client, memory)
            assert embedder.asked.wait(20)


async def test_wrapping_in_an_event_loop_begins_to_load():
    embedder = Loading()
    async with (
        Memory.open(settings=Settings(url="memory://", indexing="manual"), embedder=embedder) as memory,
        openai.AsyncOpenAI(api_key="sk-vendor") as client,
    ):
        pagefile.wrap(client, memory)
        await until(embedder.asked.is_set)


def test_closing_does_not_wait_for_what_is_being_loaded():
    embedder = Loading()
    memory = BlockingMemory.connect(settings=Settings(url="memory://", indexing="manual"), embedder=embedder)
    with openai.OpenAI(api_key="sk-vendor") as client:
        pagefile.wrap(client, memory)
        assert embedder.asked.wait(20)
        began = time.monotonic()
        memory.close()
        assert time.monotonic() - began < 3


class Frame:
    """Lives as long as the frame it is in."""


class Stuck:
    """A memory whose preparation hangs until it is let go."""

    def __init__(self, monkeypatch):
        self.free = threading.Event()
        self.frames = []
        prepare = Call.prepare

        async def slow(call):
            frame = Frame()
            self.frames.append(weakref.ref(frame))
            while not self.free.is_set():
                await asyncio.sleep(0.01)
            return await prepare(call)

        monkeypatch.setattr(Call, "prepare", slow)


def test_a_request_without_memory_says_why_and_so_does_the_log(monkeypatch, caplog):
    """Each in a header; the log once for a pause, and when memory is back."""
    stuck = Stuck(monkeypatch)
    with wrapped("none") as (client, _, _):
        head = asked(client)
        assert "bypassed" == head["x-pagefile-status"]
        assert "memory took longer than 0.3 s (gateway.deadline_s)" == head["x-pagefile-bypassed"]
        for _ in range(2):
            head = asked(client)
            assert "bypassed" == head["x-pagefile-status"]
            assert re.fullmatch(
                r"memory is left alone for \d\.\d s more because it was slow", head["x-pagefile-bypassed"]
            )
        (line,) = told(caplog)
        assert line.startswith(
            "pagefile.wrap: preparing a request took longer than 0.3 s (gateway.deadline_s); "
        )
        assert line.endswith("the run continues without memory, which is left alone for 1 s")
        stuck.free.set()
        until_so(lambda: asked(client)["x-pagefile-status"] != "bypassed")
        assert re.fullmatch(r"pagefile\.wrap: memory answers again; \d+ went without", told(caplog)[-1])
        assert "x-pagefile-bypassed" not in asked(client)


def test_the_log_does_not_keep_a_request_alive(monkeypatch, caplog):
    """Handlers may keep records: they have the words of an error, and not the frames of the request that failed."""
    caplog.set_level(logging.DEBUG, "pagefile")
    stuck = Stuck(monkeypatch)
    with wrapped("none") as (client, _, _):
        for _ in range(2):
            asked(client)
        until_so(lambda: gc.collect() + 1 and stuck.frames[0]() is None)
        assert caplog.records


def test_the_gateway_says_why(monkeypatch, tmp_path):
    stuck = Stuck(monkeypatch)
    with behind(lambda _: Said("heard"), tmp_path, gateway={"deadline_s": DEADLINE_S}) as place:
        head = asked(place.openai())
        assert "memory took longer than 0.3 s (gateway.deadline_s)" == head["x-pagefile-bypassed"]
        stuck.free.set()


def test_an_error_is_named_and_not_quoted(monkeypatch):
    """Its words may name what is nobody else's business."""

    async def fails(_):
        raise OSError("/secret/place")

    monkeypatch.setattr(Call, "prepare", fails)
    with wrapped("none") as (client, _, _):
        assert "memory failed: OSError" == asked(client)["x-pagefile-bypassed"]


async def test_what_an_import_raises_does_not_close_the_memory(monkeypatch, caplog):
    def broken(_):
        raise RuntimeError("secret")

    monkeypatch.setattr(loading, "terms", broken)
    async with Memory.open(settings=Settings(url="memory://"), embedder="none") as memory:
        memory.engine.loading.begin()
        await until(lambda: "not loaded before them: RuntimeError" in caplog.text)
        await memory.conversation("c").record("hello", "there")
        assert ["hello"] == [turn.user for turn in await memory.conversation("c").turns()]
    assert "secret" not in caplog.text
