"""A request fits its window: older exchanges leave, whole, and the running one is shown as far as it goes."""

import anyio
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from pagefile.integrations.pydantic_ai import PagefileMemory
from pagefile.integrations.pydantic_ai.requests import Fit, Kept, fitted, key_of, question_at

from .agents import Script, pairs_are_whole, reloaded


def tokens(memory, sent) -> int:
    count = memory.engine.counter.count
    return sum(count(text) for text in [sent.instructions, *sent.said, *sent.returned, *sent.answered])


async def test_old_exchanges_leave(memory):
    """Thirty exchanges with calls and a small window: the newest stay, nothing is split, and the model is told."""
    script = Script(*[move for n in range(30) for move in (("look", {"n": n}), f"回答{n}" + "好" * 100)])
    agent = script.agent(
        PagefileMemory(memory, user_id="ada", window_tokens=4000, tools=False), system_prompt="SYS"
    )

    @agent.tool_plain
    def look(n: int) -> str:
        return f"看到{n}" + "甲" * 200

    history = None
    for n in range(30):
        said = "我的工号是 A-4711" if n == 0 else f"问题{n}"
        result = await agent.run(said, message_history=history, conversation_id="c")
        history = reloaded(result.all_messages())
        await memory.settle()
    assert 120 == len(history)
    last = script.sent[-1]
    assert all(tokens(memory, sent) <= 4000 for sent in script.sent)
    assert all(pairs_are_whole(sent.messages) for sent in script.sent)
    assert "问题29" == last.said[-1]
    assert "问题28" in last.said
    assert "我的工号是 A-4711" not in last.said
    assert "A-4711" in last.instructions.partition("<summary>")[2]
    assert "轮对话未包含在本次请求中" in last.said[0]
    assert all(1 == sent.text.count("SYS") for sent in script.sent)
    assert isinstance(last.messages[0].parts[0], SystemPromptPart)
    # They leave several at a time, so that the beginning of the prompt stays the same for a while.
    every = [sent.said[0] for sent in script.sent]
    beginnings = every[30:]
    assert len(set(beginnings)) <= len(beginnings) / 3
    # The first and the last of these may have begun before, or go on.
    assert all(every.count(one) >= 2 for one in beginnings[:-1])


async def test_a_long_run(memory):
    """Forty calls in one turn: the newest results are there in full, older ones as notes, the oldest steps leave."""
    script = Script(*[("read", {"n": n}) for n in range(40)], "好")
    agent = script.agent(PagefileMemory(memory, user_id="ada", window_tokens=6000, tools=False))

    @agent.tool_plain
    def read(n: int) -> str:
        return f"第{n}页 " + "安全措施" * 700

    await agent.run("读完全书", conversation_id="c")
    last = script.sent[-1]
    assert all(tokens(memory, sent) <= 6000 for sent in script.sent)
    assert all(pairs_are_whole(sent.messages) for sent in script.sent)
    assert last.returned[-1].startswith("第39页")
    assert last.returned[0].startswith("📎")
    assert any("读完全书" == text for text in last.said)
    (turn,) = await memory.conversation("c", user_id="ada").turns()
    assert 40 == len(turn.steps)


async def test_the_result_for_the_question(memory):
    """A result that is too long for the window comes as the passages that answer, with the way to the rest."""
    script = Script(("read", {}), "好")
    agent = script.agent(PagefileMemory(memory, user_id="ada", window_tokens=3000, tools=False))

    @agent.tool_plain
    def read() -> str:
        return "\n\n".join(
            f"第{n}条 " + ("验电器应在有效期内" if n == 777 else "普通内容") * 3 for n in range(1500)
        )

    await agent.run("验电器有什么要求？")
    (shown,) = script.sent[1].returned
    assert shown.startswith("📎")
    assert "验电器应在有效期内" in shown
    assert tokens(memory, script.sent[1]) <= 3000


# -- always ---------------------------------------------------------------------------------------------------------------

TEXT = st.text("甲乙 ab\n", max_size=60)


