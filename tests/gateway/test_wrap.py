"""`pagefile.wrap(client)`: the vendors' own clients with memory and without a server."""

import asyncio
import json
from contextlib import contextmanager
from dataclasses import replace

import anthropic
import openai
import pytest

import pagefile
from pagefile import BlockingMemory, InvalidArgumentError, Memory, Settings, SettingsError
from pagefile.settings import ArchiveSettings, EmbedderSettings, GatewaySettings
from tests.gateway.scripts import BIG, READ, asked, echo, reader, said, streamed
from tests.gateway.upstream import Fault, Said, Upstream

SETTINGS = Settings(
    url="memory://", embedder=EmbedderSettings(name="none"), archive=ArchiveSettings(threshold=2_000)
)


def of(client_class, upstream, **options):
    base = upstream.url if "Anthropic" in client_class.__name__ else f"{upstream.url}/v1"
    return client_class(base_url=base, api_key="sk-vendor", max_retries=0, **options)


@contextmanager
def wrapped(client_class, script, **options):
    with (
        Upstream(script) as upstream,
        BlockingMemory.open(settings=SETTINGS) as memory,
        of(client_class, upstream) as client,
    ):
        yield pagefile.wrap(client, memory, **options), memory, upstream


@pytest.mark.parametrize("ask", [asked, streamed])
def test_a_conversation_of_openai(ask):
    with wrapped(openai.OpenAI, echo, user_id="ada", conversation_id="c") as (client, memory, _):
        messages = [{"role": "user", "content": "one"}]
        for number in range(1, 4):
            assert f"answer {number}" == said(ask(client, messages))
            messages += [
                {"role": "assistant", "content": f"answer {number}"},
                {"role": "user", "content": f"And {number}?"},
            ]
        turns = memory.conversation("c", user_id="ada").turns()
        assert [("one", "done"), ("And 1?", "done"), ("And 2?", "done")] == [
            (turn.user, turn.status) for turn in turns
        ]


@pytest.mark.parametrize("ask", [asked, streamed])
def test_our_tools_are_answered_in_between(ask):
    with wrapped(openai.OpenAI, reader) as (client, _, upstream):
        messages = [{"role": "user", "content": "Read the table."}]
        call = ask(client, messages, tools=[READ]).choices[0].message
        messages += [json.loads(call.model_dump_json(exclude_none=True))]
        messages += [{"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": BIG}]
        assert "read it" == said(ask(client, messages, tools=[READ]))
        messages += [
            {"role": "assistant", "content": "read it"},
            {"role": "user", "content": "What is in row 1234?"},
        ]
        assert "Let me look. It is 8638." == said(ask(client, messages, tools=[READ]))
        assert BIG not in json.dumps(upstream.last)


async def test_asynchronous_clients():
    """On the memory's own event loop: chat, responses and messages, streamed and not, tool runners included."""
    with Upstream(_three) as upstream:
        async with Memory.open(settings=SETTINGS) as memory:
            async with of(openai.AsyncOpenAI, upstream) as plain:
                client = pagefile.wrap(plain, memory, user_id="ada")
                response = await client.responses.create(model="gpt-5", input="one")
                assert "heard" == response.output_text
                async with client.chat.completions.stream(
                    model="gpt-5", messages=[{"role": "user", "content": "two"}]
                ) as stream:
                    assert "heard" == (await stream.get_final_completion()).choices[0].message.content
            async with of(anthropic.AsyncAnthropic, upstream) as plain:
                claude = pagefile.wrap(plain, memory, user_id="ada")
                async with claude.messages.stream(
                    model="claude-opus-4-6", max_tokens=100, messages=[{"role": "user", "content": "three"}]
                ) as stream:
                    assert "heard" == await stream.get_final_text()
            found = [turn.user for turn in await memory.turns(user_id="ada")]
            assert ["one", "three", "two"] == sorted(found)


def _three(body):
    return Said("heard")


def test_the_tool_runner_of_anthropic():
    """The client's own loop runs its tools; the turn in the log has them."""

    @anthropic.beta_tool
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"Rain in {city}."

    def script(body):
        results = "tool_result" in json.dumps(body["messages"][-1])
        return Said("It rains.") if results else Said(calls=(("weather", {"city": "Bergen"}),))

    with wrapped(anthropic.Anthropic, script, conversation_id="c") as (client, memory, _):
        runner = client.beta.messages.tool_runner(
            model="claude-opus-4-6",
            max_tokens=100,
            tools=[weather],
            messages=[{"role": "user", "content": "Weather?"}],
        )
        assert "It rains." == runner.until_done().content[0].text
        (turn,) = memory.conversation("c").turns()
        assert ("done", "It rains.", ["Rain in Bergen."]) == (
            turn.status,
            turn.assistant,
            [step.result for step in turn.steps],
        )


def test_retries_of_the_client_cost_no_turn():
    faults = [Fault(status=500), Fault(status=429)]

    def script(_):
        return faults.pop() if faults else Said("fine")

    with wrapped(openai.OpenAI, script, conversation_id="c") as (client, memory, _):
        assert "fine" == said(asked(client.with_options(max_retries=3), [{"role": "user", "content": "one"}]))
        assert ["done"] == [turn.status for turn in memory.conversation("c").turns()]


def test_a_stream_that_is_left_is_marked():
    with wrapped(openai.OpenAI, lambda _: Said("word " * 50_000), conversation_id="c") as (client, memory, _):
        with asked(client, [{"role": "user", "content": "one"}], stream=True) as stream:
            [*zip(range(5), stream, strict=False)]
        (turn,) = memory.conversation("c").turns()
        assert "aborted" == turn.status


