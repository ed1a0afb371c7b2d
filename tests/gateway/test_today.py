"""Every request to a provider says what day it is, whatever the client sent."""

import json

from tests.gateway.behind import behind
from tests.gateway.upstream import Said


def answered(_body):
    return Said("ok")


def test_chat_completions(tmp_path):
    """After the client's own instructions, and the same in the next request."""
    with behind(answered, tmp_path) as here:
        client, told = here.openai(), {"role": "developer", "content": "Be brief."}
        asked = [told, {"role": "user", "content": "one"}]
        client.chat.completions.create(model="gpt-5", messages=asked)
        first = [one["content"] for one in here.upstream.last["messages"] if one["role"] != "user"]
        more = [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "two"}]
        client.chat.completions.create(model="gpt-5", messages=[*asked, *more])
        assert "Today is " in first[0]
        assert first[0] == here.upstream.last["messages"][0]["content"]
        assert ["one", "two"] == [m["content"] for m in here.upstream.last["messages"] if m["role"] == "user"]


def test_messages(tmp_path):
    """In the system text."""
    with behind(answered, tmp_path) as here:
        question = {"role": "user", "content": "one"}
        here.anthropic().messages.create(model="claude-opus-4-5", max_tokens=100, messages=[question])
        assert "Today is " in json.dumps(here.upstream.last["system"])


def test_responses(tmp_path):
    """In the instructions; where the provider holds the history, in front of what is new."""
    with behind(answered, tmp_path) as here:
        client = here.openai()
        first = client.responses.create(model="gpt-5", input="one", instructions="Be brief.")
        assert "Today is " in here.upstream.last["instructions"]
        client.responses.create(model="gpt-5", input="two", previous_response_id=first.id)
        assert "Today is " in json.dumps(here.upstream.last["input"])
