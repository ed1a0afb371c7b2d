"""A LlamaIndex chat engine over Pagefile's `BaseMemory`.

Run it with `python examples/llama_index_agent.py`; the model follows a script, everything else is real.
"""

import tempfile

import anyio
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import CustomLLM

from pagefile import Memory
from pagefile.integrations.llama_index import PagefileChatMemory


class Scripted(CustomLLM):
    """In place of a chat model: looks whether memory told it what to avoid."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True)

    async def achat(self, messages, **more) -> ChatResponse:
        known = any("allergic to hazelnuts" in (message.content or "") for message in messages)
        text = "Not the hazelnut cake!" if known else "Take the hazelnut cake."
        return ChatResponse(message=ChatMessage(role="assistant", content=text))

    def complete(self, prompt, formatted=False, **more) -> CompletionResponse:
        raise NotImplementedError

    stream_complete = complete


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(f"sqlite:///{folder}/agent.db") as memory:
            await memory.remember("The user is allergic to hazelnuts.", user_id="ada")
            chat = PagefileChatMemory.of(memory, "dinner", user_id="ada")
            engine = SimpleChatEngine.from_defaults(
                llm=Scripted(), memory=chat, system_prompt="You are a waiter."
            )
            print(await engine.achat("Which cake? Am I allergic to hazelnuts?"))
            saved = "".join(message.content or "" for message in await chat.aget_all())
            print("memory in the history:", "<memory>" in saved)
            print([turn.assistant for turn in await memory.conversation("dinner", user_id="ada").turns()])


anyio.run(main)
