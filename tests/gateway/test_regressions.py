"""What users of other gateways complain about: each complaint is a test here."""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from pagefile.edge.fail_open import FailOpen
from pagefile.gateway.conversations import Conversations
from pagefile.settings import ArchiveSettings
from pagefile.standalone.memory_tools import ToolCaller
from tests.acceptance.http_server import listening
from tests.gateway.behind import Behind, behind
from tests.gateway.scripts import BIG, READ, ROW, asked, echo, read_table, reader, said
from tests.gateway.upstream import Fault, Said


def test_what_was_loaded_is_not_taken_away_again(tmp_path):
    """A result that the model loaded stays as it was loaded while the turn lasts: there is no loop of loading."""
    with behind(reader, tmp_path) as here:
        client = here.openai()
        asked(client, [*read_table(client), ROW], tools=[READ])
        loads = [
            json.dumps(body["messages"][-1])
            for body in here.upstream.bodies
            if body["messages"][-1]["role"] == "tool"
        ]
        assert 2 == len(loads)
        assert "row 1234: value 8638" in loads[-1]


@pytest.mark.parametrize("slow", [False, True], ids=["fails", "slow"])
def test_the_model_answers_without_a_result_that_cannot_be_loaded(tmp_path, monkeypatch, slow):
    """The client gets an answer and not half of one, and the turn is complete."""
    edges = []
    begin = FailOpen.__init__

    def collected(edge, *given, **options):
        edges.append(edge)
        begin(edge, *given, **options)

    def limited(seconds):
        for edge in edges:
            edge.timeout_s = seconds

    def script(body):
        told = reader(body)
        # Only the answer to this call has little time, however slow the machine is.
        limited(0.5 if slow and "Let me look." == told.text else 20.0)
        return told

    async def answer(*_):
        limited(20.0)
        if not slow:
            raise RuntimeError("a bug of ours")
        await asyncio.sleep(30)

    monkeypatch.setattr(FailOpen, "__init__", collected)
    with behind(script, tmp_path) as here:
        client = here.openai()
        history = read_table(client)
        monkeypatch.setattr(ToolCaller, "answer", answer)
        assert "Let me look. It is 8638." == said(asked(client, [*history, ROW], tools=[READ]))
        assert "[load_tool_history]" in here.upstream.last["messages"][-1]["content"]
        ((*_, (_, _, status)),) = here.talks()
        assert "done" == status


def test_originals_outlive_a_restart(tmp_path):
    """A gateway that is started again knows the conversation, and can still load what left the window."""
    with behind(reader, tmp_path) as here:
        history = read_table(here.openai())
        upstream, settings = here.upstream, here.settings
        with listening(settings) as url:
            again = Behind(url, upstream, settings, here.opened)
            assert "Let me look. It is 8638." == said(asked(again.openai(), [*history, ROW], tools=[READ]))
            assert 1 == len(again.talks())


@pytest.mark.parametrize(
    "options", [{"tools": [READ], "tool_choice": "none"}, {"tools": [READ], "n": 2}], ids=str
)
def test_no_placeholder_without_a_tool_to_redeem_it(tmp_path, options):
    """Where the model cannot call our tools, results stay in the request."""
    with behind(reader, tmp_path) as here:
        client = here.openai()
        history = read_table(client)
        asked(client, [*history, {"role": "user", "content": "Thank you."}], **options)
        sent = here.upstream.last
        assert BIG in [message["content"] for message in sent["messages"] if message["role"] == "tool"]
        assert ["read"] == [tool["function"]["name"] for tool in sent["tools"]]


def test_switched_off_tools_leave_results_where_they_are(tmp_path):
    with behind(reader, tmp_path, gateway={"tools": False}) as here:
        client = here.openai()
        asked(client, [*read_table(client), {"role": "user", "content": "Thank you."}], tools=[READ])
        assert BIG in [
            message["content"] for message in here.upstream.last["messages"] if message["role"] == "tool"
        ]


def test_the_prefix_stays_the_same_for_a_prompt_cache(tmp_path):
    """Of twenty requests, each begins with what the one before it had, up to that one's question."""
    with behind(echo, tmp_path) as here:
        client, messages = here.openai(), [{"role": "system", "content": "Be brief."}]
        for number in range(20):
            messages.append({"role": "user", "content": f"Tell me about number {number}, and why."})
            messages.append({"role": "assistant", "content": said(asked(client, messages))})
        for before, after in zip(here.upstream.bodies, here.upstream.bodies[1:], strict=False):
            prefix = before["messages"][:-1]
            assert prefix == after["messages"][: len(prefix)]


