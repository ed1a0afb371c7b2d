"""Bytes in a tool's result: never shown as base64 nor counted as text, and loadable byte for byte."""

import base64
import json

import pytest

from pagefile import Memory, Settings
from pagefile.settings import FactSettings
from pagefile.text.synopsis.binary import has_base64, masked, unmasked

pytestmark = pytest.mark.anyio

#: Every byte, so that all letters of base64 occur.
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 100
DATA = base64.b64encode(PNG).decode()
WRAPPED = "\n".join(DATA[at : at + 76] for at in range(0, len(DATA), 76))
RESULTS = {
    "mcp": json.dumps({"content": [{"type": "image", "data": DATA, "mimeType": "image/png"}]}),
    "data url": f"Screenshot: ![page](data:image/png;base64,{DATA}) of the login form",
    "bare": DATA,
    "wrapped": f"-----BEGIN FILE-----\n{WRAPPED}\n-----END FILE-----",
    "in a field": json.dumps({"filename": "a.png", "content": DATA, "note": "saved"}),
    "short": json.dumps({"thumbnail": DATA[:1200]}),
}


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
async def test_bytes_are_not_shown_and_come_back_exactly(result):
    settings = Settings(language="en", facts=FactSettings(enabled=False))
    async with Memory.open("memory://", settings=settings) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.begin("Take a screenshot.")
        turn = await chat.step(turn, tool="screenshot", input={}, result=result)
        window = await chat.context()
        assert DATA[400:440] not in str(window.messages)
        assert window.tokens < 400
        uuid = turn.steps[0].page
        assert result == await chat.load(uuid)
        assert DATA[400:440] not in await chat.call_tool("load_tool_history", {"uuid": uuid})
        asked = {"uuid": uuid, "query": "login form"}
        assert DATA[400:440] not in await chat.call_tool("load_tool_history", asked)


def test_a_mask_keeps_every_offset():
    text = RESULTS["data url"]
    hidden = masked(text)
    assert len(text) == len(hidden)
    assert text.index(") of the") == hidden.index(") of the")
    assert "Screenshot: ![page]([base64: image/png, 25,608 bytes]) of the login form" == unmasked(hidden)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 5000,
        "0123456789abcdef" * 200,
        "/usr/lib/python3/dist-packages " * 90,
        "word " * 400,
        "A1b2" * 100,
    ],
    ids=["one letter", "hex", "paths", "words", "a token"],
)
def test_what_only_looks_like_base64_stays(text):
    assert not has_base64(text)
    assert text == masked(text)
