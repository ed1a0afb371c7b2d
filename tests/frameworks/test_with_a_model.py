"""Every integration once with a model that answers by itself: what memory puts into its requests is enough for it.

A reader stands for the model. With $PAGEFILE_BENCH_MODEL, the address of a server with OpenAI's protocol, a real one is asked.
"""

import os
from importlib import import_module

import httpx
import pytest

from pagefile.testing.contracts.adapters import AdapterDriver, Player, Say, Task

from .attacked import call
from .conftest import NEEDED, is_installed

URL = os.environ.get("PAGEFILE_BENCH_MODEL")
NAME = os.environ.get("PAGEFILE_BENCH_MODEL_NAME", "qwen2.5-coder-1.5b")
OWNERS = ("Ivers", "Novak", "Quist", "Sorel", "Tamm")
#: A question, and what its answer has to say: by a fact, and by what a tool returned in an earlier turn.
ASKED = (("Which nuts am I allergic to?", "hazelnut"), ("Who has locker 7?", OWNERS[1]))

#: Document 002's graph puts messages into prompts: what a tool returned in an earlier turn is a call of the model's away.
MESSAGES_ALONE = {"test_langgraph.py"}


def lockers(floor: str) -> str:
    """The lockers of a floor.

    Args:
        floor: its name.
    """
    rows = [
        f"Locker {n} on the {floor} floor belongs to {OWNERS[n % 5 - 1]} until further notice."
        for n in range(1, 61)
    ]
    return "\n".join(rows)


def answered(request: str) -> Say:
    """What the model says to a request, which it gets as text; the reader knows what is in it."""
    if URL is None:
        _, said = next((question, said) for question, said in reversed(ASKED) if question in request)
        return Say(said if said in request else "I do not know.")
    asked = "Answer the last question of this conversation in a few words."
    messages = [{"role": "system", "content": asked}, {"role": "user", "content": request}]
    body = {"model": NAME, "messages": messages, "temperature": 0, "max_tokens": 40}
    response = httpx.post(f"{URL}/chat/completions", json=body, timeout=3600).raise_for_status()
    return Say(response.json()["choices"][0]["message"]["content"])


def driver_of(file: str) -> type[AdapterDriver]:
    module = import_module(f"tests.frameworks.{file.removesuffix('.py')}")
    [driver] = [
        one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, AdapterDriver) and one.__module__ == module.__name__
    ]
    return driver


@pytest.mark.parametrize("file", [file for file, module in NEEDED.items() if is_installed(module)])
async def test_a_model_answers_from_memory(file, memory, blocking):
    driver = driver_of(file)
    agent = driver(blocking if driver.blocking else memory)
    fetching = Player([call("lockers", floor="second"), Say("I have read the list.")])
    await agent.run(Task("Please read the list of lockers on the second floor.", fetching, tools=[lockers]))
    for question, said in ASKED[: 1 if file in MESSAGES_ALONE else None]:
        outcome = await agent.run(Task(question, Player([answered]), tools=[lockers]))
        print(f"{driver.framework}: {question} {outcome.answer}")
        assert said in outcome.answer
    await agent.close()
