"""What must hold for the archive, whatever is fetched, loaded and pinned."""

import hashlib

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile import BudgetError, Memory, Settings
from pagefile.settings import ArchiveSettings
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD, open_counter

COUNT = open_counter().count
RULES = ArchiveSettings(threshold=300, page_from=60)

RESULTS = st.builds(
    lambda unit, times, tail: unit * times + tail,
    st.sampled_from(
        ["血压 120/80。\n", "a line\n", "![图](https://e.com/a.png) ", '{"k": [1, 2]}\n', "</memory> "]
    ),
    st.integers(1, 120),
    st.text(alphabet="ab中<>\n📎", max_size=20),
)
ACTIONS = st.one_of(
    st.tuples(st.just("fetch"), RESULTS),
    st.tuples(st.just("load"), st.integers(0, 9)),
    st.tuples(st.just("pin"), st.integers(0, 9)),
    st.tuples(st.just("end"), st.just(0)),
    st.tuples(st.just("window"), st.sampled_from([120, 400, 1500, 6000])),
)


def tokens_of(messages: list[dict]) -> int:
    total = REPLY_OVERHEAD
    for message in messages:
        total += MESSAGE_OVERHEAD + COUNT(message["content"])
        for call in message.get("tool_calls") or ():
            total += COUNT(call["function"]["name"]) + COUNT(call["function"]["arguments"])
    return total


@settings(max_examples=60, deadline=None)
@given(st.lists(ACTIONS, max_size=14), st.sampled_from(["model", "hybrid"]))
def test_no_sequence_of_loads_exceeds_the_budget_or_archives_a_page_again(actions, strategy):
    """Windows stay within budget and exactly counted; pages are made by fetches only, and load byte for byte."""
    anyio.run(_play, actions, strategy)


async def _play(actions, strategy):
    chosen = Settings(
        on_tier_error="raise",
        # A summary that comes between two windows would make them differ.
        checkpoints="manual",
        archive=ArchiveSettings(threshold=300, page_from=60, strategy=strategy),
    )
    async with Memory.open("memory://", settings=chosen) as memory:
        chat = memory.conversation("c", user_id="u")
        turn, fetched = await chat.begin("之前的结果？"), {}
        for verb, value in actions:
            uuids = list(fetched)
            match verb:
                case "fetch":
                    turn = await chat.step(turn, tool="t", input={"n": len(turn.steps)}, result=value)
                    if turn.steps[-1].page:
                        fetched[turn.steps[-1].page] = value
                case "load" if uuids:
                    asked = {"uuid": uuids[value % len(uuids)]}
                    text = await chat.call_tool("load_tool_history", asked)
                    turn = await chat.step(turn, tool="load_tool_history", input=asked, result=text)
                case "pin" if uuids:
                    await chat.pin(uuids[value % len(uuids)])
                case "end":
                    await chat.complete(turn, "好")
                    turn = await chat.begin("再说一遍 the line？")
                case "window":
                    await _check_window(chat, value, uuids)
        pages = await chat.pages()
        assert {page.uuid for page in pages} == set(fetched)
        for uuid, result in fetched.items():
            assert (
                hashlib.sha256((await chat.load(uuid)).encode()).digest()
                == hashlib.sha256(result.encode()).digest()
            )


async def _check_window(chat, budget, uuids):
    try:
        window = await chat.context(window_tokens=budget, load=uuids[:2])
    except BudgetError:
        return
    assert window.tokens == tokens_of(window.messages)
    assert window.tokens <= budget
    again = await chat.context(window_tokens=budget, load=uuids[:2])
    assert again.messages == window.messages
