"""Spans of an instrumented agent become turns: sent by OpenTelemetry's own exporter, or read from a collector's file."""

import gzip
import json

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities.instrumentation import Instrumentation
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

from pagefile import Settings
from pagefile.settings import EmbedderSettings

from .http_server import listening

WEATHER = "Sunny, 24 degrees, a light wind from the west."


@pytest.fixture
def service():
    settings = Settings(url="memory://", embedder=EmbedderSettings(name="none"))
    with listening(settings) as url, httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        yield client


class Tracing:
    """An agent's process: its spans go to the service."""

    def __init__(self, service, **options):
        self.exporter = OTLPSpanExporter(endpoint=str(service.base_url.join("/v1/traces")), **options)
        self.provider = TracerProvider()
        self.sent = InMemorySpanExporter()
        for exporter in (self.exporter, self.sent):
            self.provider.add_span_processor(SimpleSpanProcessor(exporter))

    def call(self, told, said, *, conversation="trip", user="ada", under=None, **more):
        """A model call by OpenTelemetry's own convention."""
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": conversation,
            "user.id": user,
            "gen_ai.input.messages": json.dumps(told),
            "gen_ai.output.messages": json.dumps(said),
            **more,
        }
        given = {name: value for name, value in attributes.items() if value is not None}
        with self.provider.get_tracer("test").start_as_current_span("chat", attributes=given):
            pass


def text(role, said):
    return {"role": role, "parts": [{"type": "text", "content": said}]}


def answered(said):
    return [{**text("assistant", said), "finish_reason": "stop"}]


def turns(service, conversation="trip", user="ada"):
    whose = {"user_id": user} if user else {}
    found = service.get("/v1/turns", params={"conversation_id": conversation, **whose})
    return found.raise_for_status().json()["items"]


def test_a_run_with_tools_is_a_turn(service):
    """Two model calls with a tool between them, as they end one after the other."""
    tracing = Tracing(service)
    asked = text("user", "What is the weather in Lisbon?")
    call = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Lisbon"}}
    result = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": WEATHER}]}
    called = {"role": "assistant", "parts": [call]}
    system = text("system", "You are a guide.")
    tracing.call([system, asked], [{**called, "finish_reason": "tool_call"}])
    assert ["open"] == [turn["status"] for turn in turns(service)]
    tracing.call([system, asked, called, result], answered("It is sunny."))
    (turn,) = turns(service)
    assert ("done", asked["parts"][0]["content"], "It is sunny.") == (
        turn["status"],
        turn["user"],
        turn["assistant"],
    )
    assert [("weather", {"city": "Lisbon"}, WEATHER)] == [
        (s["tool"], s["input"], s["result"]) for s in turn["steps"]
    ]


def test_a_history_is_recorded_once(service):
    """The second call tells the first exchange again; an exporter that sends either again changes nothing."""
    tracing = Tracing(service)
    first, second = text("user", "我对花生过敏。"), text("user", "推荐一道菜。")
    noted = text("assistant", "记住了。")
    tracing.call([first], answered("记住了。"))
    tracing.call([first, noted, second], answered("清蒸鲈鱼。"))
    for span in tracing.sent.get_finished_spans() * 2:
        assert SpanExportResult.SUCCESS == tracing.exporter.export([span])
    assert [("我对花生过敏。", "记住了。"), ("推荐一道菜。", "清蒸鲈鱼。")] == [
        (turn["user"], turn["assistant"]) for turn in turns(service)
    ]


def test_the_same_question_again_is_another_turn(service):
    """An agent without a history says the same in two traces."""
    tracing = Tracing(service)
    for _ in range(2):
        tracing.call([text("user", "Any news?")], answered("None."))
    assert 2 == len(turns(service))


def test_whole_history_of_a_conversation_that_is_not_known(service):
    """Tracing was turned on in the middle of a conversation."""
    told = [text("user", "Hi"), text("assistant", "Hello."), text("user", "I live in Porto.")]
    Tracing(service).call(told, answered("Good."))
    assert [("Hi", "Hello."), ("I live in Porto.", "Good.")] == [
        (turn["user"], turn["assistant"]) for turn in turns(service)
    ]


