"""What adapters hand over, in the shape that holds all of it."""

import pytest

from pagefile import Memory
from pagefile.edge.recorder import Asked, Called, Returned, Said, Thought, begun, written

pytestmark = pytest.mark.anyio
CALL = Called("look", {"at": 1}, "id1")
SEALED = Thought("hm", {"signature": "EqQB", "type": "text"}, anthropic=True)
FOREIGN = Thought("plan", {"type": "reasoning", "id": "rs_1"})


async def turn_of(memory, *happened):
    chat = memory.conversation("c")
    turn = await written(chat, await begun(chat, Asked(("q",)), "t1"), happened)
    return chat, turn


async def test_an_error_leaves_a_turn_in_its_shape():
    """It is an error for whoever can be told so."""
    async with Memory.open("memory://") as memory:
        chat, turn = await turn_of(memory, Said((CALL,)), Returned(CALL, ("boom",), error=True))
        assert {message.shape for message in turn.messages} <= {"openai", "plain"}
        window = await chat.context(turn=turn)
        result = window.for_anthropic()[1][-1]["content"][0]
        assert (result["content"], result["is_error"]) == ("boom", True)
        assert window.messages[-1] == {"role": "tool", "tool_call_id": "id1", "content": "boom"}


async def test_what_another_model_thought_is_not_sent_to_anthropic():
    """It has no signature of Anthropic's, and is kept all the same."""
    async with Memory.open("memory://") as memory:
        said = Said((SEALED, FOREIGN, CALL))
        chat, turn = await turn_of(memory, said, Returned(CALL, ("there",)))
        thoughts = [
            block
            for message in (await chat.context(turn=turn)).for_anthropic()[1]
            for block in message["content"]
            if block["type"] == "thinking"
        ]
        assert thoughts == [{"type": "thinking", "thinking": "hm", "signature": "EqQB"}]
        kept = (await chat.messages(turn))[1]
        assert (kept["reasoning"], kept["reasoning_details"]) == ("plan", [dict(FOREIGN.sealed)])
