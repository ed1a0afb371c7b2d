"""Document 004's middleware: puts the relevant memory before the messages of every model call.

It returns a view for one call and never changes the given messages. For LangChain agents use
`pagefile.integrations.langchain`, which also archives, recalls and compacts.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, cast

from pagefile.errors import PagefileError, SettingsError
from pagefile.settings import FactSettings
from pagefile.standalone.agent_memory import part_of
from pagefile.standalone.fact_injection import (
    FactRanker,
    Similarities,
    format_memory_for_injection,
    get_memory_data,
)

logger = logging.getLogger("pagefile")

#: Marks our own message, which is replaced in the next call.
MEMORY_NAME = "memory_context"
_ROLES = {"user": "human", "assistant": "ai"}


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """LangChain's message class, for use without LangChain."""

    content: str
    name: str | None = None
    type: str = "system"


def extract_text(msg: object) -> str:
    """The text of a message: its content, or the text parts of multimodal content."""
    content = part_of(msg, "content")
    if isinstance(content, str):
        return content.strip()
    parts = cast("Sequence[object]", content) if isinstance(content, list | tuple) else ()
    texts = [part if isinstance(part, str) else part_of(part, "text") for part in parts]
    return " ".join(text.strip() for text in texts if isinstance(text, str) and text.strip())


def _extract_conversation_context(messages: Sequence[object], max_turns: int = 3) -> str:
    """What the last turns are about: the user's words and final answers; no tools, and nothing written by memory."""
    parts: list[str] = []
    turns = 0
    for msg in reversed(messages):
        if max_turns <= turns:
            break
        kind = _kind(msg)
        final = kind == "ai" and not part_of(msg, "tool_calls")
        if part_of(msg, "name") == MEMORY_NAME or not (kind == "human" or final):
            continue
        text = extract_text(msg)
        if text:
            parts.append(text)
            turns += kind == "human"
    return " ".join(reversed(parts))


def memory_config(config: FactSettings | Mapping[str, Any] | None = None) -> FactSettings:
    """Settings from a parsed `config.yaml` (or its `memory:` section); missing ones have their defaults.

    Keys that are not document 004's are ignored, so old files keep working.
    """
    if config is None:
        return FactSettings()
    if isinstance(config, FactSettings):
        return config
    section = config.get("memory", config)
    if not isinstance(section, Mapping):
        raise SettingsError(f"`memory:` must be a section, not {type(section).__name__}.")
    given = cast("Mapping[str, Any]", section)
    known = {setting.name for setting in fields(FactSettings)}
    return FactSettings(**{key: value for key, value in given.items() if key in known and value is not None})


class MemoryMiddleware:
    """Injects memory before every model call, not once per run, so that each call sees what is relevant by then.

    `source` is anything `get_memory_data` accepts: a path, a function, or the data. `role="user"` sends memory as a user message,
    for servers that refuse a second system message.
    """

    def __init__(
        self,
        source: object = None,
        *,
        config: FactSettings | Mapping[str, Any] | None = None,
        role: Literal["system", "user"] = "system",
        similarities: Similarities | None = None,
    ) -> None:
        self.config = memory_config(config)
        self._source = source
        self._role = role
        self._similarities = similarities
        self._ranker = FactRanker()

    def before_model(self, state: Mapping[str, Any], runtime: object = None) -> dict[str, Any] | None:
        """The messages for this call with memory first, or None if there is nothing to change.

        A memory message of an earlier call is removed first. If memory cannot be read, the call goes on without it.
        """
        given = cast("Sequence[object]", state["messages"])
        messages = [msg for msg in given if part_of(msg, "name") != MEMORY_NAME]
        content = self._content(messages)
        if content:
            return {"messages": [self._message(f"<memory>\n{content}\n</memory>"), *messages]}
        return {"messages": messages} if len(messages) < len(given) else None

    def _content(self, messages: Sequence[object]) -> str:
        if not self.config.enabled:
            return ""
        try:
            data = get_memory_data(self._source)
        except (PagefileError, OSError, ValueError):
            logger.exception("memory could not be read; going on without it")
            return ""
        return format_memory_for_injection(
            data,
            max_tokens=self.config.max_injection_tokens,
            current_context=_extract_conversation_context(messages, self.config.max_context_turns),
            similarity_weight=self.config.similarity_weight,
            confidence_weight=self.config.confidence_weight,
            similarities=self._similarities,
            ranker=self._ranker,
        )

    def _message(self, content: str) -> object:
        made = _langchain_message(self._role)
        if made is not None:
            return made(content=content, name=MEMORY_NAME)
        return SystemMessage(content, MEMORY_NAME, "system" if self._role == "system" else "human")


def _langchain_message(role: str) -> Any:
    try:
        from langchain_core import messages  # noqa: PLC0415 - optional, only needed when a message is made
    except ImportError:
        return None
    return messages.SystemMessage if role == "system" else messages.HumanMessage


def _kind(msg: object) -> object:
    """The type of a LangChain message; an OpenAI-style dict has a role instead."""
    kind = part_of(msg, "type")
    role = part_of(msg, "role")
    return kind if kind is not None or not isinstance(role, str) else _ROLES.get(role, role)
