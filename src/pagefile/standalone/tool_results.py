"""Document 000 on its own: tool results that are too long become placeholders, and are loaded back on request.

Names, defaults, texts and the schema of the load tool are the document's. What it left open is solved in
the engine: pages are content-addressed, loads are scoped, and a failing store only costs the middle of a result.
"""

import copy
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from inspect import isawaitable
from typing import Any, ClassVar, cast
from uuid import uuid4

from pagefile.engine import Memory
from pagefile.engine.arguments import checked_json, result_text
from pagefile.errors import ConflictError, HandleNotFoundError, StoreError
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

        Only what tools returned is considered, also in content parts and in Anthropic's `tool_result` blocks: a
        placeholder typed by a user is just text.
        """
        found = {text: placeholder_uuid(text) for message in messages for text in _results(message)}
        full: dict[str, str] = {}
        for text, uuid in found.items():
            if uuid in (load_uuids or ()):
                with suppress(HandleNotFoundError):
                    full[text] = (await self.get(str(uuid))).result_full
        return [_replaced(message, lambda text: full.get(text, text)) for message in messages]

    async def restore_placeholders(self, messages: list[Any]) -> list[Any]:
        """将加载的完整内容恢复为占位符（用于下一轮）

        A page is known by the hash of its text, so another manager, or another process, may have loaded it.
        """
        texts = [text for message in messages for text in _results(message)]
        engine = self._memory.engine
        visible = {placeholder_uuid(text) for text in texts}
        scope = Scope(self._tenant, self._user)
        pages = await engine.store.page_keeper.holding(scope, list({_hash(text) for text in texts}))
        by_text: dict[str, deque[str]] = {}
        # If several pages have the same text, first those whose placeholder is not there anyway.
        # Another user's page is none of ours, although its text is the same.
        own = [page for page in pages if page.scope.user in {None, self._user}]
        for page in sorted(own, key=lambda page: page.uuid in visible):
            queue = by_text.setdefault(page.content_hash, deque())
            queue.append(placeholder(page, engine.counter.count))

        def restored(text: str) -> str:
            if (queue := by_text.get(_hash(text))) is None:
                return text
            queue.rotate(-1)
            return queue[-1]

        return [_replaced(message, restored) for message in messages]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _is_tool(message: Any) -> bool:
    """Whether a message is a tool's; an object may say so by its type, a mapping only by its role."""
    return part_of(message, "role") == "tool" or (
        not isinstance(message, Mapping) and part_of(message, "type") == "tool"
    )


def _results(message: Any) -> list[str]:
    """The texts that tools returned, in a message."""
    texts: list[str] = []
    _replaced(message, lambda text: texts.append(text) or text)
    return texts


def _replaced(message: Any, change: Callable[[str], str]) -> Any:
    """A copy of a message in which every text that a tool returned is changed."""
    content = _changed(part_of(message, "content"), change, inside=_is_tool(message))
    if isinstance(message, Mapping):
        given = dict(cast("Mapping[str, object]", message))
        return {**given, "content": content} if "content" in given else given
    copied = copy.copy(message)
    if content is not None:
        copied.content = content
    return copied


def _changed(content: Any, change: Callable[[str], str], *, inside: bool) -> Any:
    """The content of a message or a block; `inside` says whether it is what a tool returned."""
    if isinstance(content, str):
        return change(content) if inside else content
    if isinstance(content, list):
        return [_changed(part, change, inside=inside) for part in cast("list[Any]", content)]
    if not isinstance(content, Mapping):
        return content
    block = cast("Mapping[str, Any]", content)
    if block.get("type") == "tool_result" and "content" in block:
        return {**block, "content": _changed(block["content"], change, inside=True)}
    if inside and block.get("type") == "text":
        return {**block, "text": _changed(block.get("text"), change, inside=True)}
    return block
