"""Answers piece by piece: the real client against a small server that speaks the protocol."""

from contextlib import aclosing

import anyio
import pytest

from pagefile import ModelOutputError, ModelUnavailableError
from pagefile.models import OpenAIChat
from pagefile.ports import ChatModel, Spoken, ToolCall
from tests.acceptance.model_stub import CUT, END, ERROR, NONSENSE, ModelStub, call

QUESTION = [{"role": "user", "content": "你好"}]
TOOL = {"name": "load_tool_history", "description": "…", "parameters": {"type": "object"}}


async def answered(url, **options):
    """Every piece of an answer."""
    model = OpenAIChat("m", base_url=url, api_key="sk-secret")
    try:
        async with aclosing(model.stream(QUESTION, **options)) as pieces:
            return [piece async for piece in pieces]
    finally:
        await model.close()


async def test_an_answer_comes_in_pieces():
    """Each as it was sent, and the last says why it ends."""
    with ModelStub(lambda _: ["你", "好，", "世界\n"]) as stub:
        pieces = await answered(stub.url)
    assert [Spoken("你"), Spoken("好，"), Spoken("世界\n"), Spoken(finish="stop")] == pieces
    assert (True, QUESTION, "m") == tuple(stub.requests[0][key] for key in ("stream", "messages", "model"))
    assert "tools" not in stub.requests[0]


async def test_tool_calls_come_whole_and_in_order():
    """However many pieces they were sent in, and whatever is beside them."""
    pieces = [*call("second", {"b": "中文"}, index=1, id="b"), "等一下", *call("first", "{broken", id="a")]
    with ModelStub(lambda _: pieces) as stub:
        *texts, last = await answered(stub.url, tools=[TOOL])
    assert [Spoken("等一下")] == texts
    assert Spoken(calls=(ToolCall("a", "first", "{broken"), ToolCall("b", "second", '{"b": "中文"}')), finish="tool_calls") == last  # fmt: skip
    assert [{"type": "function", "function": TOOL}] == stub.requests[0]["tools"]


async def test_calls_without_an_index_or_an_id_are_told_apart():
    """As some compatible servers send them."""
    whole = [{"tool_calls": [{"function": {"name": name, "arguments": "{}"}}]} for name in ("a", "b")]
    with ModelStub(lambda _: whole) as stub:
        (last,) = await answered(stub.url)
    assert ["a", "b"] == [one.name for one in last.calls]
    assert 2 == len({one.id for one in last.calls})


@pytest.mark.parametrize("broken", [[CUT], ["一半", CUT], ["一半", ERROR], ["一半", NONSENSE]])
async def test_a_stream_that_breaks_raises_our_error(broken):
    """Wherever it breaks; the key is never in the message."""
    with ModelStub(lambda _: broken) as stub, pytest.raises(ModelUnavailableError) as caught:
        await answered(stub.url)
    assert "sk-secret" not in str(caught.value)
    assert ("broke off" in str(caught.value)) == (broken[0] == "一半")


@pytest.mark.parametrize("pieces", [["half of it", END], [" \n"], []])
async def test_half_an_answer_and_none_at_all_are_errors(pieces):
    """A stream that just ends has not said everything."""
    with ModelStub(lambda _: pieces) as stub, pytest.raises(ModelOutputError):
        await answered(stub.url)


@pytest.mark.parametrize("status", [401, 429, 500])
async def test_a_refusal_raises_our_error(status):
    """Before the first piece."""
    with ModelStub(lambda _: [], status=status) as stub, pytest.raises(ModelUnavailableError):
        await answered(stub.url)


async def test_who_leaves_ends_the_request():
    """The server notices that nobody listens any more."""

    def forever(_):
        while True:
            yield "…" * 1000

    with ModelStub(forever) as stub:
        model = OpenAIChat("m", base_url=stub.url)
        async with aclosing(model.stream(QUESTION)) as pieces:
            async for _ in pieces:
                break
        assert await anyio.to_thread.run_sync(stub.left.wait, 10)
        await model.close()


async def test_a_model_that_cannot_stream_answers_in_one_piece():
    """Whoever wrote a `ChatModel` before has a stream too."""

    class Plain(ChatModel):
        async def complete(self, messages, *, max_tokens):
            return f"{messages[-1]['content']}!"

    assert [Spoken("你好!", finish="stop")] == [
        piece async for piece in Plain().stream(QUESTION, tools=[TOOL])
    ]
