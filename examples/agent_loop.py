"""An agent loop with memory: bulky results leave the window, and the model pages them back in.

Run it with `python examples/agent_loop.py`; the model is scripted, everything else is real.
"""

import json
import tempfile

import anyio

from pagefile import Memory, Settings
from pagefile.standalone import tool_schemas

TOOLS = [
    {"name": "read_log", "description": "Read the server log.", "parameters": {"type": "object"}},
    *tool_schemas("en"),
]


def read_log() -> str:
    """A tool that returns far too much."""
    return (
        "".join(f"12:00:{n % 60:02} INFO request {n} served\n" for n in range(3000))
        + "12:59:59 ERROR disk full\n"
    )


def model(messages: list[dict]) -> dict:
    """Stands for a chat model with tools: it asks for the log once, and loads it again when it only sees a placeholder."""
    question = next(message["content"] for message in reversed(messages) if message["role"] == "user")
    seen = [message["content"] for message in messages if message["role"] == "tool"]
    if not seen:
        return {"tool": "read_log", "arguments": {}}
    if seen[-1].startswith("📎"):
        uuid = seen[-1].split('uuid="')[1].split('"')[0]
        return {"tool": "load_tool_history", "arguments": {"uuid": uuid, "query": "ERROR disk"}}
    error = next(line for line in seen[-1].splitlines() if "ERROR" in line)
    return {"answer": f"{question} It says: {error}"}


async def ask(chat, question: str) -> None:
    turn = await chat.begin(question)
    while True:
        window = await chat.context(instructions="You watch servers.")
        print(f"  {window.tokens:5} tokens in the window")
        step = model(window.messages)
        if "answer" in step:
            await chat.complete(turn, step["answer"])
            print(" ", step["answer"])
            return
        name, arguments = step["tool"], step["arguments"]
        result = read_log() if name == "read_log" else await chat.call_tool(name, arguments)
        print(f"  {name}({json.dumps(arguments)[:40]}): {len(result)} characters")
        turn = await chat.step(turn, tool=name, input=arguments, result=result)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(window_tokens=60_000)
        async with Memory.open(f"sqlite:///{folder}/agent.db", settings=settings) as memory:
            chat = memory.conversation("ops", user_id="ada")
            for question in ("What went wrong?", "What did the log say before?"):
                print(question)
                await ask(chat, question)


anyio.run(main)
