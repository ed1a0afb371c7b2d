"""The conversation graph with a loop: the model calls tools until it can answer, and looks once more at what it wrote.

Run it with `python examples/conversation_graph.py`; the model is scripted, everything else is real.
"""

import tempfile

import anyio
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph

from pagefile import Memory, Settings
from pagefile.integrations.langgraph import ConversationNodes, ConversationState

FILMS = {"Nolan": "Inception (2010) and Interstellar (2014)", "Kubrick": "2001: A Space Odyssey (1968)"}


def search_films(director: str) -> str:
    """A tool."""
    return FILMS.get(director, "nothing found")


def model(messages: list) -> AIMessage | str:
    """Stands for a chat model with tools: it searches for the director it knows of, and answers with what it found."""
    asked = next(one.text for one in reversed(messages) if one.type == "human")
    found = [one.text for one in messages if one.type == "tool" and one.name != "reflect"]
    told = " ".join(one.text for one in messages)
    if not found:
        director = next((name for name in FILMS if name in asked), None)
        director = director or next(name for name in FILMS if name in told)
        return AIMessage("", tool_calls=[{"id": "1", "name": "search_films", "args": {"director": director}}])
    if "Name the years" in told or "remember" in asked:
        return f"He directed {found[-1]}."
    return f"He directed {found[-1].split(' (')[0]} and others."


def tools(state: ConversationState) -> dict:
    """Answers every call of the last message."""
    calls = state["messages"][-1].tool_calls
    return {
        "messages": [ToolMessage(search_films(**call["args"]), tool_call_id=call["id"]) for call in calls]
    }


def reflect(state: ConversationState) -> dict:
    """Reflection: an answer without years is sent back, once."""
    print(f"  reflection: {state['messages'][-1].text} → Name the years")
    return {"messages": [ToolMessage("Name the years", tool_call_id="1", name="reflect")]}


def next_node(state: ConversationState) -> str:
    last = state["messages"][-1]
    if last.tool_calls:
        return "tools"
    reflected = any(message.name == "reflect" for message in state["messages"])
    return "persist" if "(" in last.text or reflected else "reflect"


def build(memory: Memory):
    nodes = ConversationNodes(memory, model, system_message="You know films.")
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
    print(f"User: {text}")
    asked = {
        "messages": [HumanMessage(text, id=turn_id)],
        "conversation_id": "films",
        "user_id": "ada",
        "turn_id": turn_id,
    }
    async for event in graph.astream(asked, stream_mode="custom"):
        if event["type"] == "token":
            print(f"  says: {event['text']}")
        else:
            print(f"  {event['node']}")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(
            f"sqlite:///{folder}/films.db", settings=Settings(), embedder="none"
        ) as memory:
            graph = build(memory)
            await ask(graph, "What has Nolan directed?", "turn-1")
            await ask(graph, "Do you remember what he directed?", "turn-2")
            for turn in await memory.conversation("films", user_id="ada").turns():
                tools_used = ", ".join(step.tool for step in turn.steps)
                print(f"{turn.seq}. {turn.user} [{tools_used}] {turn.assistant}")


anyio.run(main)
