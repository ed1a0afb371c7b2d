"""Findings F3, F9, F18 and F22: a budget for facts is used and kept, and every model call sees what is known by then."""

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from pagefile import Memory, Settings
from pagefile.integrations.langchain import PagefileMiddleware
from pagefile.integrations.pydantic_ai import PagefileMemory
from pagefile.settings import FactSettings
from pagefile.standalone import MemoryMiddleware, _count_tokens, format_memory_for_injection
from tests.findings.marks import finding
from tests.integration.langchain.models import Recorder, calls_tool
from tests.integration.pydantic_ai.agents import Script

FACTS = [
    {"content": f"User fact number {n}: prefers option {n * 7 % 113} over {n * 11 % 97}", "confidence": 0.9}
    for n in range(400)
]
#: What the longest of them costs, with its dash and its line break.
DEAREST = max(_count_tokens(f"- {fact['content']}\n") for fact in FACTS)
THREAD = {"configurable": {"thread_id": "t"}}

# -- F3: the budget is used ----------------------------------------------------------------------------------------------


@finding("tool-results-F3")
@pytest.mark.parametrize("allowed", [50, 100, 200, 500, 1000, 2000])
def test_facts_fill_the_tokens_they_are_given(allowed):
    """With more facts than fit, no more is left free than another fact would take, and nothing goes over."""
    text = format_memory_for_injection({"facts": FACTS}, max_tokens=allowed, current_context="which option?")
    assert allowed - 2 * DEAREST < _count_tokens(text) <= allowed


@finding("tool-results-F3")
def test_the_middleware_fills_the_tokens_it_is_given():
    """Document 004's middleware spends its `max_injection_tokens` when there are facts enough."""
    middleware = MemoryMiddleware({"facts": FACTS}, config={"memory": {"max_injection_tokens": 2000}})
    asked = {"messages": [{"role": "user", "content": "which option do I prefer"}]}
    given = middleware.before_model(asked)
    assert given is not None
    shown = given["messages"][0].content.removeprefix("<memory>\n").removesuffix("\n</memory>")
    assert 2000 - 2 * DEAREST < _count_tokens(shown) <= 2000


@finding("tool-results-F3")
def test_facts_that_fit_are_all_shown():
    """Four facts that take fewer tokens than are allowed are all four shown."""
    told = (
        "Uses Docker for containerization",
        "Prefers pytest for testing",
        "Expert in Python and FastAPI",
        "Likes type hints in Python",
    )
    data = {"facts": [{"content": text, "confidence": 0.9} for text in told]}
    question = "我在做一个 Python 项目 使用 FastAPI 和 SQLAlchemy 怎么写测试？"
    # All four take 31 tokens; 48 is what the documentation's example allows.
    shown = format_memory_for_injection(data, 48, question)
    assert [] == [text for text in told if text not in shown]


# -- F9: what is learnt in a run -----------------------------------------------------------------------------------------

LEARNT = "The user is allergic to penicillin"
ASKED = "What antibiotics may I take? allergic?"


@finding("tool-results-F9")
async def test_langchain_sees_a_fact_that_was_learnt_in_the_run():
    """A fact that a tool keeps is in the memory of the next model call of the same run."""
    model = Recorder(script=[calls_tool("profile"), AIMessage("ok")])
    async with Memory.open("memory://") as memory:
        await memory.remember("The user likes oolong tea", user_id="ada")

        @tool
        async def profile() -> str:
            """Read the profile."""
            await memory.remember(LEARNT, user_id="ada", category="health")
            return "stored"

        agent = create_agent(model, [profile], middleware=[PagefileMiddleware(memory, user_id="ada")])
        await agent.ainvoke({"messages": [HumanMessage(ASKED)]}, THREAD)
    seen = ["penicillin" in "".join(message.text for message in call) for call in model.calls]
    assert [False, True] == seen


