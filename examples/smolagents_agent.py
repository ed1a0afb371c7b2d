"""A smolagents agent with memory; smolagents waits in threads, so its memory is a `BlockingMemory`.

Run it with `python examples/smolagents_agent.py`; the model follows a script, everything else is real.
"""

import tempfile

from smolagents import ToolCallingAgent
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, Model
from smolagents.monitoring import LogLevel

from pagefile import BlockingMemory
from pagefile.integrations.smolagents import PagefileMemory


class Scripted(Model):
    """In place of a chat model: looks whether memory told it what to avoid."""

    def generate(self, messages, **more):
        known = any("allergic to hazelnuts" in str(message.content) for message in messages)
        text = "Not the hazelnut cake!" if known else "Take the hazelnut cake."
        function = ChatMessageToolCallFunction(name="final_answer", arguments={"answer": text})
        return ChatMessage(
            "assistant", None, tool_calls=[ChatMessageToolCall(function, "call_1", "function")]
        )


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        BlockingMemory.open(f"sqlite:///{folder}/agent.db") as memory,
    ):
        memory.remember("The user is allergic to hazelnuts.", user_id="ada")
        agent = ToolCallingAgent([], Scripted(), verbosity_level=LogLevel.OFF)
        agent = PagefileMemory(memory, "dinner", user_id="ada").attach(agent)
        print(agent.run("Which cake? Am I allergic to hazelnuts?", reset=False))
        print("memory in the steps:", "<memory>" in str(agent.memory.get_full_steps()))
        print([turn.assistant for turn in memory.conversation("dinner", user_id="ada").turns()])


main()
