"""OpenAI's Responses through the gateway, with OpenAI's own client."""

import json
import re

import httpx
import openai
import pytest

from tests.acceptance.http_server import listening
from tests.gateway.behind import Behind, behind
from tests.gateway.upstream import Fault, Said

BIG = "\n".join(f"row {number}: value {number * 7}" for number in range(2_000))
READ = {
    "type": "function",
    "name": "read",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def asked(client, given, **options):
    return client.responses.create(model="gpt-5", input=given, **options)


def streamed(client, given, **options):
    with client.responses.stream(model="gpt-5", input=given, **options) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


def user(text):
    return {"role": "user", "content": text}


def users(body):
    given = body["input"]
    return (
        [given]
        if isinstance(given, str)
        else [item["content"] for item in given if item.get("role") == "user"]
    )


def echo(body):
    return Said(f"answer {len(users(body))}", thinking="hm")


@pytest.mark.parametrize("ask", [asked, streamed])
def test_one_conversation_stays_one(tmp_path, ask):
    """A client that sends its items back, reasoning among them, has one conversation."""
    with behind(echo, tmp_path) as here:
        client, items = here.openai(), [user("one")]
        for number in range(1, 4):
            response = ask(client, items, instructions="Be brief.")
            assert f"answer {number}" == response.output_text
            items += [item.model_dump(exclude_none=True) for item in response.output] + [
                user(f"And {number}?")
            ]
        assert [["one", "And 1?", "And 2?"]] == [[turn[0] for turn in talk] for talk in here.talks()]
        thoughts = [item for item in items if item.get("type") == "reasoning"]
        assert 3 == len(thoughts)
        assert thoughts[:2] == [one for one in here.upstream.last["input"] if one.get("type") == "reasoning"]


def test_what_was_heard_of_an_answer_that_was_cut_is_kept(tmp_path):
    """In a turn that is marked as unanswered."""
    said = Said("The train leaves from platform nine.", thinking="hm")
    with behind(lambda _: Fault(said=said, cut_after=10), tmp_path) as here:
        with pytest.raises((httpx.HTTPError, openai.APIError, RuntimeError)):
            streamed(here.openai(), "Which platform?")
        (name,) = here.conversations()
        with here.memory() as memory:
            chat = memory.conversation(name)
            (turn,) = chat.turns()
            assert "aborted" == turn.status
            *_, told = chat.messages(turn.id)
        assert "The train leaves from" == told["content"][0]["text"]


@pytest.mark.parametrize("ask", [asked, streamed])
def test_a_history_at_the_provider_is_one_conversation(tmp_path, ask):
    """With `previous_response_id` only what is new is sent, and the log has the whole conversation."""
    with behind(echo, tmp_path) as here:
        client = here.openai()
        first = ask(client, "one")
        second = ask(client, "two", previous_response_id=first.id)
        assert first.id == here.upstream.last["previous_response_id"]
        ask(client, "three", previous_response_id=second.id)
        assert [["one", "two", "three"]] == [[turn[0] for turn in talk] for talk in here.talks()]
        assert "two" not in json.dumps(here.upstream.last["input"])


def test_tool_results_sent_alone_join_their_turn(tmp_path):
    def script(body):
        return Said("done") if not users(body) else Said(calls=(("read", {}),))

    with behind(script, tmp_path) as here:
        client = here.openai()
        first = asked(client, "Read it.", tools=[READ])
        call = first.output[-1]
        result = {"type": "function_call_output", "call_id": call.call_id, "output": BIG}
        assert "done" == asked(client, [result], previous_response_id=first.id, tools=[READ]).output_text
        ((turn,),) = here.talks()
        assert ("Read it.", "done", "done") == turn


def reader(body):
    given = body["input"]
    last = given[-1] if isinstance(given, list) else {}
    question = users(body)[-1]
    if "row 1234" in question and last.get("type") != "function_call_output":
        return Said(
            "Let me look.",
            calls=(("load_tool_history", {"uuid": UUID.search(json.dumps(given))[0], "query": "row 1234"}),),
        )
    if last.get("type") == "function_call_output":
        return Said(" It is 8638." if "row 1234" in question else "read it")
    return Said(calls=(("read", {}),), thinking="hm")


def loaded(client, ask):
    """The answer to a question about a result that was paged out."""
    items = [user("Read the table.")]
    first = ask(client, items, tools=[READ])
    items += [item.model_dump(exclude_none=True) for item in first.output]
    items += [{"type": "function_call_output", "call_id": first.output[-1].call_id, "output": BIG}]
    second = ask(client, items, tools=[READ])
    assert "read it" == second.output_text
    items += [*(item.model_dump(exclude_none=True) for item in second.output), user("What is in row 1234?")]
    return ask(client, items, tools=[READ])


@pytest.mark.parametrize("ask", [asked, streamed])
def test_a_paged_out_result_is_loaded_before_the_client_sees_the_answer(tmp_path, ask):
    with behind(reader, tmp_path) as here:
        final = loaded(here.openai(), ask)
        assert "Let me look. It is 8638." == final.output_text
        assert ["message", "message"] == [item.type for item in final.output]
        assert 20 == final.usage.input_tokens
        before, after = here.upstream.bodies[-2:]
        assert BIG not in json.dumps(before)
        assert before["input"] == after["input"][: len(before["input"])]
        assert "8638" in after["input"][-1]["output"]
        (talk,) = here.talks()
        assert ["done", "done"] == [turn[2] for turn in talk]


def test_conversations_of_the_provider_pass(tmp_path):
    with behind(echo, tmp_path) as here:
        here.openai().get("/conversations/conv_1", cast_to=object)
        assert "/v1/conversations/conv_1" == here.upstream.requests[-1][0]


@pytest.mark.parametrize("ask", [asked, streamed])
def test_a_history_at_the_provider_outlives_a_restart(tmp_path, ask):
    """A response or a conversation of the provider's is known to the next process, too."""
    with behind(echo, tmp_path) as here:
        first = ask(here.openai(), "one", user="ada")
        ask(here.openai(), "eins", conversation="conv_1", user="ada")
    with behind(echo, tmp_path) as here:
        second = ask(here.openai(), "two", previous_response_id=first.id, user="ada")
        ask(here.openai(), "zwei", conversation="conv_1", user="ada")
        # Ids are known to the user alone who got them.
        ask(here.openai(), "other", previous_response_id=first.id, user="eve")
    with behind(echo, tmp_path) as here:
        ask(here.openai(), "three", previous_response_id=second.id, user="ada")
        talks = sorted([turn[0] for turn in talk] for talk in here.talks())
        assert [["eins", "zwei"], ["one", "two", "three"], ["other"]] == talks


def test_hidden_rounds_outlive_a_restart(tmp_path):
    """The provider is asked to continue the last of them, although the client knows only the first."""
    with behind(reader, tmp_path) as here:
        answer = loaded(here.openai(), streamed)
    with behind(echo, tmp_path) as here:
        asked(here.openai(), "And now?", previous_response_id=answer.id)
        (number,) = re.findall(r"\d+", here.upstream.last["previous_response_id"])
        assert int(number) > int(re.findall(r"\d+", answer.id)[0])


@pytest.mark.parametrize("name", ["", "x" * 100_000, "resp\x00", "resp_\ud800", 7])
def test_an_id_that_cannot_be_one_is_for_the_provider_to_judge(tmp_path, name):
    with behind(echo, tmp_path) as here:
        body = json.dumps({"model": "gpt-5", "input": "one", "previous_response_id": name})
        headers = {"content-type": "application/json"}
        answer = httpx.post(f"{here.url}/v1/responses", content=body, headers=headers)
        assert (200, "recorded") == (answer.status_code, answer.headers["x-pagefile-status"])
        assert name == here.upstream.last["previous_response_id"]


@pytest.mark.parametrize(
    "fault", [Fault(status=500), Fault(cut_after=5, said=Said("half an answer, or less"))]
)
def test_results_that_are_sent_again_after_a_fault_are_recorded_once(tmp_path, fault):
    answers = iter([Said(calls=(("read", {}),)), fault, fault, Said("read it")])
    with behind(lambda _: next(answers), tmp_path) as here:
        client = here.openai()
        first = asked(client, "Read it.")
        call = next(item for item in first.output if item.type == "function_call")
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "a long result"}
        for _ in range(2):
            with pytest.raises((openai.APIError, httpx.HTTPError, RuntimeError)):
                streamed(client, [result], previous_response_id=first.id)
        assert "read it" == streamed(client, [result], previous_response_id=first.id).output_text
        (conversation,) = here.conversations()
        *given_up, turn = here.turns(conversation)
    assert ("done", 1, "read it") == (turn.status, len(turn.steps), turn.assistant)
    assert 4 == len(turn.messages), turn.messages
    assert {"aborted"} >= {one.status for one in given_up}


