"""Whatever a log holds: the providers' own validators take the window, in each of their shapes."""

import re
from datetime import UTC, datetime

import pytest
from anthropic.types import MessageParam
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from pagefile.content import Media, Message, Other, Reasoning, Text, ToolCall, ToolResult, media_in
from pagefile.errors import BudgetError
from pagefile.records import Scope, Step, Turn
from pagefile.shapes.call_order import prepared
from pagefile.shapes.media import note
from pagefile.shapes.renderer import written
from pagefile.shapes.skeleton import Filling
from pagefile.shapes.steps import shown_steps
from pagefile.shapes.tool_arguments import compact
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD, open_counter
from pagefile.window.budget import Budget
from pagefile.window.candidates import Candidate, Form, ShownTurn
from pagefile.window.compile import Layout, compile_window
from pagefile.window.forms import Leaving, running_turn, turn_forms
from pagefile.window.measure import layout_tokens, measured_step, turn_tokens
from pagefile.window.parts import anthropic, chat, parts_from, parts_json, responses

COUNTER = open_counter()
COUNT = COUNTER.count
MOMENT = datetime(2026, 1, 2, tzinfo=UTC)
#: How an image or a file is named where it cannot be shown.
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NOTE = re.compile(r"\[(image|audio|file)[:\]]")
MEDIA_BLOCKS = {
    "image_url", "input_audio", "file", "input_image", "input_file", "image", "document",
}  # fmt: skip
COUNTED = (
    "name", "arguments", "text", "thinking", "content", "output", "summary", "function", "tool_calls",
    "signature", "data", "encrypted_content",
)  # fmt: skip
CHAT = TypeAdapter(list[ChatCompletionMessageParam])
ANTHROPIC = TypeAdapter(list[MessageParam])
RESPONSES = TypeAdapter(list[ResponseInputItemParam])

SHAPES = ["openai", "anthropic", "responses"]
TEXT = st.sampled_from(["", " ", "\n", "hi", "血压高了。", "x" * 40, "a\nb"])
INPUT = st.sampled_from([{}, {"q": "血压"}, ["a"], "text", None, 3])
STEP = st.builds(
    Step,
    st.sampled_from(["search", "load_tool_history", "mcp.查"]),
    INPUT,
    st.sampled_from(["", "found", "long " * 60]),
    st.sampled_from(["c1", "c1", "c 2", "toolu_1", "long" * 20]),
    page=st.sampled_from([None, None, "123e4567-e89b-42d3-a456-426614174000"]),
    page_chars=st.just(300),
)
BLOBS = {"a1": b"GIF89a"}
PICTURES = st.builds(
    Media,
    st.just("image"),
    st.just("image/png"),
    url=st.sampled_from([None, "https://example.org/a.png"]),
    blob=st.sampled_from(["a1", None]),
    name=st.sampled_from(["a.png", None]),
    size=st.sampled_from([6, 0]),
    tokens=st.sampled_from([85, 765]),
)
FILES = st.builds(
    Media,
    st.sampled_from(["file", "audio"]),
    st.sampled_from(["application/pdf", "audio/wav", "text/plain", ""]),
    url=st.sampled_from([None, "https://example.org/a.pdf", "openai:file-1"]),
    blob=st.sampled_from(["a1", None]),
    name=st.just("a.pdf"),
    tokens=st.just(1500),
)
MEDIA = st.one_of(PICTURES, FILES)
#: Thoughts, and how they are sealed; the last one is what a stream leaves that broke off.
THOUGHTS = [
    Reasoning("hm", {"signature": "s", "id": "rs_1"}),
    Reasoning("", {"signature": "s", "id": "rs_1"}),
    Reasoning("", {"type": "redacted_thinking", "data": "a b c", "id": "rs_2"}),
    Reasoning("hm", {"signature": "s", "id": "rs_3", "encrypted_content": "d e f"}),
    Reasoning("hm", {"signature": ""}),
]
OTHER = st.builds(Other, st.just({"type": "hologram", "of": "a cat"}))


