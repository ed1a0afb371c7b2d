"""The adapters' contract with the conversation graph of LangGraph: our nodes in a graph with tools."""

from langchain_core.messages import AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from pagefile.integrations.langgraph import ConversationNodes, ConversationState
from pagefile.testing.contracts.adapters import AdapterContract, AdapterDriver, Outcome

from .langchain_model import Scripted, Trip


def _graph(nodes, task, saver):
    tools = {tool.__name__: tool for tool in task.tools}

    def run_tools(state):
        calls = state["messages"][-1].tool_calls
        if any(call["name"] in task.approved for call in calls):
            interrupt("approve?")
        results = [
            ToolMessage(tools[call["name"]](**call["args"]), tool_call_id=call["id"], name=call["name"])
            for call in calls
        ]
        return {"messages": results}

    builder = StateGraph(ConversationState)
    for name in ("recall", "generate", "persist"):
        builder.add_node(name, nodes.node(name))
    builder.add_node("tools", run_tools)
    builder.add_edge(START, "recall")
    builder.add_edge("recall", "generate")
    builder.add_conditional_edges(
        "generate",
        lambda state: "tools" if getattr(state["messages"][-1], "tool_calls", None) else "persist",
        ["tools", "persist"],
    )
    builder.add_edge("tools", "generate")
    builder.add_edge("persist", END)
    return builder.compile(checkpointer=saver)


class LangGraph(AdapterDriver):
    framework, package = "LangGraph", "langgraph"

    def __init__(self, memory):
        super().__init__(memory)
        self.saver = InMemorySaver()

    def _config(self, task):
        return {"configurable": {"thread_id": task.conversation}}

    async def run(self, task):
        asked = {
            "messages": [HumanMessage(task.prompt)],
            "conversation_id": task.conversation,
            "user_id": task.user,
        }
        return await self._invoked(task, asked)

    async def retry(self, task):
        return await self._invoked(task, None)  # the thread has the message already

    async def resume(self, task):
        return await self._invoked(task, Command(resume=True))

    async def _invoked(self, task, given):
        model = Scripted(player=task.player)
        if task.structured:
            model = RunnableLambda(lambda messages: Trip(**task.player.next(str(messages)).value))
        graph = _graph(ConversationNodes(self.memory, model, system_message="Help."), task, self.saver)
        if task.stream:
            pieces = [
                chunk.text
                async for chunk, _ in graph.astream(given, self._config(task), stream_mode="messages")
                if isinstance(chunk, AIMessageChunk) and chunk.text
            ]
            return Outcome("".join(pieces), pieces)
        state = await graph.ainvoke(given, self._config(task))
        return Outcome(str(state["messages"][-1].content), waits="__interrupt__" in state)

    async def saved(self, task):
        return str([one async for one in self.saver.alist(self._config(task))])


class TestLangGraph(AdapterContract):
    driver = LangGraph