@finding("tool-results-F9")
async def test_pydantic_ai_sees_a_fact_that_was_learnt_in_the_run():
    """A fact that a tool keeps is in the memory of the next model call of the same run."""
    script = Script(("profile", {}), "ok")
    async with Memory.open("memory://") as memory:
        await memory.remember("The user likes oolong tea", user_id="ada")

        async def profile() -> str:
            await memory.remember(LEARNT, user_id="ada", category="health")
            return "stored"

        agent = script.agent(PagefileMemory(memory, user_id="ada", conversation_id="c"))
        agent.tool_plain(profile)
        await agent.run(ASKED)
    assert [False, True] == ["penicillin" in sent.text for sent in script.sent]


@finding("tool-results-F9")
def test_the_standalone_middleware_sees_a_fact_that_was_learnt_in_the_run():
    """Document 004's middleware chooses again before every model call."""
    facts = [{"content": "The user likes oolong tea", "confidence": 0.9}]
    middleware = MemoryMiddleware(lambda: {"facts": facts})
    first = middleware.before_model({"messages": [HumanMessage(ASKED)]})
    facts.append({"content": LEARNT, "confidence": 0.9})
    second = middleware.before_model({"messages": [HumanMessage(ASKED)]})
    assert first is not None
    assert second is not None
    assert [False, True] == [LEARNT in given["messages"][0].content for given in (first, second)]


# -- F18: the budget is kept ---------------------------------------------------------------------------------------------


async def injected(allowed: int, corrections: int) -> str:
    """The memory block of a window, for a user with 300 facts and some corrections."""
    settings = Settings(language="en", facts=FactSettings(max_injection_tokens=allowed))
    async with Memory.open("memory://", settings=settings) as memory:
        for n in range(300):
            text = f"The user prefers option {n * 7 % 113} to option {n * 11 % 97} in case {n}"
            await memory.remember(text, user_id="u", confidence=0.9)
        for n in range(corrections):
            text = f"Not bike {n} but scooter {n}, the user corrected"
            await memory.remember(text, user_id="u", category="correction")
        window = await memory.conversation("c", user_id="u").context("which option?")
    blocks = [str(message["content"]) for message in window.messages if "<memory>" in str(message["content"])]
    return blocks[0].split("</memory>")[0] + "</memory>" if blocks else ""


@finding("tool-results-F18")
@pytest.mark.parametrize(("allowed", "corrections"), [(2000, 0), (2000, 60), (200, 60), (50, 60)])
async def test_a_window_keeps_the_budget_for_facts(allowed, corrections):
    """The memory in a window has no more tokens than `max_injection_tokens`, corrections included, and uses them."""
    used = _count_tokens(await injected(allowed, corrections))
    assert used <= allowed
    assert used > allowed / 2 or allowed < 100


@finding("tool-results-F18")
async def test_a_budget_of_nothing_injects_nothing():
    """With `max_injection_tokens = 0` no memory is in the window, corrections included."""
    assert "" == await injected(0, corrections=60)


# -- F22: the middleware in a LangChain agent ----------------------------------------------------------------------------


@finding("tool-results-F22")
async def test_the_standalone_middleware_runs_in_a_langchain_agent():
    """`MemoryMiddleware` bears a LangChain name and hook: given to `create_agent`, it injects, and the state stays clean."""
    data = {"facts": [{"content": "Prefers pytest for testing", "confidence": 0.9}]}
    model = Recorder(script=[AIMessage("ok")])
    try:
        agent = create_agent(model, [], middleware=[MemoryMiddleware(data)], checkpointer=InMemorySaver())
    except AttributeError as error:
        raise AssertionError(f"create_agent does not take it: {error}") from error
    for question in ("pytest?", "pytest again?"):
        state = await agent.ainvoke({"messages": [HumanMessage(question)]}, THREAD)
    assert [1, 1] == [
        "\n".join(message.text for message in call).count("Prefers pytest") for call in model.calls
    ]
    assert ["human", "ai", "human", "ai"] == [
        message.type for message in state["messages"] if not message.name
    ]
