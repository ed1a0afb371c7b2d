"""The window is the model's context less what else the request and its answer need."""

import pytest

from tests.gateway.behind import behind
from tests.gateway.scripts import READ, asked, echo

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
LONG = {**READ, "function": {**READ["function"], "description": "Reads a table. " * 400}}
HISTORY = [
    {"role": role, "content": f"{role} says {number}: " + "a few more words about it. " * 10}
    for number in range(40)
    for role in ("user", "assistant")
]


@pytest.mark.parametrize(
    "more",
    [{"max_completion_tokens": 1_500}, {"max_tokens": 1_500}, {"tools": [LONG]}, {"content": [IMAGE]}],
    ids=["newer limit", "older limit", "tools", "image"],
)
def test_less_history_is_sent_where_the_rest_needs_the_room(tmp_path, more):
    with behind(echo, tmp_path, gateway={"window_tokens": 3_000}) as here:
        client, question = here.openai(), {"role": "user", "content": "What now?"}
        asked(client, [*HISTORY, question])
        whole = len(here.upstream.last["messages"])
        if blocks := more.pop("content", None):
            question = {"role": "user", "content": [*blocks, {"type": "text", "text": "What now?"}]}
        asked(client, [*HISTORY, question], **more)
        assert 5 < len(here.upstream.last["messages"]) < whole - 5 < len(HISTORY)
