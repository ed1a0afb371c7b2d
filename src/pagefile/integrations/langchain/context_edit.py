"""A context edit for LangChain's `ContextEditingMiddleware`: old tool results leave the request and can be paged back in."""

from collections.abc import Callable, Sequence
from functools import partial

from langchain.agents.middleware.context_editing import ContextEdit
from langchain_core.messages import AnyMessage, BaseMessage, ToolMessage

from pagefile.blocking import BlockingMemory
from pagefile.edge.fail_open import FailOpen
from pagefile.engine import Memory
from pagefile.engine.arguments import checked_json
from pagefile.integrations.langchain.messages import ToolUse, exchanges, tool_uses
from pagefile.integrations.langchain.tools import Whose, whose
from pagefile.lru import Lru
from pagefile.records import Step
from pagefile.shapes.message_reader import step_tool
from pagefile.tiers.archive import Archive
from pagefile.tiers.page_in import LOADING_TOOLS
from pagefile.window.placeholder import placeholder_uuid

#: Placeholders kept, so that a result is archived once and looks the same from then on.
_REMEMBERED = 4096


class ArchiveToolUsesEdit(ContextEdit):
    """Replaces old tool results with placeholders for pages in Pagefile's archive, where LangChain's own edit writes `[cleared]`.

    ```python
    agent = create_agent(
        model,
        [search, *memory_tools(memory)],
        middleware=[ContextEditingMiddleware(edits=[ArchiveToolUsesEdit(memory)])],
    )
    ```

    Above `trigger` tokens, all results of at least `min_chars` characters except the `keep` newest leave the request, in thread order.
    The model pages one back in with `load_tool_history`, provided by `memory_tools` or `PagefileMiddleware`.
    A result is replaced only once it is safely in the archive: with a `Memory` on the agent's own event loop, where an edit cannot
    wait, it is archived in the background and leaves from the next model call on.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        *,
        user_id: str | None = None,
        conversation_id: str | None = None,
        tenant: str | None = None,
        trigger: int = 100_000,
        keep: int = 3,
        min_chars: int = 2000,
        exclude_tools: Sequence[str] = (),
        timeout_s: float = 5.0,
    ) -> None:
        self.trigger = trigger
        self.keep = keep
        self.min_chars = min_chars
        self.exclude_tools = frozenset(exclude_tools) | LOADING_TOOLS
        self._edge = FailOpen(memory, "langchain", timeout_s=timeout_s)
        self._whose = partial(whose, conversation_id=conversation_id, user_id=user_id, tenant=tenant)
        self._placeholders: Lru[tuple[Whose, str, int], str] = Lru(_REMEMBERED)

    def apply(
        self, messages: list[AnyMessage], *, count_tokens: Callable[[Sequence[BaseMessage]], int]
    ) -> None:
        if count_tokens(messages) <= self.trigger:
            return
        who = self._whose(None)
        if who is None:
            return
        uses = tool_uses(messages)
        places = [number for number, message in enumerate(messages) if isinstance(message, ToolMessage)]
        for number, use in list(zip(places, uses, strict=True))[: max(0, len(uses) - self.keep)]:
            text = self._placeholder(who, use, messages) if self._may_leave(use) else None
            if text is not None:
                messages[number] = use.with_text(text).model_copy(update={"artifact": None})

    def _may_leave(self, use: ToolUse) -> bool:
        is_bulky = use.is_plain and len(use.returned.text) >= self.min_chars
        return is_bulky and use.tool not in self.exclude_tools and placeholder_uuid(use.returned.text) is None

    def _placeholder(self, who: Whose, use: ToolUse, messages: Sequence[BaseMessage]) -> str | None:
        """The placeholder of an archived result; None if it is not archived yet."""
        key = (who, use.message.tool_call_id, hash(use.returned.text))
        if key in self._placeholders:
            return self._placeholders[key]
        turn = next((e.id for e in exchanges(messages)[1] if any(use.message is m for m in e.rest)), "before")

        async def work() -> str:
            engine = self._edge.memory.engine
            scope = who.scope
            given = checked_json(use.input, "input")
            step = Step(step_tool(use.tool), given, use.returned.text, use.message.tool_call_id)
            archive = engine.tier(Archive)
            # Claim the epoch first: this runs in the background, and must not archive what is erased meanwhile.
            page = await archive.store(scope, step, turn, epoch=await archive.claim(scope))
            text = await archive.placeholder(scope, page)
            self._placeholders[key] = text
            return text

        return self._edge.attempt_now_or_soon("archiving a result", work, None)
