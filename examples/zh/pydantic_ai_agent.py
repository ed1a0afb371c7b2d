"""An agent in PydanticAI that does not look twice, and whose history stays slim.

Run it with `python examples/zh/pydantic_ai_agent.py`; the model is PydanticAI's own for tests and follows a script, everything else is real.
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

CHAPTERS = [{"title": f"第{n}章 {'接地' if n == 7 else '安全'}措施", "page": n * 10} for n in range(1, 3001)]
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
        "content": "挂接地线时，先接接地端，后接导体端。" + "（略）" * 4000,
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
        return ModelResponse([ToolCallPart("get_toc", {"reg_id": "angui_2024"})])
    if returned[0].tool_name == "get_toc" and "先接接地端" not in memory:
        return ModelResponse([ToolCallPart("read_page_range", {"reg_id": "angui_2024", "start": 70})])
    return ModelResponse([TextPart("先接接地端，后接导体端。")])


async def main() -> None:
    agent = Agent(FunctionModel(model), instructions="你是电力安全助手。", tools=[get_toc, read_page_range])
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(f"sqlite:///{folder}/agent.db") as memory:
            await memory.remember("用户是变电站值班员", user_id="ada")
            capability = PagefileMemory(memory, user_id="ada", window_tokens=32_000)
            saved = b"[]"
            for question in ("接地线怎么挂？", "再说一遍，接地线先接哪一端？"):
                print(question)
                result = await agent.run(
                    question,
                    message_history=ModelMessagesTypeAdapter.validate_json(saved),
                    conversation_id="安规",
                    capabilities=[capability],
                )
                saved = ModelMessagesTypeAdapter.dump_json(result.all_messages())
                print(" ", result.output)
                print(
                    f"  saved history: {len(saved.decode()):,} characters, memory in it: {saved.count(b'<memory>')}"
                )
            turns = await memory.conversation("安规", user_id="ada").turns()
            print("tools reached:", ", ".join(reached))
            print(
                "turns in the log:",
                ", ".join(f"{turn.status} with {len(turn.steps)} steps" for turn in turns),
            )


anyio.run(main)
