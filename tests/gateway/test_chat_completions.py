"""OpenAI's chat completions through the gateway, with OpenAI's own client."""

import json
import threading
from itertools import count

import openai
import pytest

from tests.gateway.behind import behind
from tests.gateway.scripts import BIG, QUESTION, READ, asked, echo, reader, said, streamed
from tests.gateway.upstream import Fault, Said


@pytest.mark.parametrize("ask", [asked, streamed])
def test_one_conversation_stays_one(tmp_path, ask):
    """However often a client sends its history, each turn is in the log once."""
    with behind(echo, tmp_path) as here:
        client, messages = here.openai(), list(QUESTION)
        for number in range(1, 5):
            answer = said(ask(client, messages))
            assert f"answer {number}" == answer
            messages += [
                {"role": "assistant", "content": answer},
                {"role": "user", "content": f"And {number}?"},
            ]
        talks = here.talks()
        assert [
            [
                ("Where do I live?", "answer 1", "done"),
                *((f"And {n}?", f"answer {n + 1}", "done") for n in (1, 2, 3)),
            ]
        ] == talks
        assert "Be brief." in here.upstream.last["messages"][0]["content"]
        assert "Bearer sk-vendor" == here.upstream.requests[-1][1]["authorization"]


@pytest.mark.parametrize("ask", [asked, streamed])
def test_unknown_fields_pass(tmp_path, ask):
    """What the gateway does not know reaches the provider as it was sent, and its headers come back."""
    with behind(echo, tmp_path) as here:
        given = {"logprobs": True, "metadata": {"x": "y"}, "extra_body": {"brand_new": {"deep": [1, None]}}}
        ask(here.openai(), QUESTION, **given)
        sent = here.upstream.last
        assert (True, {"x": "y"}, {"deep": [1, None]}) == (
            sent["logprobs"],
            sent["metadata"],
            sent["brand_new"],
        )
        raw = here.openai().chat.completions.with_raw_response.create(model="gpt-5", messages=QUESTION)
        assert "recorded" == raw.headers["x-pagefile-status"]
        assert raw.headers["x-pagefile-bill"].startswith("/inspector/call?")
        assert "req_1" == raw.headers["x-request-id"]


@pytest.mark.parametrize("ask", [asked, streamed])
def test_a_paged_out_result_is_loaded_before_the_client_sees_the_answer(tmp_path, ask):
    """A bulky result leaves the next request; the model loads it, and the client sees only its answer."""
    with behind(reader, tmp_path) as here:
        client = here.openai()
        messages = [{"role": "user", "content": "Read the table."}]
        call = ask(client, messages, tools=[READ]).choices[0].message
        assert ["read"] == [one.function.name for one in call.tool_calls]
        messages += [json.loads(call.model_dump_json(exclude_none=True))]
        messages += [{"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": BIG}]
        assert "read it" == said(ask(client, messages, tools=[READ]))
        # Of the running turn, the result is there in full.
        assert BIG == here.upstream.last["messages"][-1]["content"]
        messages += [
            {"role": "assistant", "content": "read it"},
            {"role": "user", "content": "What is in row 1234?"},
        ]
        final = ask(client, messages, tools=[READ])
        assert "Let me look. It is 8638." == said(final)
        assert "stop" == final.choices[0].finish_reason
        assert final.choices[0].message.tool_calls is None
        first, second = here.upstream.bodies[-2:]
        assert BIG not in json.dumps(first)
        assert ["read", "load_tool_history", "search_tool_history"] == [
            t["function"]["name"] for t in first["tools"]
        ]
        assert first["messages"] == second["messages"][: len(first["messages"])]
        assert "row 1234: value 8638" in second["messages"][-1]["content"]
        (talk,) = here.talks()
        assert ["Read the table.", "What is in row 1234?"] == [turn[0] for turn in talk]
        assert ["done", "done"] == [turn[2] for turn in talk]