def reading_again(body):
    """A model that thinks, loads what left the window, thinks, and then calls the client's tool once more."""
    told, last = json.dumps(body["input"]), body["input"][-1]
    if "row 1234?" not in told:
        return Said("read it") if last.get("type") == "function_call_output" else Said(calls=(("read", {}),))
    if last.get("role") == "user":
        return Said(
            calls=(("load_tool_history", {"uuid": UUID.search(told)[0], "query": "row 1234"}),),
            thinking="Gone.",
        )
    if "8638" in last["output"]:
        return Said(calls=(("read", {"again": True}),), thinking="Now again.")
    return Said("It is 8638.")


@pytest.mark.parametrize("ids", [True, False], ids=["with ids", "without ids"])
@pytest.mark.parametrize("ask", [asked, streamed])
def test_hidden_rounds_are_unfolded_for_the_model(tmp_path, ask, ids):
    """Each item is there once, and where the model put it, also through a gateway that was started again."""
    with behind(reading_again, tmp_path) as here:
        client = here.openai()

        def answered(client, given, result):
            items = [
                item.model_dump(exclude_none=True)
                for item in ask(client, given, tools=[READ], store=False).output
            ]
            items = items if ids else [{name: item[name] for name in item if name != "id"} for item in items]
            output = {"type": "function_call_output", "call_id": items[-1]["call_id"], "output": result}
            return [*given, *items, output]

        given = answered(client, [user("Read the table.")], BIG)
        answer = {"role": "assistant", "content": ask(client, given, tools=[READ], store=False).output_text}
        given = answered(client, [*given, answer, user("What is in row 1234?")], "nothing new")
        hidden = here.upstream.last["input"]
        with listening(here.settings) as url:
            again = Behind(url, here.upstream, here.settings, here.opened)
            assert "It is 8638." == ask(again.openai(), given, tools=[READ], store=False).output_text
        final = here.upstream.last["input"]
        kinds = [item.get("type", item.get("role")) for item in final]
        assert ["reasoning", "function_call", "function_call_output"] * 2 == kinds[-6:]
        assert [item.get("call_id") for item in hidden[-2:]] == [item.get("call_id") for item in final[-5:-3]]
        assert hidden[-1]["output"] == final[-4]["output"]
        assert "nothing new" == final[-1]["output"]
        assert len(hidden) + 3 == len(final)
