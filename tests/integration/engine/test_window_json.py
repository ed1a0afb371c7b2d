"""The window as the service writes it is the window as the reference says it."""

import json

import pytest

from pagefile import Memory
from pagefile.wire.windows import WindowOut, window_json


@pytest.mark.parametrize("form", ["openai", "responses", "anthropic", "text", "parts"])
async def test_a_window_is_written_as_its_model_would_be(form):
    """In every format, with tools, a page that was archived and turns that were left out."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        for number in range(12):
            await chat.record(user=f"第{number}个问题 & <b>", assistant="答案 \u2028 " * 9)
        turn = await chat.begin("查一下高血压")
        await chat.step(turn, tool="search", input={"q": "血压"}, result="长文。" * 4000)
        window = await chat.context(window_tokens=2000, instructions="Be careful.")
    written = window_json(window, form)
    assert json.loads(WindowOut.of(window, form).model_dump_json()) == json.loads(written)
    assert WindowOut.model_validate_json(written).receipt.record() == window.receipt
    if form == "parts":
        assert WindowOut.model_validate_json(written).record() == window
