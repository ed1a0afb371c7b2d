"""Whether a real model picks the right tool: `python -m tests.mcp.real_model http://127.0.0.1:8792/v1 [MODEL]`.

Sends the tools as the server lists them, with one sentence of a user each, to an OpenAI-compatible endpoint, and prints what was called.
"""

import json
import sys

import httpx

from pagefile.mcp.server import INSTRUCTIONS
from pagefile.mcp.tools import listed

#: What a user says, and the tools that are right.
SAID = (
    ("Please remember that I am allergic to peanuts.", {"remember"}),
    ("What did we decide last week about the database migration?", {"recall", "context"}),
    ("What do you know about me? List everything that is remembered.", {"facts"}),
    ("You remember that I live in Rome. That is wrong: I live in Bonn.", {"correct"}),
    ("Forget the fact that I drink coffee. It is not true any more.", {"retract"}),
    ("Show me the whole result behind 📎 [archived:8a7f0f6e-1c5e-4a51-9d0e-5b1f2f3c4d5e].", {"load_tool_history"}),
    ("One of the tools returned the list of open ports earlier. Find it in the archived results.", {"search_tool_history"}),
    ("Let us continue with the parser where we left off yesterday.", {"context", "recall"}),
    ("Save this exchange to the log: I said 'ship it', you said 'done'.", {"record"}),
    ("From now on always answer me in French; keep that in mind for later.", {"remember"}),
)  # fmt: skip


def called(client, model, said):
    """The name and the arguments of the model's first call; None if it calls nothing."""
    tools = [
        {
            "type": "function",
            "function": {"name": one.name, "description": one.description, "parameters": one.input_schema},
        }
        for one in listed("en")
    ]
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": said}]
    asked = {"model": model, "messages": messages, "tools": tools, "temperature": 0, "max_tokens": 120}
    answer = client.post("/chat/completions", json=asked).raise_for_status().json()["choices"][0]["message"]
    calls = answer.get("tool_calls") or []
    return (
        (calls[0]["function"]["name"], calls[0]["function"]["arguments"])
        if calls
        else (None, answer.get("content"))
    )


def main(url, model="local"):
    right = 0
    with httpx.Client(base_url=url, timeout=600, trust_env=False) as client:
        for said, wanted in SAID:
            name, given = called(client, model, said)
            right += name in wanted
            print(
                "✓" if name in wanted else "✗",
                name,
                json.dumps(given, ensure_ascii=False)[:110],
                "←",
                said,
                flush=True,
            )
    print(f"{right} of {len(SAID)} right")


if __name__ == "__main__":
    main(*sys.argv[1:])
