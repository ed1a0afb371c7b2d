"""A LangChain agent with memory, across conversations.

Run it with `python examples/langchain_agent.py`; the model is a stand-in, put `init_chat_model("…")` in its place.
"""

import tempfile

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from pagefile import BlockingMemory
from pagefile.integrations.langchain import PagefileMiddleware


def main(model: BaseChatModel) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        BlockingMemory.open(f"sqlite:///{folder}/agent.db") as memory,
    ):
        agent = create_agent(
            model, system_prompt="You help in a pharmacy.", middleware=[PagefileMiddleware(memory)]
        )
        for thread, text in [
            ("Monday", "My name is Ada, and I am allergic to penicillin. Please remember that."),
            ("Friday", "I have a sore throat. Can I take amoxicillin, or am I allergic to it?"),
        ]:
            config = {"configurable": {"thread_id": thread, "user_id": "ada"}}
            out = agent.invoke({"messages": [("user", text)]}, config)
            print(f"{thread} user: {text}\n{thread} assistant: {out['messages'][-1].text}")
            print(f"{thread} state: {len(out['messages'])} messages\n")
        print("Facts:", "; ".join(fact.text for fact in memory.facts("ada")))


class StandIn(BaseChatModel):
    """Stands for a chat model with tools: it remembers what it is asked to, and answers from memory when it finds something there."""

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        known = next((message.text for message in messages if message.name == "memory_context"), "")
        if "Please remember" in messages[-1].text:
            call = {"name": "remember", "args": {"text": "Ada is allergic to penicillin"}, "id": "call_1"}
            answer = AIMessage("", tool_calls=[call])
        elif "allergic to penicillin" in known and messages[-1].type != "tool":
            answer = AIMessage("No: you are allergic to penicillin, so do not take amoxicillin.")
        else:
            answer = AIMessage("I will remember that.")
        return ChatResult(generations=[ChatGeneration(message=answer)])


main(StandIn())
