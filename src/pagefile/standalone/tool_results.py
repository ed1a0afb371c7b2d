"""Document 000 on its own: tool results that are too long become placeholders, and are loaded back on request.

Names, defaults, texts and the schema of the load tool are the document's. What it left open is solved in
the engine: pages are content-addressed, loads are scoped, and a failing store only costs the middle of a result.
"""

import copy
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from inspect import isawaitable
from typing import Any, ClassVar, cast
from uuid import uuid4

from pagefile.engine import Memory
from pagefile.engine.arguments import checked_json, result_text
from pagefile.errors import ConflictError, HandleNotFoundError, StoreError
from pagefile.lru import Lru
from pagefile.records import DEFAULT_TENANT, JsonValue, Page, Scope, Step
from pagefile.standalone.agent_memory import part_of
from pagefile.text.sentences import clip
from pagefile.tiers.archive import FALLBACK_CHARS, Archive
from pagefile.tiers.page_in import LOADING_TOOLS, explained
from pagefile.window.placeholder import GUIDE, placeholder, placeholder_uuid
from pagefile.window.wording import ZH

#: 超过 1 万字的工具结果进行存档
ARCHIVE_THRESHOLD = 10000

#: Add this to the system prompt of an agent that has the load tool.
HISTORY_TOOL_PROMPT = GUIDE


@dataclass(frozen=True, slots=True)
class ToolResultArchive:
    """工具结果存档表: one row, with the document's columns."""

    __tablename__: ClassVar[str] = "tool_result_archive"

    uuid: str
    conversation_id: str | None
    thread_id: str | None
    tool_name: str
    tool_input: JsonValue
    query_summary: str
    result_summary: str
    result_full: str
    result_length: int
    sources: tuple[str, ...]
    created_at: datetime

    @classmethod
    def of(cls, page: Page, text: str) -> "ToolResultArchive":
        called = page.scope.conversation, page.thread, page.tool, page.input
        summaries = page.query_summary, page.result_summary
        return cls(page.uuid, *called, *summaries, text, page.length, page.sources, page.created)


class ToolResultManager:
    """工具结果管理器"""

    ARCHIVE_THRESHOLD = ARCHIVE_THRESHOLD

    def __init__(self, memory: Memory, *, user_id: str | None = None, tenant: str | None = None) -> None:
        self._memory = memory
        self._user = user_id
        self._tenant = DEFAULT_TENANT if tenant is None else tenant
        # What a loaded page replaced, by the hash of the page's text.
        self._replaced: Lru[str, deque[str]] = Lru(1000)

    async def process_tool_result(
        self,
        tool_name: str,
        tool_input: dict[str, Any],
        result: str,
        conversation_id: str,
        *,
        thread_id: str | None = None,
    ) -> str:
        """处理工具返回结果: a short result unchanged; a long one is archived and its placeholder returned."""
        text = result if isinstance(result, str) else result_text(result)  # pyright: ignore[reportUnnecessaryIsInstance] - tools return anything
        if len(text) <= self.ARCHIVE_THRESHOLD or tool_name in LOADING_TOOLS:
            return text
        engine = self._memory.engine
        scope = Scope(self._tenant, self._user, conversation_id)
        step = Step(tool_name[:100], checked_json(tool_input, "tool_input"), result_text(text), call_id="")
        try:
            page = await engine.tier(Archive).archived(scope, step, str(uuid4()), thread=thread_id)
        except ConflictError:
            # Another user's conversation: nothing in it is touched, and the caller must know.
            raise
        except StoreError as error:
            engine.failed("archive", error)
            return clip(text, min(FALLBACK_CHARS, self.ARCHIVE_THRESHOLD))
        return placeholder(page, engine.counter.count)

    def wrap(
        self, tool: Callable[..., Any], *, conversation_id: str, name: str | None = None
    ) -> Callable[..., Awaitable[str]]:
        """Wraps a tool, sync or async, so that its long results are archived; the tool itself stays unchanged."""
        tool_name = name or getattr(tool, "__name__", "tool")

        @wraps(tool)
        async def wrapped(*args: Any, **kwargs: Any) -> str:
            result = tool(*args, **kwargs)
            text = result_text(await result if isawaitable(result) else result)
            given = {**kwargs, **({"args": list(args)} if args else {})}
            return await self.process_tool_result(tool_name, given, text, conversation_id)

        return wrapped

    async def load_tool_result(self, uuid: str, *, conversation_id: str | None = None) -> str:
        """加载完整的工具结果; failures are explained in words a model can act on."""
        try:
            return (await self.get(uuid, conversation_id=conversation_id)).result_full
        except HandleNotFoundError as error:
            return explained(error, uuid, ZH)

    async def get(self, uuid: str, *, conversation_id: str | None = None) -> ToolResultArchive:
        """The whole row; raises `HandleNotFoundError` for an unknown, foreign or malformed uuid."""
        scope = Scope(self._tenant, self._user, conversation_id)
        page, text = await self._memory.engine.tier(Archive).load(scope, uuid)
        return ToolResultArchive.of(page, text)

    async def prepare_context(self, messages: list[Any], load_uuids: list[str] | None = None) -> list[Any]:
        """准备上下文: a copy in which the placeholders of `load_uuids` are replaced by the full results.

        Only tool messages are considered: a placeholder typed by a user is just text.
        """
        return [await self._loaded(message, load_uuids or ()) for message in messages]

    async def restore_placeholders(self, messages: list[Any]) -> list[Any]:
        """将加载的完整内容恢复为占位符（用于下一轮）"""
        restored: list[Any] = []
        for message in messages:
            stood = self._replaced.get(_hash(_content(message))) if _is_tool(message) else None
            restored.append(_with_content(message, stood[0]) if stood else copy.copy(message))
            if stood:
                stood.rotate(-1)
        return restored

    async def _loaded(self, message: Any, wanted: Collection[str]) -> Any:
        shown = _content(message)
        uuid = placeholder_uuid(shown) if _is_tool(message) else None
        if uuid is None or uuid not in wanted:
            return copy.copy(message)
        try:
            full = (await self.get(uuid)).result_full
        except HandleNotFoundError:
            return copy.copy(message)
        stood = self._replaced.setdefault(_hash(full), deque())
        if shown not in stood:
            stood.append(shown)
        return _with_content(message, full)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _is_tool(message: Any) -> bool:
    """Whether a message is a tool's; an object may say so by its type, a mapping only by its role."""
    return part_of(message, "role") == "tool" or (
        not isinstance(message, Mapping) and part_of(message, "type") == "tool"
    )


def _content(message: Any) -> str:
    found = part_of(message, "content")
    return found if isinstance(found, str) else ""


def _with_content(message: Any, content: str) -> Any:
    if isinstance(message, Mapping):
        return {**cast("Mapping[str, object]", message), "content": content}
    changed = copy.copy(message)
    changed.content = content
    return changed
