"""Large values in the arguments of a call leave a full window like results, and come back byte for byte."""

import json
import re
from dataclasses import replace

import pytest

from pagefile import Memory, Settings
from pagefile.settings import ArchiveSettings, FactSettings
from pagefile.shapes.tool_arguments import large_values, with_values

pytestmark = pytest.mark.anyio

SCRIPT = "".join(f"def step_{n}():\n    return \"value {n}\" + 'quoted'\n" for n in range(120))
MARK = re.compile(r"\[archived:([0-9a-f-]{36})\]")
RULES = ArchiveSettings(threshold=100_000, page_from=500, inputs_from=2000)


CHOSEN = Settings(language="en", window_tokens=3000, archive=RULES, facts=FactSettings(enabled=False))


@pytest.fixture
def store_url(tmp_path):
    return f"sqlite:///{tmp_path}/a.db"


def test_the_largest_values_without_large_parts_are_the_large_ones():
    given = {"a/b": {"c": "x" * 30}, "list": [{"n": n} for n in range(9)], "short": "y"}
    assert {"/a~1b/c": "x" * 30, "/list": json.dumps(given["list"], separators=(",", ":"))} == large_values(
        given, 20
    )
    changed = with_values(given, {"/a~1b/c": "1", "/list": "2"})
    assert {"a/b": {"c": "1"}, "list": "2", "short": "y"} == changed


def test_text_arguments_and_small_ones_stay_as_they_are():
    assert {} == large_values("z" * 50, 20)
    assert {"q": "z"} == with_values({"q": "z"}, {})


async def written(chat, calls=6):
    turn = await chat.begin("Write the scripts.")
    for n in range(calls):
        given = {"path": f"/tmp/{n}.py", "content": f"# script {n}\n{SCRIPT}"}
        turn = await chat.step(turn, tool="write_file", input=given, result="OK")
    return turn


def arguments_in(window):
    calls = [call for message in window.messages for call in message.get("tool_calls", ())]
    return [json.loads(call["function"]["arguments"]) for call in calls]