def test_within_a_turn_the_whole_request_is_a_prefix(tmp_path):
    """While tools run, a request begins with all of the one before it."""

    def script(body):
        done = sum(message["role"] == "tool" for message in body["messages"])
        return Said("done") if done == 5 else Said(calls=(("read", {"part": done}),))

    with behind(script, tmp_path) as here:
        client, messages = here.openai(), [{"role": "user", "content": "Read all five parts of the report."}]
        for number in range(5):
            message = asked(client, messages, tools=[READ]).choices[0].message
            messages.append(json.loads(message.model_dump_json(exclude_none=True)))
            messages.append(
                {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": f"Part {number}: fine."}
            )
        asked(client, messages, tools=[READ])
        for before, after in zip(here.upstream.bodies, here.upstream.bodies[1:], strict=False):
            assert before["messages"] == after["messages"][: len(before["messages"])]
        ((turn,),) = here.talks()
        assert ("done", "done") == turn[1:]


def test_no_tokens_that_nobody_agreed_to(tmp_path):
    """One request of a client is one request to the provider: memory calls no model by itself."""
    with behind(echo, tmp_path) as here:
        client, messages = here.openai(), []
        for number in range(12):
            messages.append({"role": "user", "content": f"My number {number} is {number * 7}. " * 30})
            messages.append({"role": "assistant", "content": said(asked(client, messages))})
        with here.memory() as memory:
            memory.settle()
        assert 12 == len(here.upstream.requests)


def test_calls_and_results_are_never_torn_apart(tmp_path):
    """However small the window, every result in a request has its call, and every call its result."""

    def script(body):
        last = body["messages"][-1]
        return Said("fine") if last["role"] == "tool" else Said(calls=(("read", {}), ("read", {"b": 1})))

    with behind(
        script, tmp_path, gateway={"window_tokens": 2_000}, archive=ArchiveSettings(threshold=100_000)
    ) as here:
        client, messages = here.openai(), []
        for number in range(12):
            messages.append({"role": "user", "content": f"Question {number}"})
            call = asked(client, messages, tools=[READ]).choices[0].message
            messages.append(json.loads(call.model_dump_json(exclude_none=True)))
            messages += [
                {"role": "tool", "tool_call_id": one.id, "content": f"result {number} " * 60}
                for one in call.tool_calls
            ]
            messages.append({"role": "assistant", "content": said(asked(client, messages, tools=[READ]))})
        for body in here.upstream.bodies:
            calls = [c["id"] for m in body["messages"] for c in m.get("tool_calls") or ()]
            results = [m["tool_call_id"] for m in body["messages"] if m["role"] == "tool"]
            assert sorted(calls) == sorted(results)
        assert len(here.upstream.last["messages"]) < len(messages)


def test_many_clients_at_once_in_one_conversation(tmp_path):
    """Clients that go on from the same history at the same time lose no turn, and those that ask the same lose no answer."""
    with behind(echo, tmp_path) as here:
        client = here.openai()
        begun = [{"role": "user", "content": "one"}]
        history = [*begun, {"role": "assistant", "content": said(asked(client, begun))}]
        texts = [f"from client {number // 2}" for number in range(8)]

        def ask(text):
            return said(asked(here.openai(), [*history, {"role": "user", "content": text}]))

        with ThreadPoolExecutor(8) as pool:
            assert ["answer 2"] * 8 == list(pool.map(ask, texts))
        turns = {turn[0] for talk in here.talks() for turn in talk if turn[2] == "done"}
        assert {"one", *texts} == turns


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "after one that was left"])
def test_a_prompt_that_runs_twice_is_two_conversations(tmp_path, at_once):
    """Jobs begin with the same words. What one's tools return is never in the other's turn."""
    together = threading.Barrier(2 if at_once else 1)

    def script(body):
        if body["messages"][-1]["role"] == "user":
            together.wait(20)
            return Said(calls=(("read", {}),))
        return Said(f"read {body['messages'][-1]['content']}")

    with behind(script, tmp_path) as here:
        begun = [{"role": "user", "content": "Write the daily report."}]

        def call(_):
            return asked(here.openai(), begun, tools=[READ], user="ada").choices[0].message

        with ThreadPoolExecutor(2 if at_once else 1) as pool:
            calls = list(pool.map(call, range(2)))
        for number, message in enumerate(calls):
            result = {
                "role": "tool",
                "tool_call_id": message.tool_calls[0].id,
                "content": f"paper {number}",
            }
            history = [*begun, json.loads(message.model_dump_json(exclude_none=True)), result]
            assert f"read paper {number}" == said(asked(here.openai(), history, tools=[READ], user="ada"))
        with here.memory() as memory:
            turns = [
                memory.conversation(str(head.scope.conversation), user_id="ada").turns()
                for head in memory.conversations()
            ]
        found = sorted((turn.assistant, [step.result for step in turn.steps]) for (turn,) in turns)
        assert [("read paper 0", ["paper 0"]), ("read paper 1", ["paper 1"])] == found


