"""A turn of many calls and long messages: what leaves a full window is named there, and comes back byte for byte."""

import json
import re

import pytest

from pagefile import Memory, Settings
from pagefile.settings import ArchiveSettings, FactSettings
from pagefile.shapes.renderer import given_back
from pagefile.window.forms import Leaving
from pagefile.window.wording import WORDINGS

pytestmark = pytest.mark.anyio

RULES = ArchiveSettings(threshold=100_000, page_from=200, inputs_from=2000)
CHOSEN = Settings(language="en", window_tokens=4000, archive=RULES, facts=FactSettings(enabled=False))
PAGE = re.compile(r"\[archived:([0-9a-f-]{36})\]")
HANDLE = re.compile(r'load_tool_history\(uuid="(turn:[^"]+)"\)')


def report(n, lines=150):
    """What a planner or a reporter says in the middle of a run."""
    cited = f"See [Guide {n} to the harbour](https://example.org/{n}).\n"
    return (
        f"# Report {n}\n" + cited + "".join(f"Finding {n}.{line} is about berths.\n" for line in range(lines))
    )


async def reported(chat, reports=4):
    turn = await chat.begin("Write about the harbour.")
    for n in range(reports):
        turn = await chat.extend(turn, [{"role": "assistant", "content": report(n)}])
    return turn


async def called(chat, calls):
    turn = await chat.begin("Look at every berth.")
    for n in range(calls):
        text = f"Berth {n} is let to ship {n * 7}.\n" + f"Nothing else is known about berth {n}.\n" * 12
        turn = await chat.step(turn, tool="look", input={"berth": n, "why": "to know its ship"}, result=text)
    return turn


def said_by(window, role):
    return [message["content"] for message in window.messages if message["role"] == role]