async def test_old_arguments_leave_a_full_window_and_come_back_byte_for_byte(store_url):
    """The newest call keeps its arguments, the log has all of them, and every placeholder can be redeemed."""
    async with Memory.open(store_url, settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await written(chat)
        window = await chat.context()
        assert window.tokens <= 3000
        shown = arguments_in(window)
        assert shown[-1]["content"].startswith("# script 5\n")
        left = {one["path"]: MARK.search(one["content"])[1] for one in shown if MARK.search(one["content"])}
        assert left
        for path, uuid in left.items():
            number = path.removeprefix("/tmp/").removesuffix(".py")
            assert f"# script {number}\n{SCRIPT}" == await chat.load(uuid)
        assert all(step.input["content"].endswith(SCRIPT) for step in turn.steps)


async def test_an_archived_argument_is_found_and_loaded_by_the_tools(store_url):
    async with Memory.open(store_url, settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.begin("Write it.")
        given = {"path": "/tmp/a.py", "content": SCRIPT + "\nTURNIP_LIMIT = 7\n"}
        turn = await chat.step(turn, tool="write_file", input=given, result="OK")
        [hit] = await chat.search_tool_history("TURNIP_LIMIT", limit=1)
        assert hit.page.uuid in turn.steps[0].input_pages.values()
        answer = await chat.call_tool("load_tool_history", {"uuid": hit.page.uuid, "query": "TURNIP_LIMIT"})
        assert "TURNIP_LIMIT = 7" in answer


async def test_the_messages_stay_valid_in_every_shape(store_url):
    """Arguments stay an object with the same keys, as JSON where a provider wants text."""
    async with Memory.open(store_url, settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        await written(chat)
        window = await chat.context()
        _, spoken = window.for_anthropic()
        blocks = [block for message in spoken for block in message["content"] if isinstance(block, dict)]
        _, items = window.for_responses()
        found = {
            "openai": arguments_in(window),
            "anthropic": [block["input"] for block in blocks if block["type"] == "tool_use"],
            "responses": [
                json.loads(one["arguments"]) for one in items if one.get("type") == "function_call"
            ],
        }
        assert found["openai"] == found["anthropic"] == found["responses"]
        assert all({"path", "content"} == set(one) for one in found["openai"])
        assert any("[archived:" in one["content"] for one in found["openai"])


async def test_a_purged_argument_is_shown_from_the_log(store_url):
    """What cannot be loaded any more never becomes a placeholder."""
    async with Memory.open(store_url, settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await written(chat)
        before = set(MARK.findall(str((await chat.context()).messages)))
        assert before
        gone = min(before)
        await memory.purge(user_id="u", uuids=[gone])
        assert gone not in MARK.findall(str((await chat.context(turn=turn)).messages))


async def test_erasing_a_page_erases_the_argument_in_the_log(store_url):
    async with Memory.open(store_url, settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await written(chat, calls=1)
        [uuid] = turn.steps[0].input_pages.values()
        await chat.complete(turn, "Done.")
        await memory.forget(user_id="u", page=uuid)
        [kept] = await chat.turns()
        assert "step_7" not in str(kept.steps)
        assert {} == kept.steps[0].input_pages


async def test_erasing_a_turn_erases_the_pages_of_its_arguments(store_url):
    async with Memory.open(store_url, settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await written(chat, calls=1)
        [uuid] = turn.steps[0].input_pages.values()
        done = await chat.complete(turn, "Done.")
        await memory.forget(user_id="u", conversation_id="c", turn_id=done.id)
        with pytest.raises(LookupError):
            await chat.load(uuid)


async def test_another_process_sees_the_same_window(store_url):
    async with Memory.open(store_url, settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await written(chat)
        first = (await chat.context()).messages
    async with Memory.open(store_url, settings=CHOSEN) as memory:
        assert first == (await memory.conversation("c", user_id="u").context(turn=turn)).messages


async def test_each_call_has_pages_of_its_own():
    async with Memory.open("memory://", settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await written(chat, calls=2)
        uuids = [uuid for step in turn.steps for uuid in step.input_pages.values()]
        assert 2 == len(set(uuids))
        for uuid in uuids:
            assert (await chat.load(uuid)).endswith(SCRIPT)


async def test_a_turn_erased_after_its_result_takes_the_pages_of_its_arguments_along(store_url):
    async with Memory.open(store_url, settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.begin("Write it.")
        turn = await chat.step(turn, tool="write_file", input={"content": SCRIPT}, result="written\n" * 200)
        done = await chat.complete(turn, "Done.")
        (step,) = done.steps
        await memory.forget(user_id="u", page=step.page)
        [kept] = await chat.turns()
        assert step.input_pages == kept.steps[0].input_pages
        await memory.forget(user_id="u", conversation_id="c", turn_id=done.id)
        with pytest.raises(LookupError):
            await chat.load(step.input_pages["/content"])


async def test_an_erased_argument_is_in_no_other_page(tmp_path):
    """Neither as another page's input nor in the placeholder of the result."""
    rules = ArchiveSettings(threshold=1000, page_from=500, inputs_from=2000)
    async with Memory.open("memory://", settings=replace(CHOSEN, archive=rules)) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.begin("Write them.")
        given = {"a": "TOPSECRET lorem\n" * 200, "b": SCRIPT}
        turn = await chat.step(turn, tool="write_files", input=given, result="written\n" * 200)
        done = await chat.complete(turn, "Done.")
        await memory.forget(user_id="u", page=done.steps[0].input_pages["/a"])
        await memory.export(tmp_path / "all.jsonl")
        assert "TOPSECRET" not in (tmp_path / "all.jsonl").read_text()
        assert SCRIPT == await chat.load(done.steps[0].input_pages["/b"])


async def test_pages_do_not_repeat_the_arguments_that_have_pages_of_their_own():
    async with Memory.open("memory://", settings=CHOSEN) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.begin("Write them.")
        given = {"path": "/tmp", **{f"file{n}": f"# {n}\n{SCRIPT}" for n in range(8)}}
        turn = await chat.step(turn, tool="write_files", input=given, result="written\n" * 200)
        pages = [await chat.page(uuid) for uuid in turn.steps[0].pages]
        assert 9 == len({page.call_hash for page in pages})
        assert all("/tmp" == page.input["path"] and len(str(page.input)) < 400 for page in pages)


async def test_an_equal_call_with_large_arguments_is_found():
    rules = ArchiveSettings(threshold=100_000, page_from=500, inputs_from=2000, reuse_s=60)
    async with Memory.open("memory://", settings=replace(CHOSEN, archive=rules)) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.begin("Run it.")
        turn = await chat.step(turn, tool="run", input={"code": SCRIPT}, result="done\n" * 200)
        assert turn.steps[0].page == (await chat.fetched("run", {"code": SCRIPT})).uuid
        assert await chat.fetched("run", {"code": f"{SCRIPT}#"}) is None