def test_other_requests_pass_and_other_objects_are_refused():
    with wrapped(openai.OpenAI, echo) as (client, memory, _):
        assert ["stub"] == [model.id for model in client.models.list()]
        with pytest.raises(SettingsError, match="OpenAI"):
            pagefile.wrap(object(), memory)
        for name in ("agent.db", None):
            with pytest.raises(SettingsError, match=r"an open memory, not .*BlockingMemory.open"):
                pagefile.wrap(openai.OpenAI(api_key="sk-x"), name)
        with pytest.raises(SettingsError, match="wrapped already"):
            pagefile.wrap(client.with_options(timeout=3), memory)
        with pytest.raises(SettingsError, match="mode"):
            pagefile.wrap(openai.OpenAI(api_key="sk-x"), memory, mode="dry")


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ({"user_id": ""}, "user_id is empty"),
        ({"user_id": 42}, r"user_id must be text, not int: pass str"),
        ({"tenant": " "}, "tenant is empty"),
        ({"conversation_id": ""}, "conversation id is empty"),
    ],
)
def test_names_that_no_memory_can_have_are_refused(named, says):
    """Not at the first call, which would run without memory, or with that of nobody."""
    with (
        BlockingMemory.open(settings=SETTINGS) as memory,
        openai.OpenAI(api_key="sk-x") as client,
        pytest.raises(InvalidArgumentError, match=says),
    ):
        pagefile.wrap(client, memory, **named)


async def test_a_synchronous_client_of_a_memory_whose_loop_is_not_known_is_refused():
    """No call of it could reach the memory. Where the loop is known, calls from other threads do."""
    async with Memory.open(settings=SETTINGS) as memory:
        with Upstream(echo) as upstream, of(openai.OpenAI, upstream) as plain:
            with pytest.raises(SettingsError, match=r"event loop .*BlockingMemory"):
                await asyncio.to_thread(pagefile.wrap, plain, memory)
            raw = pagefile.wrap(plain, memory).chat.completions.with_raw_response
            messages = [{"role": "user", "content": "one"}]
            answer = await asyncio.to_thread(raw.create, model="gpt-5", messages=messages)
            assert "recorded" == answer.headers["x-pagefile-status"]


async def test_an_asynchronous_client_takes_a_blocking_memory():
    with Upstream(echo) as upstream, BlockingMemory.open(settings=SETTINGS) as memory:
        async with of(openai.AsyncOpenAI, upstream) as plain:
            raw = pagefile.wrap(plain, memory).chat.completions.with_raw_response
            answer = await raw.create(model="gpt-5", messages=[{"role": "user", "content": "one"}])
            assert "recorded" == answer.headers["x-pagefile-status"]


def test_a_closed_memory_costs_no_answer_and_says_how_to_open_one(caplog):
    with Upstream(echo) as upstream, of(openai.OpenAI, upstream) as plain:
        with BlockingMemory.open(settings=SETTINGS) as memory:
            client = pagefile.wrap(plain, memory)
        assert "answer 1" == said(asked(client, [{"role": "user", "content": "one"}]))
    assert "`BlockingMemory.open(…)`" in caplog.text
    assert "`Memory.open(…)`" not in caplog.text


def test_a_request_without_words_passes_and_the_log_says_why_in_a_line(caplog):
    """What a client got wrong is told in words, without a traceback that nobody can use."""
    with wrapped(openai.OpenAI, echo, user_id="ada") as (client, _, upstream):
        head = client.chat.completions.with_raw_response.create(
            model="gpt-5", messages=[{"role": "user", "content": None}]
        ).headers
        assert "bypassed" == head["x-pagefile-status"]
        assert [None] == [message["content"] for message in upstream.last["messages"]]
    (record,) = [one for one in caplog.records if one.name == "pagefile" and one.levelname == "ERROR"]
    assert record.exc_info is None
    assert record.getMessage().startswith("pagefile.wrap: preparing a request failed; the run continues")
    assert record.getMessage().endswith("messages must contain at least one message that is not empty.")


async def test_a_closed_memory_of_an_event_loop_says_how_to_open_one(caplog):
    with Upstream(echo) as upstream:
        async with of(openai.AsyncOpenAI, upstream) as plain:
            async with Memory.open(settings=SETTINGS) as memory:
                client = pagefile.wrap(plain, memory)
            answer = await client.chat.completions.create(
                model="gpt-5", messages=[{"role": "user", "content": "one"}]
            )
            assert "answer 1" == answer.choices[0].message.content
    assert "`Memory.open(…)`" in caplog.text


def test_a_client_of_another_protocol_is_refused():
    """Its requests would pass without memory, and nothing would say so."""
    with (
        BlockingMemory.open(settings=SETTINGS) as memory,
        anthropic.AnthropicVertex(region="x", project_id="p", access_token="t") as client,
        pytest.raises(SettingsError, match="not AnthropicVertex"),
    ):
        pagefile.wrap(client, memory)


def test_a_request_is_switched_off_by_its_header():
    with wrapped(openai.OpenAI, echo, user_id="ada") as (client, memory, upstream):
        messages = [{"role": "user", "content": "one"}]
        asked(client, messages, extra_headers={"x-pagefile-mode": "off"})
        assert messages == upstream.last["messages"]
        assert [] == list(memory.conversations())


def test_the_setting_holds_where_wrap_says_nothing():
    settings = replace(SETTINGS, gateway=GatewaySettings(mode="record"))
    with (
        Upstream(echo) as upstream,
        BlockingMemory.open(settings=settings) as memory,
        of(openai.OpenAI, upstream) as plain,
    ):
        messages = [{"role": "user", "content": "one"}]
        raw = pagefile.wrap(plain, memory).chat.completions.with_raw_response
        told = raw.create(model="gpt-5", messages=messages).headers
        assert ("recorded", messages) == (told["x-pagefile-status"], upstream.last["messages"])
