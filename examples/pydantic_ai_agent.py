"""An agent in PydanticAI that does not look twice, and whose history stays slim.

Run it with `python examples/pydantic_ai_agent.py`; the model is PydanticAI's own for tests and follows a script, everything else is real.
"""

import tempfile

import anyio
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pagefile import Memory
from pagefile.integrations.pydantic_ai import PagefileMemory

CHAPTERS = [
    {"title": f"Chapter {n}: {'earthing' if n == 7 else 'safety'} measures", "page": n * 10}
    for n in range(1, 3001)
]
reached: list[str] = []


def get_toc(reg_id: str) -> dict:
    """The table of contents of a regulation: far too long for any window."""
    reached.append("get_toc")
    return {"reg_id": reg_id, "items": CHAPTERS}


def read_page_range(reg_id: str, start: int) -> dict:
    """Pages of a regulation."""
    reached.append("read_page_range")
    return {
        "source": f"{reg_id} P{start}",
        "content": "Attach an earthing cable at the earth end first, then at the conductor."
        + " (More follows.)" * 800,
    }


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stands for a chat model: it asks for the contents, then for a page unless memory holds what it says."""
    parts = [part for message in messages for part in message.parts]
    memory = next(
        (str(p.content) for p in parts if isinstance(p, UserPromptPart) and "<memory>" in p.content), ""
    )
    returned = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    print(
        f"  model call: {sum(len(str(p)) for p in messages[-1].parts):7,} characters new, memory {len(memory):5,}"
    )
    if not returned:
        return ModelResponse([ToolCallPart("get_toc", {"reg_id": "safety_2024"})])
    if returned[0].tool_name == "get_toc" and "earth end first" not in memory:
        return ModelResponse([ToolCallPart("read_page_range", {"reg_id": "safety_2024", "start": 70})])
    return ModelResponse([TextPart("The earth end first, then the conductor.")])


async def main() -> None:
    agent = Agent(
        FunctionModel(model),
        instructions="You help with electrical safety.",
        tools=[get_toc, read_page_range],
    )
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(f"sqlite:///{folder}/agent.db") as memory:
            await memory.remember("The user works in a substation", user_id="ada")
            capability = PagefileMemory(memory, user_id="ada", window_tokens=32_000)
            saved = b"[]"
            for question in (
                "How do I attach an earthing cable?",
                "Once more: which end of the earthing cable comes first?",
            ):
                print(question)
                result = await agent.run(
                    question,
                    message_history=ModelMessagesTypeAdapter.validate_json(saved),
                    conversation_id="safety",
                    capabilities=[capability],
                )
                saved = ModelMessagesTypeAdapter.dump_json(result.all_messages())
                print(" ", result.output)
                print(
                    f"  saved history: {len(saved.decode()):,} characters, memory in it: {saved.count(b'<memory>')}"
                )
            turns = await memory.conversation("safety", user_id="ada").turns()
            print("tools reached:", ", ".join(reached))
            print(
                "turns in the log:",
                ", ".join(f"{turn.status} with {len(turn.steps)} steps" for turn in turns),
            )


anyio.run(main)
