"""What a provider gets: the marks for its prompt cache, and text that is UTF-8."""

import json

import pytest

from pagefile.gateway.anthropic_messages import Messages
from pagefile.gateway.exchanges import cache_marks
from pagefile.gateway.sse import dumped

SHORT, LONG = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
HISTORY = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "answer 1"}]


def block(text, **fields):
    return {"type": "text", "text": text, **fields}


@pytest.mark.parametrize(
    ("fields", "asked", "expected"),
    [
        ({}, [block("two", cache_control=LONG)], LONG),
        ({}, [block("two", cache_control=SHORT)], SHORT),
        ({"system": [block("Be brief.", cache_control=LONG)]}, [block("two")], LONG),
        ({"system": [block("Be brief.", cache_control=LONG)]}, [block("two", cache_control=SHORT)], SHORT),
        # The provider marks the end of the question by itself.
        ({"cache_control": SHORT}, [block("two")], SHORT),
        ({"cache_control": LONG}, [block("two")], LONG),
    ],
)
def test_the_history_is_marked_for_as_long_as_the_client_marks(fields, asked, expected):
    """A mark that holds for an hour may not follow one that holds for minutes: the provider would refuse every request."""
    body = {**fields, "messages": [*HISTORY, {"role": "user", "content": asked}]}
    marked = Messages().with_mark(body, 2)
    assert [expected] == cache_marks(marked["messages"][1])
    assert body["messages"][2] == marked["messages"][2]


@pytest.mark.parametrize("automatic", [False, True])
def test_no_more_marks_than_the_provider_takes(automatic):
    tools = [{"name": str(number), "cache_control": SHORT} for number in range(3 if automatic else 4)]
    body = {"tools": tools, "messages": [*HISTORY, {"role": "user", "content": "two"}]}
    body |= {"cache_control": SHORT} if automatic else {}
    assert body == Messages().with_mark(body, 2)
    assert {"messages": body["messages"]} == Messages().with_mark({"messages": body["messages"]}, 2)


def test_half_a_surrogate_pair_stays_escaped():
    """A client can send one only escaped. Its bytes would not be UTF-8, and the provider would refuse the request."""
    sent = dumped({"text": "\ud83d", "name": "Zoë"})
    assert {"text": "\ud83d", "name": "Zoë"} == json.loads(sent.decode("utf-8"))
    assert '{"name":"Zoë"}' == dumped({"name": "Zoë"}).decode()
