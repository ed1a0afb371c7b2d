"""Anthropic's messages through the gateway, with Anthropic's own client."""

import json
import re
from contextlib import nullcontext

import anthropic
import pytest

from tests.acceptance.http_server import listening
from tests.gateway.behind import Behind, behind
from tests.gateway.upstream import Fault, Said

BIG = "\n".join(f"row {number}: value {number * 7}" for number in range(2_000))
READ = {"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MARK = {"type": "ephemeral"}


def echo(body):
    return Said(f"answer {sum(message['role'] == 'user' for message in body['messages'])}")


def asked(client, messages, **options):
    return client.messages.create(model="claude-opus-4-6", max_tokens=1000, messages=messages, **options)


def streamed(client, messages, **options):
    with client.messages.stream(
        model="claude-opus-4-6", max_tokens=1000, messages=messages, **options
    ) as stream:
        for _ in stream:
            pass
        return stream.get_final_message()


def said(message):
    return "".join(block.text for block in message.content if block.type == "text")


def user(text):
    return {"role": "user", "content": text}


@pytest.mark.parametrize("ask", [asked, streamed])
def test_one_conversation_stays_one(tmp_path, ask):
    """Marks for the prompt cache move through the history, and each turn is in the log once."""
    with behind(echo, tmp_path) as here:
        client, messages = here.anthropic(), [user("one")]
        for number in range(1, 5):
            last = messages[-1]
            marked = [
                *messages[:-1],
                user([{"type": "text", "text": last["content"], "cache_control": MARK}]),
            ]
            message = ask(client, marked, system="Be brief.", metadata={"user_id": "ada"})
            assert f"answer {number}" == said(message)
            messages += [{"role": "assistant", "content": said(message)}, user(f"And {number}?")]
        talks = here.talks()
        assert [["one", "And 1?", "And 2?", "And 3?"]] == [[turn[0] for turn in talk] for talk in talks]
        assert {"done"} == {turn[2] for turn in talks[0]}
        assert "Bearer sk-ant-vendor" == here.upstream.requests[-1][1]["authorization"]
        # The history before the question is marked as well, and the client's own marks are where they were.
        sent = here.upstream.last["messages"]
        assert MARK == sent[-1]["content"][-1]["cache_control"]


def reader(body):
    """A model that thinks, reads a table, and loads it again when it is asked about a row."""
    last = body["messages"][-1]
    results = isinstance(last["content"], list) and any(
        block["type"] == "tool_result" for block in last["content"]
    )
    told = json.dumps(body["messages"])
    if "row 1234" in told.split("What is in")[-1] and "What is in" in told:
        if not results:
            call = ("load_tool_history", {"uuid": UUID.search(told)[0], "query": "row 1234"})
            return Said("Let me look.", calls=(call,), thinking="It left the window.")
        if "8638" in json.dumps(last):
            return Said(calls=(("read", {"path": "again"}),), thinking="Now again.")
        return Said("It is 8638.")
    return Said("read it") if results else Said(calls=(("read", {"path": "table"}),), thinking="I read.")


@pytest.mark.parametrize("restarted", [False, True], ids=["", "restarted"])
@pytest.mark.parametrize("ask", [asked, streamed])
def test_hidden_rounds_are_unfolded_for_the_model(tmp_path, ask, restarted):
    """The client sees one answer; with its tool results, the model gets back exactly what it said and was told, signatures too."""
    with behind(reader, tmp_path) as here:
        client = here.anthropic()

        def answered(messages, text):
            first = ask(client, messages, tools=[READ])
            (call,) = [block for block in first.content if block.type == "tool_use"]
            assert "read" == call.name
            content = [block.model_dump(exclude_none=True) for block in first.content]
            result = {"type": "tool_result", "tool_use_id": call.id, "content": text}
            return [*messages, {"role": "assistant", "content": content}, user([result])]

        messages = answered([user("Read the table.")], BIG)
        assert "read it" == said(ask(client, messages, tools=[READ]))
        messages += [{"role": "assistant", "content": "read it"}, user("What is in row 1234?")]
        messages = answered(messages, "nothing new")
        hidden = here.upstream.last
        with listening(here.settings) if restarted else nullcontext(here.url) as url:
            last = Behind(url, here.upstream, here.settings, here.opened).anthropic()
            assert "It is 8638." == said(ask(last, messages, tools=[READ]))
        final = here.upstream.last
        assert BIG not in json.dumps(final)
        # Everything up to the last round, and then the model's own last message with its signature.
        # What memory added to the question is kept by the process alone.
        same = 5 if restarted else 0
        assert hidden["messages"][same:] == final["messages"][same : len(hidden["messages"])]
        thought, call = final["messages"][len(hidden["messages"])]["content"]
        assert "sig-Now again." == thought["signature"]
        assert "read" == call["name"]
        assert hidden["tools"] == final["tools"]
        assert restarted or hidden["system"] == final["system"]
        (talk,) = here.talks()
        assert ["done", "done"] == [turn[2] for turn in talk]


@pytest.mark.parametrize("fault", [Fault(status=529), Fault(status=429), Fault(cut_after=4)], ids=str)
def test_a_fault_costs_no_turn(tmp_path, fault):
    faults = [fault]

    with behind(lambda _: faults.pop() if faults else Said("fine"), tmp_path) as here:
        client = here.anthropic()
        with pytest.raises((anthropic.APIError, Exception)) as raised:
            streamed(client, [user("Where?")])
        if fault.status:
            assert fault.status == raised.value.status_code
        assert "fine" == said(streamed(client, [user("Where?")]))
        turns = [turn for talk in here.talks() for turn in talk]
        assert [("Where?", "fine")] == [turn[:2] for turn in turns if turn[2] == "done"]


def test_counting_and_models_pass(tmp_path):
    with behind(echo, tmp_path) as here:
        client = here.anthropic()
        counted = client.messages.count_tokens(model="claude-opus-4-6", messages=[user("one")])
        assert 7 == counted.input_tokens
        assert "stub" == client.models.retrieve("stub").model_dump()["data"][0]["id"]
        assert [] == here.talks()


def test_blocks_and_fields_that_are_not_known_pass(tmp_path):
    """Beta headers, context management, unknown blocks and signatures reach the provider as they were sent."""
    with behind(echo, tmp_path) as here:
        strange = {"type": "compaction", "content": "…", "encrypted": "abc"}
        history = [
            user("one"),
            {"role": "assistant", "content": [strange, {"type": "text", "text": "answer 1"}]},
            user("two"),
        ]
        edits = {"edits": [{"type": "clear_tool_uses_20250919"}]}
        asked(
            here.anthropic(),
            history,
            extra_body={"context_management": edits},
            extra_headers={"anthropic-beta": "x"},
        )
        path, headers, sent = here.upstream.requests[-1]
        assert ("/v1/messages", "x", edits) == (path, headers["anthropic-beta"], sent["context_management"])
        assert history[:2] == sent["messages"][:2]


def test_reminders_of_a_coding_agent_are_not_the_users_words(tmp_path):
    """What an agent puts into the user's message changes, and the conversation is still the same."""
    with behind(echo, tmp_path) as here:

        def reminded(text, reminder):
            return user(
                [
                    {"type": "text", "text": f"<system-reminder>{reminder}</system-reminder>"},
                    {"type": "text", "text": text},
                ]
            )

        first = said(asked(here.anthropic(), [reminded("one", "It is Monday.")]))
        history = [reminded("one", "It is Tuesday."), {"role": "assistant", "content": first}, user("two")]
        asked(here.anthropic(), history)
        assert [["one", "two"]] == [[turn[0] for turn in talk] for talk in here.talks()]
        assert "Tuesday" in json.dumps(here.upstream.last)


def test_what_an_agent_says_in_the_users_name_is_not_the_question(tmp_path):
    """Codex sends the environment as a user's message of its own before the user's."""
    with behind(echo, tmp_path) as here:
        about = user("<environment_context><cwd>/somewhere</cwd></environment_context>")
        asked(here.anthropic(), [about, user("one")])
        assert [["one"]] == [[turn[0] for turn in talk] for talk in here.talks()]
        assert about["content"] in json.dumps(here.upstream.last)


def test_a_thread_at_the_provider_is_one_conversation(tmp_path):
    """With `thread` Anthropic holds the history: what is sent alone joins its conversation, after a restart too."""

    def script(body):
        waits = "Read" in json.dumps(body) and "tool_result" not in json.dumps(body)
        return Said(calls=(("read", {}),)) if waits else Said("done")

    def sent(here, ask, content, thread):
        return ask(here.anthropic(), [{"role": "user", "content": content}], extra_body={"thread": thread})

    def following(message):
        return {"type": "continue", "previous_message_id": message.id}

    with behind(script, tmp_path) as here:
        first = sent(here, asked, "Read it.", {"type": "create"})
        result = {"type": "tool_result", "tool_use_id": first.content[-1].id, "content": "row 1" * 1_000}
        second = sent(here, streamed, [result], following(first))
        # The provider compares what continues with what it holds: nothing but the message may change.
        assert "tools" not in here.upstream.last
        assert result == here.upstream.last["messages"][0]["content"][0]
    with behind(script, tmp_path) as here:
        sent(here, streamed, "And now?", following(second))
        assert following(second) == here.upstream.last["thread"]
        assert [[("Read it.", "done", "done"), ("And now?", "done", "done")]] == here.talks()
