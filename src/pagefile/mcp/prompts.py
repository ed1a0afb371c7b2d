"""Prompts that a user picks in a client: what memory knows, put before the model as a message."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from mcp_types import Prompt, PromptArgument

from pagefile.errors import InvalidArgumentError
from pagefile.mcp.calling import Caller
from pagefile.mcp.tools import CONTEXT_TOOL, FACTS_TOOL, RECALL_TOOL

_CONVERSATION = PromptArgument(
    name="conversation_id", description="Which conversation; the current one when left out.", required=False
)
_LEFT_OFF = "What did we do last, and what is open?"


async def _continued(caller: Caller, given: Mapping[str, str]) -> str:
    asked = {"query": given.get("task") or _LEFT_OFF, "conversation_id": given.get("conversation_id")}
    found = await caller.told(CONTEXT_TOOL, asked)
    return f"Let us continue where we left off. This is what memory has about it:\n\n{found}"


async def _recalled(caller: Caller, given: Mapping[str, str]) -> str:
    about = given["about"]
    found = await caller.told(RECALL_TOOL, {"query": about})
    return f"This is what we said before about {about!r}:\n\n{found}\n\nSum it up, with dates."


async def _known(caller: Caller, given: Mapping[str, str]) -> str:
    found = await caller.told(FACTS_TOOL, {})
    return f"This is what is remembered about me:\n\n{found}\n\nList it, and ask me what is out of date."


@dataclass(frozen=True, slots=True)
class PromptRow:
    prompt: Prompt
    text: Callable[[Caller, Mapping[str, str]], Awaitable[str]]


_PROMPTS = (
    PromptRow(
        Prompt(
            name="continue",
            title="Continue where we left off",
            description="What was done last and what is open, from the turns, memories and facts of a conversation.",
            arguments=[
                PromptArgument(name="task", description="What to go on with.", required=False),
                _CONVERSATION,
            ],
        ),
        _continued,
    ),
    PromptRow(
        Prompt(
            name="recall",
            title="What did we say about …?",
            description="Past turns about a subject, from all conversations.",
            arguments=[PromptArgument(name="about", description="The subject.", required=True)],
        ),
        _recalled,
    ),
    PromptRow(
        Prompt(name="facts", title="What do you know about me?", description="The remembered facts."), _known
    ),
)
PROMPTS: Mapping[str, PromptRow] = {row.prompt.name: row for row in _PROMPTS}


async def text_of(caller: Caller, name: str, given: Mapping[str, str]) -> str:
    """The message of a prompt."""
    row = PROMPTS.get(name)
    if row is None:
        raise InvalidArgumentError(f"There is no prompt {name!r}: it is one of {', '.join(PROMPTS)}.")
    missing = [
        one.name for one in row.prompt.arguments or () if one.required and not given.get(one.name, "").strip()
    ]
    if missing:
        raise InvalidArgumentError(f"The prompt {name!r} needs {', '.join(missing)}.")
    return await row.text(caller, given)
