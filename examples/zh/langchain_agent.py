"""A LangChain agent with memory, across conversations.

Run it with `python examples/zh/langchain_agent.py`; the model is a stand-in, put `init_chat_model("…")` in its place.
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
        agent = create_agent(model, system_prompt="你是药房助手。", middleware=[PagefileMiddleware(memory)])
        for thread, text in [
            ("周一", "我叫小林，我对青霉素过敏，请记住。"),
            ("周五", "嗓子疼，能吃阿莫西林吗？我过敏吗？"),
        ]:
            config = {"configurable": {"thread_id": thread, "user_id": "lin"}}
            out = agent.invoke({"messages": [("user", text)]}, config)
            print(f"{thread} 用户: {text}\n{thread} 助手: {out['messages'][-1].text}")
            print(f"{thread} 状态: {len(out['messages'])} 条消息\n")
        print("事实:", "；".join(fact.text for fact in memory.facts("lin")))


class StandIn(BaseChatModel):
    """Stands for a chat model with tools: it remembers what it is asked to, and answers from memory when it finds something there."""

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        known = next((message.text for message in messages if message.name == "memory_context"), "")
        if "请记住" in messages[-1].text:
            call = {"name": "remember", "args": {"text": "小林对青霉素过敏"}, "id": "call_1"}
            answer = AIMessage("", tool_calls=[call])
        elif "青霉素过敏" in known and messages[-1].type != "tool":
            answer = AIMessage("小林，您对青霉素过敏，不要吃阿莫西林。")
        else:
            answer = AIMessage("好的，已记住。")
        return ChatResult(generations=[ChatGeneration(message=answer)])


main(StandIn())