@st.composite
def layouts(draw, steps: int, *, shape: str | None = None, unknown: bool = False):
    """Messages in any order: calls without results, results without calls, somebody who speaks between them."""
    number = st.integers(0, max(0, steps - 1))
    calls = [st.builds(ToolCall, number)] if steps else []
    results = [st.builds(ToolResult, number, st.lists(MEDIA, max_size=2).map(tuple))] if steps else []
    shape = shape or draw(st.sampled_from(SHAPES))
    thoughts = st.sampled_from(THOUGHTS)
    said = [st.builds(Text, TEXT)]
    given = [MEDIA, OTHER] if unknown else [MEDIA]
    messages = st.one_of(
        st.builds(Message, st.just("user"), _parts(*said, *given), st.just(shape)),
        st.builds(Message, st.just("assistant"), _parts(*said, *calls, thoughts), st.just(shape)),
        st.builds(Message, st.just("system"), _parts(*said), st.just(shape)),
        *([st.builds(Message, st.just("tool"), _parts(*results), st.just(shape))] if results else []),
        *([st.builds(Message, st.just("user"), _parts(*results, *said), st.just(shape))] if results else []),
    )
    return tuple(draw(st.lists(messages, max_size=7)))


def _parts(*kinds):
    return st.lists(st.one_of(*kinds), min_size=1, max_size=3).map(tuple)


@st.composite
def turns(draw, number: int, **kinds):
    user, assistant = (draw(st.one_of(st.none(), TEXT)) for _ in range(2))
    steps = tuple(measured_step(step, COUNT) for step in draw(st.lists(STEP, max_size=3)))
    layout = draw(st.one_of(st.none(), layouts(len(steps), **kinds)))
    mine, theirs = COUNT(user or ""), COUNT(assistant or "")
    return Turn(
        f"t{number}", Scope(conversation="c"), number, "done", user, assistant, steps, MOMENT, MOMENT, mine, theirs,
        turn_tokens(user, mine, assistant, theirs, steps), COUNTER.name, layout=layout,
    )  # fmt: skip


@st.composite
def candidates(draw, **kinds):
    """Turns of a log, perhaps a running one, memory and instructions."""
    found = [
        Candidate(turn.id, "recent", turn_forms(turn, {}, {}, COUNT), turn.seq)
        for turn in (draw(turns(number, **kinds)) for number in range(1, draw(st.integers(1, 4))))
    ]
    if draw(st.booleans()):
        found += running_turn(draw(turns(9, **kinds)), {}, Leaving({}), COUNT)
    else:
        asked = Form(MESSAGE_OVERHEAD + COUNT("now?"), ShownTurn("", "current", "now?"))
        found.append(Candidate("current", "current", (asked,)))
    if draw(st.booleans()):
        found.append(Candidate("fact", "facts", (Form(COUNT("- tea"), text="- tea"),)))
        found.append(Candidate("i", "instructions", (Form(COUNT("be kind"), text="be kind"),)))
    return found


def compiled_or_none(offered, tokens, placement="tail"):
    try:
        return compile_window(offered, Budget(tokens), COUNT, Layout(placement, "zh"))
    except BudgetError:
        return None


BUDGETS = st.sampled_from([60, 150, 400, 4000])


@settings(max_examples=30)
@given(candidates(), BUDGETS, st.sampled_from(["tail", "head"]))
def test_openai_chat_takes_every_window(offered, tokens, placement):
    """Its types, its roles, its pairs of call and result, and nothing empty."""
    compiled = compiled_or_none(offered, tokens, placement)
    if compiled is None:
        return
    CHAT.validate_python(compiled.messages)
    waiting = []
    for message in compiled.messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
            continue
        assert waiting == []
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        names = [call["function"]["name"] for call in message.get("tool_calls", ())]
        assert all(NAME.fullmatch(name) for name in names)
        assert all(len(call_id) <= 40 for call_id in waiting)
        assert len(waiting) == len(set(waiting))
        assert message["content"] or waiting
    assert waiting == []


@settings(max_examples=30)
@given(candidates(), BUDGETS)
def test_anthropic_takes_every_window(offered, tokens):
    """Roles alternate and begin with the user's; every call is answered first thing in the next message; ids are unique."""
    compiled = compiled_or_none(offered, tokens)
    if compiled is None:
        return
    _, messages = anthropic(compiled.parts)
    ANTHROPIC.validate_python(messages)
    roles = [message["role"] for message in messages]
    assert roles == [("user", "assistant")[number % 2] for number in range(len(roles))]
    waiting, seen = set(), set()
    for message in messages:
        blocks = message["content"]
        answers = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert [block["type"] for block in blocks[: len(answers)]] == ["tool_result"] * len(answers)
        assert sorted(answers) == sorted(waiting)
        assert blocks
        assert all(block["text"].strip() for block in blocks if block["type"] == "text")
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert all(block.get("signature") for block in blocks if block["type"] == "thinking")
        assert all(NAME.fullmatch(block["name"]) for block in blocks if block["type"] == "tool_use")
        assert message["role"] == "user" or "thinking" not in blocks[-1]["type"]
        assert len(set(calls)) == len(calls)
        assert not seen & set(calls)
        waiting = set(calls)
        seen |= waiting
    assert waiting == set()