async def test_long_messages_of_a_running_turn_leave_and_come_back_byte_for_byte():
    """Without it, speech alone exceeds the window and there is no window at all."""
    async with Memory.open("memory://", settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await reported(chat)
        window = await chat.context()
        assert window.tokens <= 4000
        texts = said_by(window, "assistant")
        assert texts[-1] == report(3)
        handles = [found[1] for text in texts if (found := HANDLE.search(text))]
        assert [f"turn:{turn.id}#{n}" for n in (1, 2)] == handles
        assert texts[2:] == [report(2), report(3)]
        for n, handle in enumerate(handles):
            assert report(n) == await chat.load(handle)
            answer = await chat.call_tool("load_tool_history", {"uuid": handle, "query": f"Finding {n}.77"})
            assert f"Finding {n}.77 is about berths." in answer
        assert any("paged out" in verdict.note for verdict in window.receipt)


async def test_the_message_is_still_there_when_the_turn_is_done_and_in_another_conversation_it_is_not():
    async with Memory.open("memory://", settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await reported(chat, reports=2)
        done = await chat.complete(turn, "That was it.")
        assert report(1) == await chat.load(f"turn:{done.id}#2")
        with pytest.raises(LookupError):
            await chat.load(f"turn:{done.id}#9")
        with pytest.raises(LookupError):
            await memory.conversation("d", user_id="u").load(f"turn:{done.id}#2")
        await memory.forget(user_id="u", conversation_id="c", turn_id=done.id)
        with pytest.raises(LookupError):
            await chat.load(f"turn:{done.id}#2")


async def test_sources_that_a_report_cites_stay_when_it_leaves():
    """They are what the next report cites again."""
    async with Memory.open("memory://", settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.begin("Write about the harbour.")
        for n in range(4):
            found = f"berth {n} is free\n" * 80
            turn = await chat.step(turn, tool="search", input={"q": f"harbour {n}"}, result=found)
        for n in range(6):
            turn = await chat.extend(turn, [{"role": "assistant", "content": report(n, 80)}])
        shown = "\n".join(str(message["content"]) for message in (await chat.context()).messages)
        assert "Finding 0.57 is" not in shown
        assert "[Guide 0 to the harbour](https://example.org/0)" in shown


async def test_of_200_calls_the_oldest_are_named_and_the_newest_stay():
    """The window is useful at every call: what has no room is named or, beyond that, counted, and everything can be loaded."""
    async with Memory.open("memory://", settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await called(chat, 200)
        window = await chat.context()
        assert window.tokens <= 4000
        calls = [call for message in window.messages for call in message.get("tool_calls", ())]
        newest = [json.loads(call["function"]["arguments"])["berth"] for call in calls]
        assert list(range(200 - len(newest), 200)) == newest
        assert len(newest) >= 8
        lines = next(text for text in said_by(window, "user") if text.startswith("Earlier calls"))
        named = PAGE.findall(lines)
        assert named == [step.page for step in turn.steps[200 - len(newest) - len(named) : 200 - len(newest)]]
        assert len(named) >= 5
        missing = 200 - len(newest) - len(named)
        assert f"- {missing} more archived results, search_tool_history finds them" in lines
        for step in turn.steps:
            assert step.result == await chat.load(step.page)
        assert any("only named" in verdict.note for verdict in window.receipt)
        [hit] = await chat.search_tool_history("Berth 3 is let to ship 21", limit=1)
        assert hit.page.uuid == turn.steps[3].page


async def test_calls_are_named_in_few_large_steps():
    """Between two of them the beginning of the prompt stays as it is, which prompt caches need."""
    async with Memory.open("memory://", settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await called(chat, 40)
        changes, before = 0, []
        for n in range(100):
            text = f"Berth {n} is let to ship {n * 7}.\n" + f"Nothing else is known about berth {n}.\n" * 12
            turn = await chat.step(turn, tool="look", input={"berth": n, "why": "to know"}, result=text)
            messages = (await chat.context()).messages
            changes += messages[: len(before)] != before
            before = messages
        assert changes < 100 / 3


async def test_the_messages_stay_valid_in_every_shape_when_calls_are_only_named():
    async with Memory.open("memory://", settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        await called(chat, 100)
        window = await chat.context()
        _, spoken = window.for_anthropic()
        blocks = [block for message in spoken for block in message["content"] if isinstance(block, dict)]
        uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert uses == [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        _, items = window.for_responses()
        calls = [one["call_id"] for one in items if one.get("type") == "function_call"]
        assert calls == [one["call_id"] for one in items if one.get("type") == "function_call_output"]
        assert len(uses) == len(calls) >= 8


async def test_another_process_sees_the_same_window_when_calls_are_only_named(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    async with Memory.open(url, settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.begin("Look.")
        for n in range(60):
            turn = await chat.step(turn, tool="look", input={"berth": n}, result=f"ship {n}\n" * 60)
            first = (await chat.context()).messages
    async with Memory.open(url, settings=CHOSEN) as memory:
        assert first == (await memory.conversation("c", user_id="u").context(turn=turn)).messages


async def test_a_message_of_several_texts_leaves_as_one_line():
    """Also where it is given back as it came: a provider refuses a block without a text."""
    async with Memory.open("memory://", settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        texts = [report(0), "Second part."]
        content = [{"type": "text", "text": text, "citations": None} for text in texts]
        content.append({"type": "tool_use", "id": "t", "name": "look", "input": {}})
        answer = {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": "Seen."}],
        }
        said = [{"role": "assistant", "content": content}, answer]
        turn = await chat.extend(await chat.begin("Write about the harbour."), said)
    leaving = Leaving({}, speech={(turn.id, 1): "What it said left."})
    short = leaving.shortened(turn, len, WORDINGS["en"])
    message = given_back(short.messages, short.steps, {})[1]
    assert ["What it said left."] == [one["text"] for one in message["content"] if one["type"] == "text"]
    assert ["look"] == [one["name"] for one in message["content"] if one["type"] == "tool_use"]
