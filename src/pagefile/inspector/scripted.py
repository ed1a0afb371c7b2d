"""A scripted substitute that answers in the playground if no chat model is configured, says so, and pages in what it is asked for."""

import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TypeAlias

import anyio

from pagefile.inspector.page_request import words
from pagefile.ports import ChatModel, Spoken, ToolCall
from pagefile.records import JsonValue
from pagefile.text.sentences import language
from pagefile.text.words import terms
from pagefile.window.placeholder import LOAD_TOOL

#: Pause between pieces, so that the streaming is visible.
PAUSE_S = 0.02
_PIECE = 12
_QUOTED = 160
#: The line of a sample that is worth finding.
_LEAK = 42

Messages: TypeAlias = Sequence[Mapping[str, JsonValue]]
_UUID = re.compile(r"📎 \[[^\]\n]{0,40}?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\]")
_WANTS = re.compile(r"打开|加载|原文|全文|详细|详情|翻|load|open|full|detail|again|page", re.IGNORECASE)


class ScriptedModel(ChatModel):
    """Answers from what is in its window. Asked to open or load something, it calls the tool for it."""

    def __init__(self, pause_s: float = PAUSE_S) -> None:
        self._pause_s = pause_s

    async def complete(self, messages: Messages, *, max_tokens: int) -> str:
        return _answer(messages)

    async def stream(self, messages: Messages, *, tools: Messages = ()) -> AsyncGenerator[Spoken]:
        page = _wanted(messages) if any(tool.get("name") == LOAD_TOOL for tool in tools) else None
        if page is not None:
            arguments = json.dumps({"uuid": page, "query": _question(messages)}, ensure_ascii=False)
            yield Spoken(calls=(ToolCall(f"scripted-{page[:8]}", LOAD_TOOL, arguments),), finish="tool_calls")
            return
        text = _answer(messages)
        for start in range(0, len(text), _PIECE):
            await anyio.sleep(self._pause_s)
            yield Spoken(text[start : start + _PIECE])
        yield Spoken(finish="stop")


def _wanted(messages: Messages) -> str | None:
    """The uuid of the newest page it was asked to open; None once the question has a tool result."""
    if not messages or messages[-1].get("role") != "user" or not _WANTS.search(_question(messages)):
        return None
    return next(reversed(_pages(messages)), None)


def _content(message: Mapping[str, JsonValue]) -> str:
    return str(message.get("content") or "")


def _pages(messages: Messages) -> list[str]:
    return [uuid for one in messages for uuid in _UUID.findall(_content(one))]


def _question(messages: Messages) -> str:
    return next((_content(one) for one in reversed(messages) if one.get("role") == "user"), "")


def _answer(messages: Messages) -> str:
    question, loaded = _question(messages), _loaded(messages)
    chinese = language(question) == "zh"
    chars, pages = sum(len(_content(one)) for one in messages), len(set(_pages(messages)))
    window = _text("scripted.window", chinese, n=len(messages), chars=f"{chars:,}")
    key = "scripted.paged_out.one" if pages == 1 else "scripted.paged_out"
    out = _text(key, chinese, pages=pages) if pages else _text("scripted.end", chinese)
    if loaded:
        told = _text("scripted.loaded", chinese, line=_telling(loaded, question))
    else:
        told = _text("scripted.open" if pages else "scripted.attach", chinese)
    return window + out + told


def _text(key: str, chinese: bool, **values: object) -> str:
    return words()[key][chinese].format(**values)


def _loaded(messages: Messages) -> str:
    """What was loaded for this question; empty if the last result came with the question itself."""
    if not messages or messages[-1].get("role") != "tool":
        return ""
    calls = [one.get("tool_calls") for one in messages if one.get("tool_calls")]
    return _content(messages[-1]) if calls and LOAD_TOOL in json.dumps(calls[-1]) else ""


def _telling(text: str, question: str) -> str:
    """The line that shares most words with a question; the first on a tie."""
    asked = frozenset(terms(question))
    lines = [one for one in text.splitlines() if one.strip()] or [""]
    line = " ".join(max(lines, key=lambda one: len(asked & frozenset(terms(one)))).split())
    return line if len(line) <= _QUOTED else line[:_QUOTED].rstrip() + "…"


def sample_result(least_chars: int, *, chinese: bool) -> str:
    """A long made-up tool result with one line worth finding."""
    text, number = "", 0
    while len(text) < least_chars:
        number += 1
        key = "sample.leak" if number == _LEAK else "sample.line"
        degrees, bar = f"{20 + number * 7 % 13}.{number % 10}", f"{3 + number * 3 % 5}.{number * 7 % 10}"
        text += _text(key, chinese, number=number, degrees=degrees, bar=bar, day=1 + number % 28) + "\n"
    return text[:-1]
