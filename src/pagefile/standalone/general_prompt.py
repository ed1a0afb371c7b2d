"""Document 002's prompt: system message, what is known about the user, the summary, recalled turns, recent messages, question.

The document builds a LangChain template. Here it is a plain list of messages, which every chat model accepts, including LangChain's:
a template would interpret braces typed by a user.
"""

from collections.abc import Iterator, Sequence
from typing import TypedDict

from pagefile.standalone.conversation_store import ConversationMessage
from pagefile.text.clip import cut

MEMORY_HEADING = "长期记忆："
SUMMARY_HEADING = "对话背景："
EPISODES_HEADING = "【相关历史】"
#: The maximum length of recalled turns in a prompt; each side of a turn gets at most a quarter of it.
MAX_EPISODE_CHARS = 1200


class PromptMessage(TypedDict):
    """A message for a chat model."""

    role: str
    content: str


def build_general_prompt(
    system_message: str,
    memory_context: str | None,
    summary: str | None,
    history: Sequence[ConversationMessage] | None,
    question: str,
) -> list[PromptMessage]:
    """The messages to send to a model; None and empty values have no block.

    Recalled messages of the history get a block of their own, a line per turn, so that the recent ones
    stay in sequence.
    """
    recalled = [message for message in history or () if message.get("recalled")]
    recent = [message for message in history or () if not message.get("recalled")]
    blocks = (
        (MEMORY_HEADING, (memory_context or "").strip()),
        (SUMMARY_HEADING, (summary or "").strip()),
        (EPISODES_HEADING, episode_lines(recalled)),
    )
    return [
        _message("system", system_message),
        *(_message("system", f"{heading}\n{body}") for heading, body in blocks if body),
        *(_message(message["role"], message["content"]) for message in recent),
        _message("user", question),
    ]


_build_general_prompt = build_general_prompt


def episode_lines(recalled: Sequence[ConversationMessage]) -> str:
    """A line per turn, `- user → assistant`, as many as fit."""
    lines: list[str] = []
    room = MAX_EPISODE_CHARS
    for pair in pairs(recalled):
        line = "- " + " → ".join(_line(message["content"]) for message in pair)
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines)


def pairs(messages: Sequence[ConversationMessage]) -> Iterator[list[ConversationMessage]]:
    """Groups the messages by turn: each user message begins one."""
    pair: list[ConversationMessage] = []
    for message in messages:
        if pair and (message["role"] == "user" or len(pair) > 1):
            yield pair
            pair = []
        pair.append(message)
    if pair:
        yield pair


def _line(text: str) -> str:
    # On its own line, a text could pass for a block of the prompt.
    return cut(" ".join(text.split()), MAX_EPISODE_CHARS // 4)


def _message(role: str, content: str) -> PromptMessage:
    return {"role": role, "content": content}
