"""What memory must not change: what an error says, which messages arrive, what a header names, when it is off."""

import asyncio
import gc
import json
from dataclasses import replace
from urllib.parse import quote

import httpx
import pytest

from pagefile import Memory
from pagefile.errors import StoreUnavailableError
from pagefile.gateway import ADAPTERS
from pagefile.gateway.conversations import Conversations, Who
from tests.acceptance.http_server import listening
from tests.gateway.behind import behind
from tests.gateway.scripts import BIG, READ, ROW, UUID, asked, echo, read_table, reader, said
from tests.gateway.upstream import Fault, Said

URL = "/v1/chat/completions"


def failing_later(status):
    """A model whose answer to what it loaded fails, once."""
    faults = [Fault(status=status)]

    def script(body):
        last, offered = body["messages"][-1], "load_tool_history" in json.dumps(body["tools"])
        if last["role"] == "tool" and "8638" in last["content"] and offered and faults:
            return faults.pop()
        return reader(body) if offered or last != ROW else Said("It is in the table.")

    return script


@pytest.mark.parametrize("status", [429, 500])
def test_a_later_round_that_fails_is_the_answer(tmp_path, status):
    """The client gets the provider's own response, and may send the request again: the turn waits for it."""
    with behind(failing_later(status), tmp_path) as here:
        client = here.openai()
        body = {"model": "gpt-5", "messages": [*read_table(client), ROW], "tools": [READ]}
        failed = httpx.post(here.url + URL, json=body, headers={"authorization": "Bearer sk-vendor"})
        assert (status, "0", "overloaded_error") == (
            failed.status_code,
            failed.headers["retry-after"],
            failed.json()["error"]["type"],
        )
        assert ["done", "open"] == [turn[2] for turn in here.talks()[0]]
        assert "Let me look. It is 8638." == said(asked(client, body["messages"], tools=[READ]))
        assert ["done", "done"] == [turn[2] for turn in here.talks()[0]]


def test_a_later_round_that_is_refused_is_asked_without_memory(tmp_path):
    """What was loaded may be more than a provider takes: the client's own request is not answered with an error."""
    with behind(failing_later(400), tmp_path) as here:
        client = here.openai()
        history = [*read_table(client), ROW]
        raw = client.chat.completions.with_raw_response.create(model="gpt-5", messages=history, tools=[READ])
        assert "bypassed" == raw.headers["x-pagefile-status"]
        assert history == here.upstream.last["messages"]
        ((*_, (_, answer, status)),) = here.talks()
        assert (said(raw.parse()), "done") == (answer, status)


@pytest.mark.parametrize("first", ["A long document. " * 100, ""], ids=["too long", "empty"])
@pytest.mark.parametrize("before", [[], ["What is my name?"]], ids=["at the beginning", "in between"])
def test_what_cannot_be_recorded_still_reaches_the_model(tmp_path, first, before):
    """An exchange that the log refuses passes as the client wrote it, and so does everything before it."""
    history = [
        {"role": role, "content": text}
        for question in (*before, first)
        for role, text in (("user", question), ("assistant", "Noted, and understood."))
    ]
    with behind(echo, tmp_path, max_message_chars=1_000) as here:
        sent = [*history, {"role": "user", "content": "And the second point?"}]
        raw = here.openai().chat.completions.with_raw_response.create(model="gpt-5", messages=sent)
        assert "recorded" == raw.headers["x-pagefile-status"]
        assert sent == here.upstream.last["messages"][-len(sent) :]


NAMES = [("ada", "a trip"), ("张三", "对话一"), ("Zoë", "100%")]


@pytest.mark.parametrize(("user", "conversation"), NAMES)
@pytest.mark.parametrize("encoded", [quote, str.encode], ids=["percent", "utf-8"])
def test_a_header_names_what_it_says(tmp_path, user, conversation, encoded):
    """In UTF-8 or percent-encoded; what an answer's header says can be sent back."""
    with behind(echo, tmp_path) as here:
        headers = {b"x-pagefile-user": encoded(user), b"x-pagefile-conversation": encoded(conversation)}
        pairs = [
            (name, value.encode() if isinstance(value, str) else value) for name, value in headers.items()
        ]
        body = {"model": "gpt-5", "messages": [{"role": "user", "content": "one"}]}
        told = httpx.post(here.url + URL, json=body, headers=pairs).headers["x-pagefile-conversation"]
        again = [pairs[0], (b"x-pagefile-conversation", told.encode())]
        httpx.post(
            here.url + URL, json={**body, "messages": [{"role": "user", "content": "two"}]}, headers=again
        )
        assert ["one", "two"] == [turn.user for turn in here.turns(conversation, user)]


