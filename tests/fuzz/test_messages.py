"""Whatever comes as messages is recorded and given back equal, or refused with an error that says what to give; never half."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pagefile import InvalidArgumentError, Memory
from pagefile.shapes.parser import parsed, results_cleaned
from pagefile.shapes.renderer import given_back
from pagefile.shapes.tool_arguments import SPELLINGS, decoded, read_arguments

from .values import FOREIGN, JSONISH, PIECES, TEXT

KEYS = st.sampled_from(
    [
        "role", "content", "type", "text", "tool_calls", "tool_call_id", "id", "function", "name", "arguments", "call_id", "output",
        "input", "source", "image_url", "url", "data", "media_type", "thinking", "signature", "summary", "refusal", "parts",
    ]
)  # fmt: skip
WORDS = st.sampled_from(
    [
        "user", "assistant", "tool", "system", "developer", "function", "message", "text", "input_text", "output_text", "image_url",
        "input_image", "image", "tool_use", "tool_result", "function_call", "function_call_output", "reasoning", "thinking", "base64",
        "data:image/png;base64,AAAA", "AAAA", "call_1", "{}",
    ]
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(WORDS, JSONISH),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=10,
)
MESSAGES = st.lists(st.one_of(st.dictionaries(KEYS, VALUES, max_size=5), JSONISH), min_size=1, max_size=4)


@given(MESSAGES)
@example([{"type": ["function_call_output"], "role": "user", "call_id": "a", "output": "x"}])
@example([{"type": [], "call_id": "a", "arguments": "{}"}])
def test_messages_are_taken_whole_or_refused(messages):
    """What is taken comes back as it would have gone to the provider; tool results without what no database holds."""
    try:
        taken = parsed(messages)
    except InvalidArgumentError:
        return
    wanted = [results_cleaned(json.loads(json.dumps(message, default=list))) for message in messages]
    assert wanted == given_back(taken.messages, taken.steps, taken.blobs)


@given(st.one_of(PIECES, TEXT))
def test_arguments_and_data_are_read_or_kept(text):
    """JSON comes back spelled as it was; anything else is the text itself."""
    value, spelling = read_arguments(text)
    assert spelling is None or text == SPELLINGS[spelling](value)
    assert decoded(text) is None or decoded(text)


@pytest.mark.parametrize("name", FOREIGN)
async def test_foreign_values_in_messages(name):
    """In every place: the log is whole afterwards, whatever was refused."""
    value = FOREIGN[name]
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c")
        for message in (
            {"role": "user", "content": value},
            {"role": "user", "content": [value]},
            {"role": "user", "content": [{"type": "text", "text": value}]},
            {"role": "user", "content": "Hi", "more": value},
            value,
        ):
            try:
                turn = await chat.record(messages=[message, {"role": "assistant", "content": "Yes."}])
            except InvalidArgumentError:
                continue
            back = await chat.messages(turn)
            assert "Yes." == back[-1]["content"]
        await chat.context("Hi")
