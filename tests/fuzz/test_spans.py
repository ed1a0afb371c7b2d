"""Spans of any shape, sent or read from a file: recorded as turns, or refused with an error of ours."""

import json

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pagefile import Memory, PagefileError
from pagefile.integrations.spans import SpanRecorder, model_calls, spans_of, take_spans

from .values import JSONISH, ODD, PIECES, TEXT

#: What is written as JSON: text that has half a character in it comes as an escape.
JSON = JSONISH.map(lambda value: json.loads(json.dumps(value, default=str, skipkeys=True)))
#: A message, a part of one, or a call, with any of the fields that are read.
INSIDE = st.recursive(
    st.one_of(JSON, st.sampled_from(["user", "assistant", "tool", "text", "tool_call", "tool_call_response", "blob", "reasoning"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["role", "parts", "content", "type", "id", "name", "arguments", "response", "mime_type", "uri", "text"]),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=12,
)  # fmt: skip
#: Digits that `int` refuses are digits, too.
NUMBERS = st.sampled_from(["0", "1", "01", "²", "٣", "-1", "9" * 19, "9" * 400, ""])
NAMES = st.one_of(
    st.sampled_from(
        [
            "gen_ai.operation.name", "gen_ai.conversation.id", "user.id", "gen_ai.input.messages", "gen_ai.output.messages",
            "openinference.span.kind",
        ]
    ),
    st.tuples(
        st.sampled_from(["gen_ai.prompt", "gen_ai.completion", "llm.input_messages", "llm.output_messages"]),
        NUMBERS,
        st.sampled_from(["role", "content", "message.role", "message.content", "tool_calls.0.name", "message.tool_calls.².x", ""]),
    ).map(".".join),
    TEXT,
)  # fmt: skip
VALUES = st.one_of(
    INSIDE.map(lambda value: {"stringValue": json.dumps(value)}),
    st.sampled_from(["user", "assistant", "tool", "chat", "invoke_agent", "LLM", "你好"]).map(
        lambda text: {"stringValue": text}
    ),
    NUMBERS.map(lambda number: {"intValue": number}),
    st.dictionaries(
        st.sampled_from(["stringValue", "arrayValue", "kvlistValue", "values"]), INSIDE, max_size=2
    ),
    JSON,
)
ATTRIBUTES = st.lists(st.fixed_dictionaries({"key": NAMES, "value": VALUES}), max_size=6)
SPANS = st.fixed_dictionaries(
    {"attributes": st.one_of(ATTRIBUTES, JSON)},
    optional={
        "traceId": st.one_of(st.sampled_from(["aa", "bb"]), JSON),
        "spanId": st.one_of(st.sampled_from(["1", "2"]), JSON),
        "parentSpanId": st.one_of(st.sampled_from(["1", "2"]), JSON),
        "startTimeUnixNano": st.one_of(NUMBERS, JSON),
        "events": st.one_of(st.lists(st.fixed_dictionaries({"attributes": ATTRIBUTES}), max_size=2), JSON),
    },
)


def request(spans):
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def call(said, **more):
    told = json.dumps([{"role": "user", "parts": [{"type": "text", "content": said}]}])
    answered = json.dumps([{"role": "assistant", "content": "yes"}])
    values = {"gen_ai.input.messages": told, "gen_ai.output.messages": answered}
    attributes = [{"key": name, "value": {"stringValue": text}} for name, text in values.items()]
    return {"traceId": "aa", "spanId": "1", "attributes": attributes, **more}


async def recorded(data):
    """Every call is counted; none is lost without a word."""
    calls = list(model_calls(spans_of(data)))
    async with Memory.open("memory://", embedder="none") as memory:
        counts = await SpanRecorder(memory).record(calls, user="ada")
    assert len(calls) == counts.total()
    return counts


@settings(max_examples=150)
@given(st.lists(SPANS, max_size=3).map(request))
@example(request([call("at the end of time", startTimeUnixNano="9" * 19)]))
@example(request([call("\0\ud800")]))
@example(request([call(ODD)]))
@example(request([{"attributes": [{"key": "gen_ai.prompt.².role", "value": {"stringValue": "user"}}]}]))
@example(request([call("a span within itself", parentSpanId="1")]))
def test_any_spans_are_recorded_or_rejected(data):
    """Nothing raises: what cannot be recorded is counted as rejected."""
    anyio.run(recorded, data)


def test_a_call_is_recorded():
    """What the others try to break."""
    assert {"turn": 1} == anyio.run(recorded, request([call("hello")]))


@pytest.mark.parametrize("deep", ["[" * 100_000, "[" * 3_000 + "]" * 3_000])
def test_messages_that_are_too_deep_are_none(deep):
    """The messages are JSON in a string, which no limit of the request has seen."""
    data = request(
        [{"attributes": [{"key": "gen_ai.input.messages", "value": {"stringValue": deep}}], "spanId": "1"}]
    )
    assert {} == anyio.run(recorded, data)


async def taken(path):
    async with Memory.open("memory://", embedder="none") as memory:
        return await take_spans(memory, path, "ada")


@settings(max_examples=60)
@given(
    st.lists(
        st.one_of(PIECES, JSON.map(json.dumps), st.lists(SPANS, max_size=2).map(request).map(json.dumps)),
        max_size=3,
    )
)
def test_any_file_is_read_or_refused(tmp_path_factory, lines):
    """Our own error, or what is in it."""
    path = tmp_path_factory.mktemp("spans") / "spans.jsonl"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    try:
        counts = anyio.run(taken, path)
    except PagefileError:
        return
    assert counts.keys() <= {"turn", "known", "rejected"}
