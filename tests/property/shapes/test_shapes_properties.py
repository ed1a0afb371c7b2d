"""What must hold for every message that the vendors' types allow."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile.content import message_from, message_json
from pagefile.shapes.parser import Parsed, parsed
from pagefile.shapes.renderer import given_back, rendered

from .vendors import TYPES, conversations, is_valid, json_of

SHAPES = sorted(TYPES)


def stored(found: Parsed) -> tuple:
    """The messages as a database gives them back."""
    return tuple(message_from(json.loads(json.dumps(message_json(message)))) for message in found.messages)


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
@settings(max_examples=60)
def test_what_came_is_given_back_as_equal_json(shape, data):
    """parse, store and give back is the identity, unknown parts and fields included."""
    messages = data.draw(conversations(shape))
    found = parsed(messages, shape)
    again = given_back(stored(found), found.steps, found.blobs)
    assert json_of(messages) == json_of(again)


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_it_is_given_back_whatever_shape_it_was_taken_for(shape, data):
    """Where the shape is detected, a wrong guess loses nothing."""
    messages = [data.draw(conversations(shape))[0]]
    found = parsed(messages)
    assert json_of(messages) == json_of(given_back(stored(found), found.steps, found.blobs))


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_a_turn_that_grows_is_given_back_too(shape, data):
    """Messages that are added later answer calls of those before."""
    messages = data.draw(conversations(shape))
    cut = data.draw(st.integers(0, len(messages)))
    first = parsed(messages[:cut], shape)
    more = parsed(messages[cut:], shape, steps=first.steps, before=first.messages)
    known = [more.results.get(number, step) for number, step in enumerate(first.steps)]
    blobs = {**first.blobs, **more.blobs}
    again = given_back([*first.messages, *more.messages], [*known, *more.steps], blobs)
    assert json_of(messages) == json_of(again)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("target", SHAPES)
@given(data=st.data())
@settings(max_examples=25)
def test_every_provider_can_be_given_every_turn(shape, target, data):
    """Cross-rendered messages are of the provider's own types, and every call has its result behind it."""
    messages = data.draw(conversations(shape))
    found = parsed(messages, shape)
    shown = rendered(found.messages, found.steps, found.blobs, target)
    if shape != target:
        assert all(is_valid(target, message) for message in shown)
    PAIRED[target](shown)


def _chat_is_paired(messages):
    waiting = []
    for message in messages:
        if message["role"] in {"tool", "function"}:
            assert message.get("tool_call_id") is None or message["tool_call_id"] in waiting
            waiting = [call for call in waiting if call != message.get("tool_call_id")]
            continue
        assert not waiting, "a call is not followed by its result"
        waiting = [
            call["id"] for call in message.get("tool_calls") or () if call["type"] in {"function", "custom"}
        ]
    assert not waiting


def _blocks(message, kind):
    content = message["content"]
    return [] if isinstance(content, str) else [block for block in content if block["type"] == kind]


def _anthropic_is_paired(messages):
    waiting: set = set()
    for before, message in zip([None, *messages], messages, strict=False):
        assert message["content"]
        assert before is None or before["role"] != message["role"]
        results = {block["tool_use_id"] for block in _blocks(message, "tool_result")}
        assert results == waiting
        waiting = {block["id"] for block in _blocks(message, "tool_use")}
    assert not waiting


def _responses_are_paired(items):
    kinds = {"function_call", "custom_tool_call"}
    calls = [item["call_id"] for item in items if item.get("type") in kinds]
    results = [
        item.get("call_id") for item in items if item.get("type") in {f"{kind}_output" for kind in kinds}
    ]
    assert sorted(calls) == sorted(filter(None, results))


PAIRED = {"openai": _chat_is_paired, "anthropic": _anthropic_is_paired, "responses": _responses_are_paired}
