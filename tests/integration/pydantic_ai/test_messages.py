"""What the log keeps of a run's messages: words beside calls, thoughts with their seal, images."""

from pydantic_ai import Agent, BinaryContent, ToolReturn
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel

from pagefile.integrations.pydantic_ai import PagefileMemory

PICTURE = BinaryContent(b"not quite a picture", media_type="image/png")
CALLS = [ToolCallPart("look", {"where": where}, f"c_{where}") for where in ("up", "down")]


def look(where: str) -> ToolReturn:
    """Looks."""
    return ToolReturn(return_value=[f"{where}: a cat", PICTURE])


async def ran(memory, *first, prompt="Where is it?"):
    """The conversation of a run that says this first, its turn, and what the model was sent."""
    sent = []

    def respond(messages, info):
        sent.append(list(messages))
        return ModelResponse([*first, *CALLS] if len(sent) == 1 else [TextPart("There.")])

    agent = Agent(FunctionModel(respond), tools=[look], capabilities=[PagefileMemory(memory, user_id="ada")])
    await agent.run(prompt, conversation_id="c")
    await agent.run("And now?", conversation_id="c")
    chat = memory.conversation("c", user_id="ada")
    turn = (await chat.turns())[0]
    assert ("done", "There.") == (turn.status, turn.assistant)
    return chat, turn, sent


async def test_thoughts_of_anthropic_go_back_to_anthropic(memory):
    """A signed thought, the words behind it and both calls come back in one message, as Anthropic gave them."""
    thought = ThinkingPart("Both places.", signature="c2lnbmVk", provider_name="anthropic")
    chat, turn, _ = await ran(memory, thought, TextPart("I look."))
    first = (await chat.messages(turn, shape="anthropic"))[1]["content"]
    signed = {"type": "thinking", "thinking": "Both places.", "signature": "c2lnbmVk"}
    assert [signed, {"type": "text", "text": "I look."}] == first[:2]
    assert ["c_up", "c_down"] == [block["id"] for block in first[2:]]


async def test_thoughts_of_openai_keep_their_seal(memory):
    """A thought is kept with its id and signature, and is no thought of Anthropic's."""
    thought = ThinkingPart("Both places.", id="rs_1", signature="b3BhcXVl", provider_name="openai")
    chat, turn, _ = await ran(memory, thought)
    message = (await chat.messages(turn))[1]
    sealed = {"type": "reasoning", "id": "rs_1", "signature": "b3BhcXVl", "provider_name": "openai"}
    assert ("Both places.", [sealed]) == (message["reasoning_content"], message["reasoning_details"])
    assert "Both places." not in repr(await chat.messages(turn, shape="anthropic"))


async def test_images_of_user_and_tools_are_kept(memory):
    """The bytes of images are in the log, and a run without a history of its own is shown them again."""
    chat, turn, sent = await ran(memory, prompt=["What is this?", PICTURE])
    assert "What is this?\n[image: image/png, 19 bytes]" == turn.user
    assert 3 == repr(await chat.messages(turn, shape="anthropic")).count("bm90IHF1aXRlIGEgcGljdHVyZQ==")
    prompts = [part for message in sent[-1] for part in message.parts if isinstance(part, UserPromptPart)]
    shown = [item for part in prompts for item in part.content if isinstance(item, BinaryContent)]
    assert [PICTURE.data] * 3 == [item.data for item in shown]