@pytest.mark.parametrize("ask", [asked, streamed])
def test_a_passage_of_another_conversation_comes_with_the_tools_to_load_the_rest(tmp_path, ask):
    """A request that names a page offers them, and so do later ones of this conversation: its prompt begins alike."""
    with behind(reader, tmp_path) as here:
        client = here.openai(default_headers={"x-pagefile-user": "ada"})
        messages = [{"role": "user", "content": "Read the table."}]
        call = ask(client, messages, tools=[READ]).choices[0].message
        messages += [json.loads(call.model_dump_json(exclude_none=True))]
        messages += [{"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": BIG}]
        ask(client, messages, tools=[READ])
        with here.memory() as memory:
            memory.settle()
        row = [{"role": "user", "content": "What is the value of row 1234 in the table?"}]
        assert "Let me look. It is 8638." == said(ask(client, row))
        first = here.upstream.bodies[-2]
        assert "<loaded>" in first["messages"][-1]["content"]
        offered = ["load_tool_history", "search_tool_history"]
        assert offered == [tool["function"]["name"] for tool in first["tools"]]
        later = [
            *row,
            {"role": "assistant", "content": "It is 8638."},
            {"role": "user", "content": "Thanks!"},
        ]
        ask(client, later)
        assert "<loaded>" not in json.dumps(here.upstream.last)
        assert first["tools"] == here.upstream.last["tools"]
        ask(client, [{"role": "user", "content": "Thanks!"}])
        assert "tools" not in here.upstream.last


def test_an_edited_message_continues_in_a_fork(tmp_path):
    """Editing the last message leaves the conversation as it is, and goes on in a branch that stays one."""
    with behind(echo, tmp_path) as here:
        client = here.openai()
        begun = [{"role": "user", "content": "one"}]
        history = [*begun, {"role": "assistant", "content": said(asked(client, begun))}]
        second = [*history, {"role": "user", "content": "two"}]
        asked(client, second)
        edited = [*history, {"role": "user", "content": "two, edited"}]
        answer = said(asked(client, edited))
        asked(
            client, [*edited, {"role": "assistant", "content": answer}, {"role": "user", "content": "three"}]
        )
        talks = sorted([turn[0] for turn in talk] for talk in here.talks())
        assert [["one", "two"], ["one", "two, edited", "three"]] == talks


def test_two_clients_in_one_conversation(tmp_path):
    """Two clients that name one conversation and send only what is new share its history."""
    with behind(echo, tmp_path) as here:
        named = {"x-pagefile-conversation": "shared", "x-pagefile-user": "ada"}
        first, second = here.openai(default_headers=named), here.openai(default_headers=named)
        asked(first, [{"role": "user", "content": "My cat is called Mina."}])
        asked(second, [{"role": "user", "content": "What is my cat called?"}])
        sent = json.dumps(here.upstream.last["messages"])
        assert "Mina" in sent
        assert 2 == len(here.turns("shared", "ada"))


@pytest.mark.parametrize("ask", [asked, streamed])
@pytest.mark.parametrize(
    "fault", [Fault(status=429), Fault(status=500), Fault(cut_after=3), Fault(malformed=True)], ids=str
)
def test_a_fault_reaches_the_client_and_costs_no_turn(tmp_path, ask, fault):
    """The client sees the provider's fault as without us; asked again, the question is in the log once as answered."""
    faults = [fault]

    def script(body):
        return (
            faults.pop() if faults and not (body.get("stream") is None and not fault.status) else Said("fine")
        )

    with behind(script, tmp_path) as here:
        client = here.openai()
        if fault.status or ask is streamed:
            with pytest.raises((openai.APIError, json.JSONDecodeError)) as raised:
                ask(client, QUESTION)
            if fault.status:
                assert fault.status == raised.value.status_code
        assert "fine" == said(ask(client, QUESTION))
        turns = [turn for talk in here.talks() for turn in talk]
        assert [("Where do I live?", "fine")] == [turn[:2] for turn in turns if turn[2] == "done"]
        assert all(turn[2] in {"done", "aborted"} for turn in turns)


def test_memory_that_fails_costs_only_the_memory(tmp_path):
    """A memory that is slower than the deadline is left out, and a header says so."""
    with behind(echo, tmp_path, gateway={"deadline_s": 0.000001}) as here:
        raw = here.openai().chat.completions.with_raw_response.create(model="gpt-5", messages=QUESTION)
        assert "bypassed" == raw.headers["x-pagefile-status"]
        assert QUESTION == here.upstream.last["messages"]