@st.composite
def exchanges(draw):
    """Histories as frameworks make them: questions, rounds of one or more calls, answers; some end in the middle."""
    messages, kept, calls = [], {}, 0
    for number in range(draw(st.integers(1, 6))):
        system = [SystemPromptPart("SYS")] if number == 0 and draw(st.booleans()) else []
        messages.append(ModelRequest([*system, UserPromptPart(f"Q{number} " + draw(TEXT))]))
        for _ in range(draw(st.integers(0, 4))):
            ids = [f"id{calls + n}" for n in range(draw(st.integers(1, 3)))]
            calls += len(ids)
            messages.append(ModelResponse([ToolCallPart("t", {"q": draw(TEXT)}, call) for call in ids]))
            returned = [ToolReturnPart("t", draw(TEXT), call) for call in ids]
            for part in returned:
                if draw(st.booleans()):
                    full = draw(TEXT) * 5
                    kept[key_of(part)] = Kept(full, len(full), str(part.content))
            steering = [UserPromptPart("by the way")] if draw(st.booleans()) else []
            messages.append(ModelRequest([*returned, *steering]))
        if draw(st.booleans()):
            messages.append(ModelResponse([TextPart("A " + draw(TEXT))]))
    return messages, kept


async def passages(kept, room):
    return kept.full[: max(0, room - 60)]


@given(exchanges(), st.integers(0, 1500))
def test_whatever_the_history(history, room):
    """Pairs stay whole, the question stays, system prompts lead, the newest is kept, and the given messages are not touched."""
    messages, kept = history
    before_text = repr(messages)
    start = question_at(messages, None)
    fit = Fit(room, len, kept, passages)
    found = anyio.run(fitted, messages[:start], messages[start], messages[start + 1 :], fit)
    assert pairs_are_whole(found)
    # The question, the last round and two notes are never given up; they take less than this.
    assert fit.cost(found) <= max(room, 1100)
    assert before_text == repr(messages)
    asked = [
        str(part.content) for message in found for part in message.parts if part.part_kind == "user-prompt"
    ]
    question = next(part.content for part in messages[start].parts if part.part_kind == "user-prompt")
    assert question in asked
    assert messages[-1].kind == found[-1].kind
    system = [part for message in messages for part in message.parts if part.part_kind == "system-prompt"]
    assert system == [part for part in found[0].parts if part.part_kind == "system-prompt"]
    # Without holes: what is left of the questions is the end of what was there.
    numbers = [text.split()[0] for text in asked if text.startswith("Q")]
    assert numbers == [f"Q{n}" for n in range(6)][: int(question[1]) + 1][-len(numbers) :]


@given(exchanges())
def test_with_room_for_all(history):
    """Everything is there, and what this run fetched is there in full."""
    messages, kept = history
    start = question_at(messages, None)
    found = anyio.run(
        fitted, messages[:start], messages[start], messages[start + 1 :], Fit(10**6, len, kept, passages)
    )
    assert messages[:start] == found[:start]
    shown = [part for message in found[start:] for part in message.parts if part.part_kind == "tool-return"]
    given_parts = [
        part for message in messages[start:] for part in message.parts if part.part_kind == "tool-return"
    ]
    assert [kept[key_of(p)].full if key_of(p) in kept else p.content for p in given_parts] == [
        part.content for part in shown
    ]


async def test_a_placeholder_is_not_cut_for_a_result_without_a_page():
    """The last resort shortens what could not be archived; a placeholder still says what it stands for."""
    question = ModelRequest([UserPromptPart("Q0 both?")])
    calls = ModelResponse([ToolCallPart("look", {}, tool_call_id=name) for name in ("paged", "bare")])
    short = "placeholder " * 90
    returned = ModelRequest(
        [
            ToolReturnPart("look", text, tool_call_id=name)
            for name, text in (("paged", short), ("bare", "x " * 400))
        ]
    )
    kept = {key_of(returned.parts[0]): Kept("the page " * 900, 8100, short)}
    found = await fitted([], question, [calls, returned], Fit(1500, len, kept, passages))
    texts = [part.content for part in found[-1].parts]
    assert short == texts[0]
    assert len(texts[1]) < 800


async def test_every_request_says_the_day(memory):
    """Among the instructions, where it stays the same all day."""
    script = Script("好")
    await script.agent(PagefileMemory(memory, user_id="ada", tools=False)).run("你好", conversation_id="c")
    assert "今天是 20" in script.sent[0].instructions
