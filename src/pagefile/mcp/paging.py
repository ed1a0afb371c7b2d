"""Results of other servers' tools: a bulky one becomes a page, and a placeholder with the passages that fit the call takes its place."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4

from pagefile.engine.page_tools import load_text
from pagefile.mcp.calling import Caller
from pagefile.records import JsonValue, Step
from pagefile.shapes.skeleton import as_list, as_object
from pagefile.shapes.tool_arguments import compact
from pagefile.tiers.archive import Archive
from pagefile.window.placeholder import query_summary

#: The longest name that a page keeps of its tool.
_TOOL_CHARS = 100


@dataclass(frozen=True, slots=True)
class Pager:
    """Archives what is too long, in the conversation of a client."""

    caller: Caller
    max_tokens: int

    async def shortened(
        self, tool: str, arguments: Mapping[str, Any], result: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The result of a call; the same one if it is short enough. Images, links and everything else in it stay."""
        content = as_list(result.get("content")) or ()
        text = "\n".join(said for block in content if (said := _text(block)) is not None)
        structured = result.get("structuredContent")
        if structured is not None and not text:
            text = compact(structured)
        engine = self.caller.memory.engine
        shown = [text, compact(structured)] if structured is not None else [text]
        # No token is shorter than a byte: most results need no counting.
        if max(len(one.encode()) for one in shown) <= self.max_tokens:
            return dict(result)
        if max(map(engine.counter.count, shown)) <= self.max_tokens:
            return dict(result)
        placeholder = await self._archived(tool, arguments, text)
        others = [block for block in content if _text(block) is None]
        kept = {name: value for name, value in result.items() if name != "structuredContent"}
        return {**kept, "content": [{"type": "text", "text": placeholder}, *others]}

    async def _archived(self, tool: str, arguments: Mapping[str, Any], text: str) -> str:
        """What the model sees of a long text at once."""
        engine, scope = self.caller.memory.engine, self.caller.chat().scope
        archive, given = engine.tier(Archive), cast("JsonValue", dict(arguments))
        page = await archive.archived(scope, Step(tool[:_TOOL_CHARS], given, text, call_id=""), str(uuid4()))
        wanted: dict[str, Any] = {"query": query_summary(given), "offset": 0, "limit": None}
        budget = self.max_tokens // 2
        passages = await load_text(
            engine, scope, page.uuid, **wanted, counted=False, budget_tokens=max(1, budget)
        )
        return "\n\n".join([await archive.placeholder(scope, page), *filter(None, [passages])])


def _text(block: object) -> str | None:
    """The text of a block: said, or of an embedded resource."""
    given = as_object(block) or {}
    if given.get("type") == "resource":
        given = as_object(given.get("resource")) or {}
    elif given.get("type") != "text":
        return None
    text = given.get("text")
    return text if isinstance(text, str) else None


def without_output_schemas(tools: object) -> Iterator[Any]:
    """Tools as a server lists them, without the promise of a structured result: clients hold a server to it, and a page has none."""
    for tool in as_list(tools) or ():
        fields = as_object(tool)
        yield (
            tool
            if fields is None
            else {name: value for name, value in fields.items() if name != "outputSchema"}
        )
