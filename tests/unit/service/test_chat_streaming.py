"""Server-sent events, without a server: what is sent, when, and what is left behind."""

import json

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from pagefile.service.events import HEARTBEAT, EventStream, encoded

pytestmark = pytest.mark.anyio


class Said(BaseModel):
    text: str


class Wire:
    """What a server would see; the client goes away when told."""

    def __init__(self):
        self.sent = []
        self.gone = anyio.Event()

    async def receive(self):
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.sent.append(message)

    @property
    def bodies(self):
        return [message["body"] for message in self.sent[1:]]


class Ends:
    """Counts how often it is cleaned up."""

    times = 0

    async def __call__(self):
        await anyio.sleep(0)
        self.times += 1


@pytest.mark.waits
async def test_heartbeats_never_cancel_the_work():
    """However many there are while it says nothing."""
    wire, ends = Wire(), Ends()
    beats = anyio.Event()

    async def send(message):
        wire.sent.append(message)
        if wire.bodies.count(HEARTBEAT) == 5:
            beats.set()

    async def work(send):
        await beats.wait()
        await send(encoded("token", Said(text="你好\n世界")))

    await EventStream(work, ends, heartbeat_s=0.001)({}, wire.receive, send)
    assert wire.bodies.count(HEARTBEAT) >= 5
    words = [body for body in wire.bodies if body not in {HEARTBEAT, b""}]
    assert [encoded("token", Said(text="你好\n世界"))] == words
    assert (b"", False) == (wire.sent[-1]["body"], wire.sent[-1]["more_body"])
    assert 1 == ends.times


@pytest.mark.waits
async def test_a_client_that_leaves_cancels_the_work_before_it_is_cleaned_up():
    """Also work that waits because nobody takes its events."""
    wire = Wire()
    order = []

    async def work(send):
        try:
            while True:
                await send(encoded("token", Said(text="x")))
        finally:
            order.append("work ended")

    async def clean_up():
        await anyio.sleep(0)
        order.append("cleaned up")

    async def send(message):
        wire.sent.append(message)
        if len(wire.sent) == 3:
            wire.gone.set()
            await anyio.sleep_forever()

    await EventStream(work, clean_up)({}, wire.receive, send)
    assert ["work ended", "cleaned up"] == order


@pytest.mark.waits
async def test_a_cancelled_request_is_cleaned_up_too():
    """As when the service stops."""
    wire, ends = Wire(), Ends()
    begun = anyio.Event()

    async def work(send):
        begun.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(EventStream(work, ends), {}, wire.receive, wire.send)
        await begun.wait()
        group.cancel_scope.cancel()
    assert 1 == ends.times


@given(st.text())
def test_any_text_is_one_event(text):
    """Whatever line ends are in it, it stays within its event."""
    block = encoded("token", Said(text=text)).decode()
    name, data, *rest = block.split("\n")
    assert ("event: token", ["", ""]) == (name, rest)
    assert {"text": text} == json.loads(data.removeprefix("data: "))
