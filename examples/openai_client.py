"""OpenAI's own client with memory: run it twice, and the second run knows what was said in the first.

    pip install pagefile openai
    export OPENAI_API_KEY=sk-…
    python examples/openai_client.py "My name is Ada and I live in Porto."
    python examples/openai_client.py "Where do I live?"

OPENAI_BASE_URL names another server with the same API. The memory is the file openai-memory.db;
`pagefile serve --db openai-memory.db` shows it in a browser. With `Anthropic()` it works the same way.
"""

import sys

from openai import OpenAI

from pagefile import BlockingMemory, wrap

MODEL = "gpt-5"


def main(questions: list[str]) -> None:
    with BlockingMemory.open("sqlite:///openai-memory.db") as memory:
        client = wrap(OpenAI(), memory, user_id="ada")
        messages: list = [{"role": "system", "content": "Answer in one sentence."}]
        for question in questions:
            messages.append({"role": "user", "content": question})
            raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=messages)
            answer = raw.parse().choices[0].message.content
            messages.append({"role": "assistant", "content": answer})
            print(f"> {question}\n{answer}")
            # A request that memory had nothing to do with has no window.
            tokens = raw.headers.get("x-pagefile-window-tokens", "no")
            print(f"  {tokens} tokens, {raw.headers.get('x-pagefile-status')}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["My name is Ada and I live in Porto.", "Where do I live?"])
