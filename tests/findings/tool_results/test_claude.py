"""Findings F10, F1 and F14 in the Claude Agent SDK: what its hooks leave of a long result, and what they offer."""

import pytest

from pagefile import Memory, Settings
from tests.findings.marks import finding
from tests.heavy import heavy, is_there

from .made import ANSWER, QUESTION, minutes, output_of_tests

if is_there("claude"):
    from pagefile.integrations.claude_agent import ClaudeMemory

pytestmark = heavy("claude")


async def seen_by_claude(prompt: str, tool: str, response: object) -> object:
    """What the hooks hand on of a tool's response, in a session with this prompt."""
    async with Memory.open("memory://", settings=Settings(language="en")) as memory:
        hooks = ClaudeMemory(memory, user_id="ada").hooks()

        async def fire(event, **given):
            return await hooks[event][0].hooks[0]({"session_id": "s", **given}, given.get("tool_use_id"), {})

        await fire("UserPromptSubmit", prompt=prompt)
        answer = await fire(
            "PostToolUse", tool_name=tool, tool_input={"n": 1}, tool_response=response, tool_use_id="t"
        )
    return answer.get("hookSpecificOutput", {}).get("updatedToolOutput", response)


async def check_the_end_is_seen(prompt: str) -> None:
    """The model sees which tests failed and how many passed."""
    response = {"stdout": output_of_tests(), "stderr": "", "interrupted": False}
    seen = await seen_by_claude(prompt, "Bash", response)
    assert "2 failed, 410 passed" in seen["stdout"]
    assert "FAILED tests/test_mod_11.py::test_refund_rounding" in seen["stdout"]


@finding("tool-results-F10")
@pytest.mark.parametrize("prompt", ["run pytest", "跑一下测试，看看哪些失败了"])
async def test_claude_sees_how_the_tests_ended(prompt):
    """Of a long run of tests the model sees which failed and how many passed, whatever the prompt's words."""
    await check_the_end_is_seen(prompt)


@finding("tool-results-F10")
async def test_claude_sees_how_the_tests_ended_when_the_prompt_has_their_words():
    """A prompt that speaks of tests brings the summary of their run."""
    await check_the_end_is_seen("Run the tests and fix what is broken")


@finding("tool-results-F1")
@pytest.mark.parametrize(
    ("tool", "response"),
    [
        ("mcp__docs__fetch", [{"type": "text", "text": '{"url": "https://example.org/a", "content": "%s"}'}]),
        ("mcp__docs__read", [{"type": "text", "text": '[{"type": "text", "text": "%s"}]'}]),
    ],
)
async def test_claude_sees_the_answer_inside_json(tool, response):
    """Of a long text that an MCP tool wraps in JSON the model sees the part that answers the prompt."""
    text = minutes().replace("\n", "\\n")
    wrapped = [{**block, "text": block["text"] % text} for block in response]
    seen = await seen_by_claude(QUESTION, tool, wrapped)
    assert ANSWER in seen[0]["text"]


@finding("tool-results-F14")
async def test_claude_is_offered_the_scenes():
    """The load tool of a Claude agent tells the model in which scenes to load."""
    async with Memory.open("memory://") as memory:
        offered = {tool.name: tool.description for tool in ClaudeMemory(memory, user_id="ada").tools()}
    scenes = (("细节", "asks about details"), ("回顾", "reviewed"), ("刚才", '"just now"'))
    missing = [words for words in scenes if not any(word in offered["load_tool_history"] for word in words)]
    assert [] == missing