def test_a_fact_reaches_the_next_conversation(tmp_path):
    """What is known of a user is in the requests of every client of that user, and of nobody else's."""
    with behind(echo, tmp_path) as here:
        with here.memory() as memory:
            memory.remember("Ada is allergic to nuts.", user_id="ada")
        for user, known in (("ada", True), ("bob", False)):
            asked(here.openai(), [{"role": "user", "content": "Am I allergic to nuts?"}], user=user)
            assert known == ("allergic to nuts." in json.dumps(here.upstream.last["messages"])), user


def test_a_gateway_that_was_replaced_loses_nothing(tmp_path):
    """Settings of one gateway are not those of another: the log is all they share."""
    with behind(echo, tmp_path) as here:
        asked(here.openai(), [{"role": "user", "content": "one"}])
        other = replace(here.settings, window_tokens=4_000)
        history = [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "answer 1"},
            {"role": "user", "content": "two"},
        ]
        with listening(other) as url:
            asked(Behind(url, here.upstream, other, here.opened).openai(), history)
        assert [["one", "two"]] == [[turn[0] for turn in talk] for talk in here.talks()]


def test_a_provider_that_refuses_what_memory_added_gets_the_request_as_it_came(tmp_path):
    """A server without tools, for one, answers as it would without us, and a header says so."""

    def script(body):
        names = [tool["function"]["name"] for tool in body.get("tools", [])]
        return Fault(status=400) if "load_tool_history" in names else reader(body)

    with behind(script, tmp_path) as here:
        client = here.openai()
        history = [*read_table(client), {"role": "user", "content": "Thank you."}]
        raw = client.chat.completions.with_raw_response.create(model="gpt-5", messages=history, tools=[READ])
        assert "bypassed" == raw.headers["x-pagefile-status"]
        assert history == here.upstream.last["messages"]
        assert ["done", "open"] == [turn[2] for turn in here.talks()[0]]


def test_a_long_history_is_recorded_beside_its_first_request(tmp_path, monkeypatch):
    """It takes longer than memory may: that request goes without, the next one has memory, and nothing is there twice."""
    recorded = Conversations._recorded

    async def slowly(*given):
        await asyncio.sleep(0.05)
        return await recorded(*given)

    monkeypatch.setattr(Conversations, "_recorded", slowly)
    history = [
        {"role": role, "content": f"{role} says {number}"}
        for number in range(40)
        for role in ("user", "assistant")
    ]
    with behind(echo, tmp_path, gateway={"deadline_s": 0.5}) as here:
        raw = here.openai().chat.completions.with_raw_response
        question = {"role": "user", "content": "And now?"}
        first = raw.create(model="gpt-5", messages=[*history, question])
        assert "bypassed" == first.headers["x-pagefile-status"]
        time.sleep(3)
        answer = {"role": "assistant", "content": said(first.parse())}
        second = raw.create(model="gpt-5", messages=[*history, question, answer, ROW])
        assert "recorded" == second.headers["x-pagefile-status"]
        (talk,) = here.talks()
    assert [*(f"user says {number}" for number in range(40)), "And now?", ROW["content"]] == [
        asked_for for asked_for, _, _ in talk
    ]
    assert {"done"} == {status for _, _, status in talk}
