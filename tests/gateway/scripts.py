"""Models and requests of chat completions that several tests share."""

import json
import re

from tests.gateway.upstream import Said

QUESTION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where do I live?"}]
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
BIG = "\n".join(f"row {number}: value {number * 7}" for number in range(2_000))
ROW = {"role": "user", "content": "What is in row 1234?"}
READ = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}


def echo(body):
    return Said(f"answer {sum(message['role'] == 'user' for message in body['messages'])}")


def asked(client, messages, **options):
    return client.chat.completions.create(model="gpt-5", messages=messages, **options)


def streamed(client, messages, **options):
    with client.chat.completions.stream(model="gpt-5", messages=messages, **options) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion()


def said(completion):
    return completion.choices[0].message.content


def reader(body):
    """A model that reads a table, and loads it again when it is asked about a row."""
    *_, last = body["messages"]
    question = [message["content"] for message in body["messages"] if message["role"] == "user"][-1]
    if last["role"] == "user" and "row 1234" in question:
        told = json.dumps(body["messages"])
        return Said(
            "Let me look.",
            calls=(("load_tool_history", {"uuid": UUID.search(told)[0], "query": "row 1234"}),),
        )
    if last["role"] == "user":
        return Said(calls=(("read", {"path": "table"}),))
    return Said(" It is 8638." if "row 1234" in question else "read it")


def read_table(client):
    """A history in which a bulky result was read."""
    messages = [{"role": "user", "content": "Read the table."}]
    call = asked(client, messages, tools=[READ]).choices[0].message
    messages += [json.loads(call.model_dump_json(exclude_none=True))]
    messages += [{"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": BIG}]
    return [*messages, {"role": "assistant", "content": said(asked(client, messages, tools=[READ]))}]