@settings(max_examples=30)
@given(candidates(), BUDGETS)
def test_openai_responses_takes_every_window(offered, tokens):
    """Its types; every call has one output, behind it; nothing empty."""
    compiled = compiled_or_none(offered, tokens)
    if compiled is None:
        return
    _, items = responses(compiled.parts)
    RESPONSES.validate_python(items)
    calls, outputs = [], []
    for item in items:
        if item.get("type") == "function_call":
            calls.append(item["call_id"])
            assert NAME.fullmatch(item["name"])
        elif item.get("type") == "function_call_output":
            assert item["call_id"] in calls
            outputs.append(item["call_id"])
        elif item.get("type") != "reasoning":
            assert item["content"]
    assert len(set(calls)) == len(calls)
    assert sorted(calls) == sorted(outputs)


@settings(max_examples=30)
@given(candidates(shape="openai", unknown=True), BUDGETS)
def test_the_count_is_that_of_the_chat_messages(offered, tokens):
    """Whatever the layout of a turn: what the window says is what its messages cost, and within the budget."""
    compiled = compiled_or_none(offered, tokens)
    if compiled is None:
        return
    messages = compiled.with_blobs(BLOBS).messages
    shown = [*compiled.parts.turns, *filter(None, [compiled.parts.current])]
    media = (one for turn in shown for one in media_in(turn.messages))
    cost = MESSAGE_OVERHEAD * len(messages) + sent_cost(messages, media, COUNT)
    assert compiled.tokens == REPLY_OVERHEAD + cost
    assert compiled.tokens <= tokens


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("running", [False, True])
@settings(max_examples=30)
@given(data=st.data())
def test_a_turn_costs_what_is_sent_of_it_in_the_shape_it_came_in(shape, running, data):
    """Images in results, several calls in one message, text between them, thoughts in the running turn: each counted as it is sent."""
    steps = [measured_step(step, words) for step in data.draw(st.lists(STEP, max_size=3))]
    layout = prepared(data.draw(layouts(len(steps), shape=shape)))
    shown = Filling(shown_steps(steps, {}), BLOBS)
    sent = written(layout, shown, shape, reasoning=running)
    frames = len(written(layout, shown, "openai"))
    counts = {number: (step.call_tokens, step.result_tokens) for number, step in enumerate(steps)}
    cost = layout_tokens(layout, counts, words, running=running)
    assert cost == MESSAGE_OVERHEAD * frames + sent_cost(sent, media_in(layout), words)


def words(text):
    """Joined by a line break, texts cost what they cost apart."""
    return len(text.split())


def sent_cost(value, media, count):
    """Everything in a request that is counted, wherever the shape has it; a block of an image has the estimate of the next medium."""
    if isinstance(value, list):
        return sum(sent_cost(one, media, count) for one in value)
    if isinstance(value, str):
        if NOTE.match(value):
            medium = next(media)
            if value != note(medium):
                assert value == f"{note(medium)}\n{BLOBS['a1'].decode()}"
                assert medium.media_type == "text/plain"
                return medium.tokens
        return count(value)
    kind = value.get("type")
    if kind in MEDIA_BLOCKS:
        return next(media).tokens
    if kind == "hologram":
        return count(compact(value))
    if kind == "tool_use":
        given = value["input"]
        given = given["input"] if given.keys() == {"input"} else given
        return count(value["name"]) + count(compact(given))
    return sum(sent_cost(value[name], media, count) for name in COUNTED if value.get(name))


@given(candidates(), BUDGETS)
def test_parts_come_back_from_json_and_render_the_same(offered, tokens):
    """What crosses HTTP is the window, not a picture of it."""
    compiled = compiled_or_none(offered, tokens)
    if compiled is None:
        return
    compiled = compiled.with_blobs(BLOBS)
    again = parts_from(parts_json(compiled.parts))
    assert again == compiled.parts
    assert chat(again) == (compiled.messages, compiled.prefix_messages)
