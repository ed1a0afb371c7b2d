"""Document 003 on its own: what an agent has seen in this session, in its own prompt, without a store or framework.

`AgentMemory` and `ContentChunk` are the document's; `AgentWithMemory` is what it adds to an agent: the prompt that is
rebuilt for every run, the dispatch of tool results, both resets. With a store, the same is `chat.workspace()`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from inspect import iscoroutinefunction
from time import monotonic
from typing import Any, cast

from pagefile.tiers.workspace import DEFAULT_RULES, AgentMemory, ContentChunk, ToolRule
from pagefile.tiers.workspace.cache import CallCache
from pagefile.tiers.workspace.calls import ToolCall, bound
from pagefile.tiers.workspace.found import document_of
from pagefile.tiers.workspace.results import Result
from pagefile.tiers.workspace.rules import remember, rule_for

__all__ = ["AgentMemory", "AgentMemoryConfig", "AgentWithMemory", "ContentChunk", "ToolRule"]


@dataclass(frozen=True, slots=True)
class AgentMemoryConfig:
    """记忆系统配置: the document's three settings. In `pagefile.toml` they are `workspace.enabled` and so on."""

    memory_enabled: bool = field(default=True, metadata={"description": "是否启用 Agent 记忆系统"})
    memory_max_chunks: int = field(default=10, metadata={"description": "最大记忆内容片段数"})
    memory_min_relevance: float = field(
        default=0.5, metadata={"description": "最小相关性阈值（低于此值的内容不记忆）"}
    )

    def memory(self) -> AgentMemory:
        return AgentMemory(
            max_chunks=self.memory_max_chunks,
            min_relevance=self.memory_min_relevance,
            enabled=self.memory_enabled,
        )


class AgentWithMemory:
    """What document 003 adds to an agent. Subclass it, or use one with any loop that calls tools."""

    def __init__(
        self,
        system_prompt: str = "",
        *,
        config: AgentMemoryConfig | None = None,
        rules: Iterable[ToolRule] = (),
    ) -> None:
        self._system_prompt = system_prompt
        self._rules = (*rules, *DEFAULT_RULES)
        self._memory = (config or AgentMemoryConfig()).memory()
        self._tool_names: dict[str, tuple[str, object]] = {}
        self._answers = CallCache[Any](monotonic)

    @property
    def memory(self) -> AgentMemory:
        return self._memory

    def ask(self, query: str) -> str:
        """Begin a run with this query; returns the system prompt for it."""
        if self._memory.enabled:
            self._memory.current_query = query
        return self._build_system_prompt()

    def wrap(self, tool: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
        """The same tool, sync or async: its results are remembered, and a repeated call of a cacheable tool is answered from memory.

        A repeated call returns the very object the tool returned first, however its arguments are spelled; a table of
        contents that was put in with `cache_toc` answers the calls for its document.
        """
        tool_name = name or getattr(tool, "__name__", "tool")

        @wraps(tool)
        async def waiting(*args: Any, **kwargs: Any) -> Any:
            call = ToolCall.of(tool_name, bound(tool, args, kwargs))
            if (found := self._answered(call)) is not None:
                return found[0]
            return self._taken(call, await tool(*args, **kwargs))

        @wraps(tool)
        def blocking(*args: Any, **kwargs: Any) -> Any:
            call = ToolCall.of(tool_name, bound(tool, args, kwargs))
            if (found := self._answered(call)) is not None:
                return found[0]
            return self._taken(call, tool(*args, **kwargs))

        return waiting if iscoroutinefunction(tool) else blocking

    def reset(self) -> None:
        """Forget the query context; tables of contents stay."""
        self._memory.clear_query_context()

    def reset_all(self) -> None:
        self._memory.reset()
        self._answers.clear()
        self._tool_names.clear()

    # -- hooks named by the document ------------------------------------------------------------------------------------

    def _build_system_prompt(self) -> str:
        """The base prompt, the hint about tables of contents, then what was found; rebuilt for every run."""
        hint, found = self._memory.get_toc_cache_hint(), self._memory.get_memory_context()
        # The document appends the hint directly: the line breaks keep its heading a heading.
        return "\n\n".join(part for part in (self._system_prompt, hint, found) if part)

    def _update_memory(self, tool_name: str, result: object, tool_input: object = None) -> None:
        """Remember what the tool's rule selects from a result; never raises."""
        self._taken(ToolCall.of(tool_name, tool_input), result, answers=False)

    def _process_event(self, event: object) -> None:
        """Take tool calls and their results from an agent's events, as objects or mappings.

        A result only names the id of its call; the tool's name is in the call that came before.
        """
        for block in _blocks(event):
            kind, call_id = part_of(block, "type"), part_of(block, "tool_use_id") or part_of(block, "id")
            name, given = part_of(block, "name"), part_of(block, "input")
            if kind == "tool_use" or (kind is None and name and given is not None):
                self._tool_names[str(call_id)] = str(name), given
            elif kind == "tool_result" or (kind is None and part_of(block, "tool_use_id")):
                unknown = part_of(block, "tool_name") or name, None
                name, given = self._tool_names.pop(str(call_id), unknown)
                result = part_of(block, "content")
                if name and result is not None and not part_of(block, "is_error"):
                    self._update_memory(str(name), result, given)

    def _answered(self, call: ToolCall) -> tuple[Any, float] | None:
        """The answer to an equal call, and its age; None if the tool has to run."""
        rule = self._rule(call)
        if not rule.cacheable or not self._memory.enabled:
            return None
        toc = self._memory.given_toc(document_of(None, call.arguments)) if rule.remembers == "toc" else None
        return self._answers.find(call, rule.fresh_s) if toc is None else (toc, 0.0)

    def _taken(self, call: ToolCall, result: Any, *, answers: bool = True) -> Any:
        rule, told = self._rule(call), Result.of(*call, result)
        remember(self._memory, rule, told, {"tool": call.tool})
        if answers and rule.cacheable and self._memory.enabled and not told.failed:
            self._answers.keep(call, result)
        return result

    def _rule(self, call: ToolCall) -> ToolRule:
        """The rule for a call; one that may change something ends the answers it concerns."""
        rule = rule_for(call.tool, self._rules, call.arguments)
        if rule.changes:
            self._answers.changed(call)
            self._memory.forget_changed(call)
        return rule


def _blocks(event: object) -> Iterator[object]:
    """The event itself, or the blocks of the message it is."""
    content = part_of(event, "content")
    if part_of(event, "type") not in ("tool_use", "tool_result") and isinstance(content, list):
        yield from cast("list[object]", content)
    else:
        yield event


def texts_in(content: object) -> list[str]:
    """The texts of a message's content: the content itself, or the text blocks of multimodal content."""
    if isinstance(content, str):
        return [content]
    blocks = cast("Sequence[object]", content) if isinstance(content, list | tuple) else ()
    texts = (block if isinstance(block, str) else part_of(block, "text") for block in blocks)
    return [text for text in texts if isinstance(text, str)]


def part_of(thing: object, name: str) -> Any:
    """A field of a message, block or event, which frameworks give as a mapping or as an object."""
    if isinstance(thing, Mapping):
        return cast("Mapping[str, object]", thing).get(name)
    return getattr(thing, name, None)