@pytest.mark.parametrize(("mode", "status"), [("OFF", 200), ("Record", 200), ("nothing", 422)])
def test_a_switch_is_understood_or_refused(tmp_path, mode, status):
    """Whoever wants nothing recorded, and misspells it, is told so."""
    with behind(echo, tmp_path) as here:
        body = {"model": "gpt-5", "messages": [{"role": "user", "content": "one"}]}
        answer = httpx.post(here.url + URL, json=body, headers={"x-pagefile-mode": mode})
        assert status == answer.status_code
        assert [body] == here.upstream.bodies if status == 200 else [] == here.upstream.bodies
        assert (mode == "Record") == bool(here.talks())


FORCED = {
    "chat": {"type": "function", "function": {"name": "read"}},
    "messages": {"type": "tool", "name": "read"},
    "responses": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "read"}]},
}


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda one: one.name)
def test_a_model_that_may_call_only_a_tool_of_the_clients_is_offered_none(adapter):
    assert not adapter.takes_tools({"tool_choice": FORCED[adapter.name]})
    assert not adapter.takes_tools({"tool_choice": [1]})
    for free in (
        None,
        "auto",
        "required",
        {"type": "auto"},
        {"type": "any", "disable_parallel_tool_use": True},
    ):
        assert adapter.takes_tools({"tool_choice": free}), free


def test_no_placeholder_where_the_model_has_to_call_something_else(tmp_path):
    with behind(reader, tmp_path) as here:
        client = here.openai()
        history = [*read_table(client), {"role": "user", "content": "Thank you."}]
        asked(client, history, tools=[READ], tool_choice=FORCED["chat"])
        assert BIG in [
            message["content"] for message in here.upstream.last["messages"] if message["role"] == "tool"
        ]


@pytest.mark.parametrize("own", [{}, {"tools": [READ]}], ids=["no tools of its own", "tools of its own"])
def test_the_last_round_still_has_tools(tmp_path, own):
    """A model that loads again and again has to answer in the end; providers refuse a history with calls and no tools."""

    def insists(body):
        told = json.dumps(body)
        if "What is in row" not in told:
            return reader(body)
        offered = "load_tool_history" in json.dumps(body["tools"]) and body.get("tool_choice") != "none"
        return (
            Said(calls=(("load_tool_history", {"uuid": UUID.search(told)[0]}),))
            if offered
            else Said("enough")
        )

    with behind(insists, tmp_path, gateway={"max_rounds": 2}) as here:
        client = here.openai()
        history = read_table(client)
        before = len(here.upstream.requests)
        assert "enough" == said(asked(client, [*history, ROW], **own))
        assert 3 == len(here.upstream.requests) - before
        last = here.upstream.last
        names = [tool["function"]["name"] for tool in last["tools"]]
        assert (["read"] if own else ["load_tool_history", "search_tool_history"]) == names
        assert own or "none" == last["tool_choice"]


async def test_a_recording_that_fails_behind_its_request_is_not_reported_by_asyncio(monkeypatch):
    async def fails(*_):
        await asyncio.sleep(0.01)
        raise StoreUnavailableError("held by another process")

    reported = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    monkeypatch.setattr(Conversations, "_open", fails)
    async with Memory.open("memory://") as memory:
        waiting = asyncio.create_task(Conversations(memory).open(Who(), [], "openai"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        # Its traceback would keep the recording alive.
        del waiting
        await asyncio.sleep(0.05)
    gc.collect()
    assert [] == reported


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/chat/completions", "/v1/v1/chat/completions"])
def test_a_base_url_may_have_its_version_or_not(tmp_path, path):
    """Clients disagree on who adds it: Anthropic's own adds it, the AI SDK's for Anthropic does not."""
    with behind(echo, tmp_path) as here:
        body = {"model": "gpt-5", "messages": [{"role": "user", "content": "one"}]}
        # A key of the vendor's is none of ours, on these paths too.
        answer = httpx.post(here.url + path, json=body, headers={"x-api-key": "sk-x"})
        assert "recorded" == answer.headers["x-pagefile-status"]
        assert ["/v1/chat/completions"] == [path for path, _, _ in here.upstream.requests]


def test_the_providers_url_may_have_its_version_or_not(tmp_path):
    with behind(echo, tmp_path) as here:
        versioned = replace(here.settings.gateway, anthropic_url=f"{here.upstream.url}/v1/")
        with listening(replace(here.settings, gateway=versioned)) as url:
            body = {"model": "claude-opus-4-6", "messages": [{"role": "user", "content": "one"}]}
            assert 200 == httpx.post(f"{url}/v1/messages", json=body).status_code
        assert ["/v1/messages"] == [path for path, _, _ in here.upstream.requests]
