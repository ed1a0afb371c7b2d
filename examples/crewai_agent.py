"""A CrewAI agent whose LLM has memory; CrewAI waits in threads, so its memory is a `BlockingMemory`.

Run it with `python examples/crewai_agent.py`; the model follows a script, everything else is real.
"""

import os
import tempfile

# CrewAI reports its use unless this is set.
os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"  # noqa: TID251 - CrewAI's own switches

from crewai import Agent, BaseLLM
from crewai.events import crewai_event_bus

from pagefile import BlockingMemory
from pagefile.integrations.crewai import PagefileMemory


class Scripted(BaseLLM):
    """In place of a chat model: looks whether memory told it what to avoid."""

    def call(self, messages, tools=None, **more):
        known = any("allergic to hazelnuts" in str(message["content"]) for message in messages)
        return "Not the hazelnut cake!" if known else "Take the hazelnut cake."

    async def acall(self, messages, tools=None, **more):
        return self.call(messages)

    def supports_function_calling(self):
        return True

    def get_context_window_size(self):
        return 100_000


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        BlockingMemory.open(f"sqlite:///{folder}/agent.db") as memory,
        crewai_event_bus.scoped_handlers(),  # no boxes on the console
    ):
        memory.remember("The user is allergic to hazelnuts.", user_id="ada")
        remembered = PagefileMemory(memory, "dinner", user_id="ada")
        llm = remembered.llm(Scripted(model="scripted"))
        agent = Agent(
            role="waiter", goal="serve", backstory="You are a waiter.", llm=llm, tools=remembered.tools()
        )
        result = agent.kickoff("Which cake? Am I allergic to hazelnuts?")
        print(result.raw)
        print("memory in the result:", "<memory>" in str(result.messages))
        print([turn.assistant for turn in memory.conversation("dinner", user_id="ada").turns()])


main()