@pytest.mark.parametrize(
    ("attributes", "steps"),
    [
        (
            {
                "gen_ai.prompt.0.role": "system",
                "gen_ai.prompt.0.content": "You are a guide.",
                "gen_ai.prompt.1.role": "user",
                "gen_ai.prompt.1.content": '[{"type": "text", "text": "Where is it warm?"}]',
                "gen_ai.prompt.2.role": "assistant",
                "gen_ai.prompt.2.tool_calls.0.id": "c1",
                "gen_ai.prompt.2.tool_calls.0.name": "weather",
                "gen_ai.prompt.2.tool_calls.0.arguments": '{"city": "Lisbon"}',
                "gen_ai.prompt.3.role": "tool",
                "gen_ai.prompt.3.tool_call_id": "c1",
                "gen_ai.prompt.3.content": WEATHER,
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": "In Lisbon.",
                "traceloop.association.properties.session_id": "trip",
                "traceloop.association.properties.user_id": "ada",
            },
            1,
        ),
        (
            {
                "openinference.span.kind": "LLM",
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.contents.0.message_content.type": "text",
                "llm.input_messages.0.message.contents.0.message_content.text": "Where is it warm?",
                "llm.input_messages.1.message.role": "assistant",
                "llm.input_messages.1.message.tool_calls.0.tool_call.id": "c1",
                "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "weather",
                "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": '{"city": "Lisbon"}',
                "llm.input_messages.2.message.role": "tool",
                "llm.input_messages.2.message.tool_call_id": "c1",
                "llm.input_messages.2.message.content": WEATHER,
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": "In Lisbon.",
                "session.id": "trip",
                "user.id": "ada",
            },
            1,
        ),
    ],
    ids=["OpenLLMetry", "OpenInference"],
)
def test_other_conventions(service, attributes, steps):
    """Instrumentations that write flat attributes."""
    with Tracing(service).provider.get_tracer("test").start_as_current_span("llm", attributes=attributes):
        pass
    (turn,) = turns(service)
    assert ("Where is it warm?", "In Lisbon.", steps) == (turn["user"], turn["assistant"], len(turn["steps"]))
    assert WEATHER == turn["steps"][0]["result"]


@pytest.mark.usefixtures("own_loop")
def test_an_instrumented_agent(service):
    """PydanticAI's own instrumentation of a run that calls a tool."""
    tracing = Tracing(service)

    def model(messages, info):
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("weather", {"city": "Lisbon"})])
        return ModelResponse(parts=[TextPart("It is sunny.")])

    agent = Agent(
        FunctionModel(model),
        system_prompt="You are a guide.",
        capabilities=[Instrumentation(settings=InstrumentationSettings(tracer_provider=tracing.provider))],
    )

    @agent.tool
    def weather(ctx: RunContext[None], city: str) -> str:
        return WEATHER

    with tracing.provider.get_tracer("test").start_as_current_span("request"):
        agent.run_sync("What is the weather in Lisbon?")
    (listed,) = service.get("/v1/memory/conversations").json()["items"]
    (turn,) = turns(service, listed["conversation_id"], None)
    assert ("What is the weather in Lisbon?", "It is sunny.") == (turn["user"], turn["assistant"])
    assert [WEATHER] == [step["result"] for step in turn["steps"]]


def otlp(spans):
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def span(number, attributes, *, trace="aa" * 16, parent=""):
    values = [{"key": name, "value": {"stringValue": value}} for name, value in attributes.items()]
    start = str(1_700_000_000_000_000_000 + number)
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "parentSpanId": parent,
        "startTimeUnixNano": start,
        "attributes": values,
    }


def talk(said, answer, **more):
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([text("user", said)]),
        "gen_ai.output.messages": json.dumps(answered(answer)),
        **more,
    }


def test_json_and_gzip_and_the_spans_around(service):
    """Who it is about stands in a span around; a call inside a tool is asked by a model, and is no turn."""
    outer = span(1, {"session.id": "trip", "user.id": "ada"})
    mine = span(2, talk("Hello", "Hi."), parent=outer["spanId"])
    tool = span(3, {"gen_ai.operation.name": "execute_tool"}, parent=mine["spanId"])
    inner = span(4, talk("Summarise this page", "Done."), parent=tool["spanId"])
    body = gzip.compress(json.dumps(otlp([inner, tool, mine, outer])).encode())
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    answer = service.post("/v1/traces", content=body, headers=headers)
    assert (200, {}) == (answer.status_code, answer.json())
    assert [("Hello", "Hi.")] == [(turn["user"], turn["assistant"]) for turn in turns(service)]
    assert 1 == len(service.get("/v1/memory/conversations").json()["items"])


def test_what_is_refused(service):
    """Another user's conversation is, and told as OTLP tells it; what cannot be read is a 422."""
    mine = talk("Hello", "Hi.", **{"gen_ai.conversation.id": "trip", "user.id": "ada"})
    theirs = {**mine, "user.id": "bob"}
    spans = otlp([span(1, mine), span(2, theirs, trace="bb" * 16)])
    told = service.post("/v1/traces", json=spans).json()
    assert 1 == told["partialSuccess"]["rejectedSpans"]
    protobuf = {"content-type": "application/x-protobuf"}
    for body, headers in ((b"{", None), (b"\xff\xff", protobuf), (b"{}", {"content-encoding": "gzip"})):
        given = {"content-type": "application/json", **(headers or {})}
        assert 422 == service.post("/v1/traces", content=body, headers=given).status_code
    bomb = gzip.compress(bytes(40_000_000))
    answer = service.post(
        "/v1/traces", content=bomb, headers={"content-type": "application/json", "content-encoding": "gzip"}
    )
    assert (422, True) == (answer.status_code, "MAX_EXPORT_BATCH" in answer.text)


def test_spans_that_are_no_model_calls(service):
    """They are accepted: an exporter sends everything that it has."""
    tracing = Tracing(service)
    with tracing.provider.get_tracer("test").start_as_current_span(
        "GET /", attributes={"http.route": "/"}
    ) as one:
        pass
    assert SpanExportResult.SUCCESS == tracing.exporter.export([one])
    assert [] == service.get("/v1/memory/conversations").json()["items"]