@pytest.mark.parametrize(("mode", "turns"), [("off", 0), ("record", 1)])
def test_switched_off_by_request(tmp_path, mode, turns):
    """A request can choose to pass without memory, or to be recorded only."""
    with behind(echo, tmp_path) as here:
        asked(here.openai(), QUESTION, extra_headers={"x-pagefile-mode": mode})
        assert QUESTION == here.upstream.last["messages"]
        assert not [name for name in here.upstream.requests[-1][1] if name.startswith("x-pagefile")]
        assert turns == sum(map(len, here.talks()))


def test_a_client_that_leaves_ends_the_upstream_call(tmp_path):
    """What was streamed until then is in the log, and the turn is marked as unanswered."""
    with behind(lambda _: Said("word " * 200_000), tmp_path) as here:
        stream = asked(here.openai(), QUESTION, stream=True)
        for number, _ in enumerate(stream):
            if number == 5:
                break
        stream.close()
        assert here.upstream.left.wait(20)
        for _ in range(100):
            if here.talks()[0][0][2] == "aborted":
                break
        ((turn,),) = here.talks()
        assert "aborted" == turn[2]


def test_a_stream_is_over_when_it_says_so(tmp_path):
    """A provider that keeps the connection open behind the end keeps no client waiting, and the answer is in the log by then."""
    heard, on_time = threading.Event(), []
    fault = Fault(said=Said("It is Bern."), lingers=lambda: on_time.append(heard.wait(20)))
    with behind(lambda _: fault, tmp_path) as here:
        assert "It is Bern." == said(streamed(here.openai(), QUESTION))
        assert [[("Where do I live?", "It is Bern.", "done")]] == here.talks()
        heard.set()
    assert [True] == on_time


def test_models_and_other_paths_pass(tmp_path):
    """What has nothing to do with a conversation passes; where no provider is set, the answer says so."""
    with behind(echo, tmp_path) as here:
        assert ["stub"] == [model.id for model in here.openai().models.list()]
    with behind(echo, tmp_path, gateway={"openai_url": None}) as here, pytest.raises(openai.NotFoundError):
        here.openai().models.list()


def test_an_empty_answer_is_not_that_of_a_conversation_in_the_log(tmp_path):
    """Whoever knows only the question of another does not continue that conversation."""
    with behind(echo, tmp_path) as here:
        client, question = here.openai(), {"role": "user", "content": "hi"}
        asked(client, [question])
        asked(client, [question, {"role": "assistant", "content": ""}, {"role": "user", "content": "What?"}])
        assert 2 == len(here.talks())


def user(text):
    return {"role": "user", "content": text}


def counted():
    """A model that counts its answers."""
    numbers = count(1)
    return lambda _: Said(f"answer {next(numbers)}")


@pytest.mark.parametrize("kept", [3, 5])
def test_a_client_that_leaves_out_the_beginning_stays_in_its_conversation(tmp_path, kept):
    """Many clients send only the newest messages: each turn is in the log once, and the history is sent as they have it."""
    with behind(counted(), tmp_path) as here:
        client, messages = here.openai(), []
        for number in range(7):
            messages += [user(f"What is to be done about delivery {number}, and who has to know about it?")]
            sent = messages[-kept:]
            messages += [{"role": "assistant", "content": said(asked(client, sent))}]
            assert sent[:-1] == here.upstream.last["messages"][-len(sent) : -1]
        (talk,) = here.talks()
    assert [f"answer {number}" for number in range(1, 8)] == [answer for _, answer, _ in talk]


def test_the_same_small_talk_is_not_the_same_conversation(tmp_path):
    with behind(counted(), tmp_path) as here:
        client = here.openai()
        asked(client, [user("Where is the key?")])
        thanks = [user("Thanks!"), {"role": "assistant", "content": "Welcome!"}]
        asked(client, [user("Where is the mug?"), *thanks, user("And now?")])
        asked(client, [user("Where is the cat?"), *thanks, user("And then?")])
        asked(client, [*thanks, user("And later?")])
        assert 4 == len(here.conversations())


def test_an_edit_far_back_is_a_fork(tmp_path):
    with behind(counted(), tmp_path) as here:
        client, messages = here.openai(), []
        for number in range(26):
            messages += [user(f"question {number}")]
            messages += [{"role": "assistant", "content": said(asked(client, messages))}]
        asked(client, [*messages[:4], user("another third question")])
        forked, original = sorted(here.conversations(), key=len, reverse=True)
        assert forked.startswith(f"{original}~")
        assert 3 == len(here.turns(forked))
