"""The conversation graph with a loop: the model calls tools until it can answer, and looks once more at what it wrote.

Run it with `python examples/zh/conversation_graph.py`; the model is scripted, everything else is real.
"""

import tempfile

import anyio
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph

from pagefile import Memory, Settings
from pagefile.integrations.langgraph import ConversationNodes, ConversationState

FILMS = {"诺兰": "盗梦空间（2010）、星际穿越（2014）", "库布里克": "2001太空漫游（1968）"}


def search_films(director: str) -> str:
    """A tool."""
    return FILMS.get(director, "没有找到")


def model(messages: list) -> AIMessage | str:
    """Stands for a chat model with tools: it searches for the director it knows of, and answers with what it found."""
    asked = next(one.text for one in reversed(messages) if one.type == "human")
    found = [one.text for one in messages if one.type == "tool" and one.name != "reflect"]
    told = " ".join(one.text for one in messages)
    if not found:
        director = next((name for name in FILMS if name in asked), None)
        director = director or next(name for name in FILMS if name in told)
        return AIMessage("", tool_calls=[{"id": "1", "name": "search_films", "args": {"director": director}}])
    if "请注明年份" in told or "记得" in asked:
        return f"他导演了{found[-1]}。"
    return f"他导演了{found[-1].split('（')[0]}等。"


def tools(state: ConversationState) -> dict:
    """Answers every call of the last message."""
    calls = state["messages"][-1].tool_calls
    return {
        "messages": [ToolMessage(search_films(**call["args"]), tool_call_id=call["id"]) for call in calls]
    }


def reflect(state: ConversationState) -> dict:
    """Reflection: an answer without years is sent back, once."""
    print(f"  反思: {state['messages'][-1].text} → 请注明年份")
    return {"messages": [ToolMessage("请注明年份", tool_call_id="1", name="reflect")]}


def next_node(state: ConversationState) -> str:
    last = state["messages"][-1]
    if last.tool_calls:
        return "tools"
    reflected = any(message.name == "reflect" for message in state["messages"])
    return "persist" if "（" in last.text or reflected else "reflect"


def build(memory: Memory):
    nodes = ConversationNodes(memory, model, system_message="你是电影助手。")
    builder = StateGraph(ConversationState)
    for name in ("recall", "generate", "persist"):
        builder.add_node(name, nodes.node(name))
    builder.add_node("tools", tools)
    builder.add_node("reflect", reflect)
    builder.add_edge(START, "recall")
    builder.add_edge("recall", "generate")
    builder.add_conditional_edges("generate", next_node, ["tools", "reflect", "persist"])
    builder.add_edge("tools", "generate")
    builder.add_edge("reflect", "generate")
    builder.add_edge("persist", END)
    return builder.compile()


async def ask(graph, text: str, turn_id: str) -> None:
    print(f"用户: {text}")
    asked = {
        "messages": [HumanMessage(text, id=turn_id)],
        "conversation_id": "films",
        "user_id": "ada",
        "turn_id": turn_id,
    }
    async for event in graph.astream(asked, stream_mode="custom"):
        if event["type"] == "token":
            print(f"  说: {event['text']}")
        else:
            print(f"  {event['node']}")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(
            f"sqlite:///{folder}/films.db", settings=Settings(), embedder="none"
        ) as memory:
            graph = build(memory)
            await ask(graph, "诺兰导演过什么？", "turn-1")
            await ask(graph, "你还记得他导演过什么吗？", "turn-2")
            for turn in await memory.conversation("films", user_id="ada").turns():
                tools_used = ", ".join(step.tool for step in turn.steps)
                print(f"{turn.seq}. {turn.user} [{tools_used}] {turn.assistant}")


anyio.run(main)
