"""What the OpenAI Agents SDK documents of its sessions, case by case: no suite of it is published."""

import asyncio
import json

import pytest
from agents import Agent, RunConfig, Runner, SessionSettings
from agents.memory import Session
from agents.testing import ScriptedModel, assistant_message

from pagefile import Memory
from pagefile.integrations.openai_agents import PagefileSession

QUIET = RunConfig(tracing_disabled=True)


@pytest.fixture(params=["memory", "sqlite"])
async def memory(request, tmp_path):
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/s.db"
    async with Memory.open(url, embedder="none") as opened:
        yield opened


@pytest.fixture
def session(memory):
    return PagefileSession(memory, "s1", user_id="ada")


def said(role, content):
    return {"role": role, "content": content}


async def run(session, prompt, answer="ok"):
    model = ScriptedModel([[assistant_message(answer)]])
    result = await Runner.run(Agent("a", model=model), prompt, session=session, run_config=QUIET)
    return result, model.last_call.input


async def test_it_is_a_session(session):
    assert isinstance(session, Session)
    assert "s1" == session.session_id


async def test_a_new_session_is_empty(session):
    assert [] == await session.get_items()
    assert await session.pop_item() is None


async def test_items_come_back_as_they_were_added(session):
    items = [
        said("user", "Hello"),
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc=="},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "result"},
        {"type": "message", "role": "assistant", "id": "m1", "status": "completed",
         "content": [{"type": "output_text", "text": "Hi", "annotations": []}]},
    ]  # fmt: skip
    await session.add_items(items)
    assert items == await session.get_items()


async def test_items_are_appended_in_order(session):
    await session.add_items([said("user", "1"), said("assistant", "2")])
    await session.add_items([said("user", "3")])
    assert ["1", "2", "3"] == [item["content"] for item in await session.get_items()]


async def test_adding_nothing_changes_nothing(session):
    await session.add_items([])
    assert [] == await session.get_items()


@pytest.mark.parametrize(
    ("limit", "expected"), [(0, []), (1, ["5"]), (3, ["3", "4", "5"]), (9, ["1", "2", "3", "4", "5"])]
)
async def test_a_limit_gives_the_latest_in_order(session, limit, expected):
    await session.add_items([said("user", str(number)) for number in range(1, 6)])
    assert expected == [item["content"] for item in await session.get_items(limit)]


async def test_settings_limit_what_is_read(memory):
    session = PagefileSession(memory, "s1", user_id="ada", session_settings=SessionSettings(limit=2))
    await session.add_items([said("user", str(number)) for number in range(4)])
    assert ["2", "3"] == [item["content"] for item in await session.get_items()]
    assert ["1", "2", "3"] == [item["content"] for item in await session.get_items(3)]


async def test_pop_takes_the_last_item(session):
    await session.add_items([said("user", "1"), said("user", "2")])
    assert said("user", "2") == await session.pop_item()
    assert [said("user", "1")] == await session.get_items()
    assert said("user", "1") == await session.pop_item()
    assert await session.pop_item() is None


async def test_clear_empties_and_the_session_goes_on(session):
    await session.add_items([said("user", "1")])
    await session.clear_session()
    assert [] == await session.get_items()
    await session.add_items([said("user", "2")])
    assert [said("user", "2")] == await session.get_items()


async def test_sessions_are_apart(memory):
    one, other = PagefileSession(memory, "s1", user_id="ada"), PagefileSession(memory, "s2", user_id="ada")
    await one.add_items([said("user", "one")])
    await other.add_items([said("user", "other")])
    await other.clear_session()
    assert [said("user", "one")] == await one.get_items()


async def test_users_are_apart(memory):
    ada, bob = (PagefileSession(memory, "s1", user_id=user) for user in ("ada", "bob"))
    await ada.add_items([said("user", "mine")])
    assert [] == await bob.get_items()


async def test_a_session_is_found_again(memory):
    await PagefileSession(memory, "s1", user_id="ada").add_items([said("user", "1")])
    assert [said("user", "1")] == await PagefileSession(memory, "s1", user_id="ada").get_items()


async def test_any_text_survives(session):
    texts = ["中文 🌊", 'quotes " and \\', "O'Brien; DROP TABLE items; --", "line\nbreak\ttab", "x" * 100_000]
    await session.add_items([said("user", text) for text in texts])
    assert texts == [item["content"] for item in await session.get_items()]


async def test_concurrent_writers_lose_nothing(session):
    await asyncio.gather(*(session.add_items([said("user", str(number))]) for number in range(15)))
    assert {str(number) for number in range(15)} == {item["content"] for item in await session.get_items()}


async def test_a_runner_remembers(session):
    await run(session, "What city is the Golden Gate Bridge in?", "San Francisco")
    _, sent = await run(session, "What state is it in?", "California")
    assert ["What city is the Golden Gate Bridge in?", "What state is it in?"] == [
        item["content"] for item in sent if item.get("role") == "user"
    ]
    assert "San Francisco" in json.dumps(sent)


async def test_a_runner_stores_the_input_and_the_answer(session):
    await run(session, "Hello", "Hi")
    first, second = await session.get_items()
    assert said("user", "Hello") == first
    assert ("assistant", "Hi") == (second["role"], second["content"][0]["text"])


async def test_a_runner_stores_lists_of_items(session):
    config = RunConfig(tracing_disabled=True, session_input_callback=lambda history, new: history + new)
    model = ScriptedModel([[assistant_message("ok")]])
    await Runner.run(
        Agent("a", model=model),
        [said("user", "one"), said("user", "two")],
        session=session,
        run_config=config,
    )
    assert ["one", "two"] == [item["content"] for item in await session.get_items() if item["role"] == "user"]


async def test_a_streamed_run_is_stored(session):
    model = ScriptedModel([[assistant_message("streamed")]])
    streamed = Runner.run_streamed(Agent("a", model=model), "Hello", session=session, run_config=QUIET)
    async for _ in streamed.stream_events():
        pass
    assert ["user", "assistant"] == [item["role"] for item in await session.get_items()]


async def test_limits_hold_for_runs(memory):
    session = PagefileSession(memory, "s1", user_id="ada")
    for number in range(4):
        await run(session, f"question {number}", f"answer {number}")
    model = ScriptedModel([[assistant_message("ok")]])
    config = RunConfig(tracing_disabled=True, session_settings=SessionSettings(limit=2))
    await Runner.run(Agent("a", model=model), "last", session=session, run_config=config)
    sent = json.dumps(model.last_call.input)
    assert "question 3" in sent
    assert "question 2" not in sent
