"""Microsoft Agent Framework: a context provider that gives each model call its window, and a history provider.

```python
agent = Agent(client, "Help.", context_providers=[PagefileHistory(memory, user_id="ada"), PagefileProvider(memory, user_id="ada")])
session = agent.create_session(session_id="conv-1")
await agent.run("What am I allergic to?", session=session)
```
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, cast

from pagefile.blocking import BlockingMemory
from pagefile.engine import Memory
from pagefile.engine.arguments import result_text
from pagefile.errors import MissingExtraError
from pagefile.gateway.exchanges import Json
from pagefile.integrations.door import (
    IN_TOOL,
    Door,
    Shown,
    Who,
    assistant,
    calls_of,
    plain,
    result,
    user,
    whose,
)
from pagefile.integrations.item_lists import ItemList

try:
    from agent_framework import (
        AgentSession,
        ChatContext,
        ChatMiddleware,
        ChatResponse,
        Content,
        ContextProvider,
        FunctionInvocationContext,
        FunctionMiddleware,
        FunctionTool,
        HistoryProvider,
        Message,
        SessionContext,
    )
except ImportError as error:
    raise MissingExtraError.of("agent-framework", "The Agent Framework integration") from error

#: An id, or a function that finds it for a session.
Given: TypeAlias = str | Callable[[AgentSession], str | None] | None
CallNext: TypeAlias = Callable[[], Awaitable[None]]


class PagefileProvider(ContextProvider):
    """Every model call of a run gets its window, and the run becomes a turn; nothing of memory is in a session.

    Args:
        user_id: whose memory it is, or a function of the session: `lambda session: session.state["user"]`.
        tenant: whose user; by default the default tenant.
        window_tokens: memory never makes a request larger than this; by default the memory's setting.
        tools: False offers none of our tools: then tool results stay in requests.
        timeout_s: how long a hook waits for the memory before the run continues without it.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        *,
        user_id: Given = None,
        tenant: str | None = None,
        source_id: str = "pagefile",
        window_tokens: int | None = None,
        tools: bool = True,
        timeout_s: float = 5.0,
    ) -> None:
        super().__init__(source_id)
        self._door = Door(
            memory, "agent_framework", window_tokens=window_tokens, timeout_s=timeout_s, tools=tools
        )
        self._user, self._tenant, self._offers = user_id, tenant, tools

    async def before_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        who = (
            None
            if IN_TOOL.get()
            else self._door.edge.attempt_here("whose memory it is", lambda: self._who(session), None)
        )
        if who is None:
            return
        calls = _Calls(self._door, who)
        context.metadata[self.source_id] = calls
        context.extend_middleware(self.source_id, [calls, _Tools()])
        if self._offers:
            context.extend_tools(self.source_id, self._tools(who))

    async def after_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        calls = context.metadata.get(self.source_id)
        if isinstance(calls, _Calls):
            await calls.finish()

    def _who(self, session: AgentSession) -> Who:
        return whose(_found(self._user, session), session.session_id, self._tenant)

    def _tools(self, who: Who) -> list[FunctionTool]:
        def tool(name: str, schema: dict[str, Any]) -> FunctionTool:
            async def called(**arguments: Any) -> str:
                return await self._door.answer(name, arguments, who)

            return FunctionTool(
                name=name, description=schema["description"], func=called, input_model=schema["parameters"]
            )

        return [tool(name, schema) for name, schema in self._door.tool_schemas(who).items()]


class PagefileHistory(HistoryProvider):
    """Histories in a Pagefile database: each session's messages, as the framework gives them."""

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        source_id: str = "pagefile_history",
        timeout_s: float = 5.0,
        **more: Any,
    ) -> None:
        super().__init__(source_id, **more)
        self._door = Door(memory, "agent_framework", timeout_s=timeout_s)
        self._user, self._tenant = user_id, tenant

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        nothing: list[Any] = []
        items = await self._door.edge.attempt("reading a history", self._list(session_id).items, nothing)
        return [Message.from_dict(cast("dict[str, Any]", item)) for item in items]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        items: list[Any] = [message.to_dict() for message in messages]
        work = partial(self._list(session_id).append, items)
        await self._door.edge.attempt("saving a history", work, None, always=True)

    def _list(self, session_id: str | None) -> ItemList:
        return ItemList(self._door.memory, ("agent_framework", session_id or ""), self._user, self._tenant)


@dataclass
class _Calls(ChatMiddleware):
    """The model calls of one run."""

    door: Door
    who: Who
    told: list[list[Json]] = field(default_factory=list[list[Json]])
    said: list[Message] = field(default_factory=list[Message])

    async def process(self, context: ChatContext, call_next: CallNext) -> None:
        own = list(context.messages)
        self.told, self.said = [_told(message) for message in own], []
        options: dict[str, Any] = {**(context.options or {})}
        instructions = str(options.get("instructions") or "")
        request = await self.door.request(self.who, self.told, instructions)
        if request is not None:
            context.messages = [_sent(shown, own) for shown in request.shown]
            system = "\n\n".join(text for text in (instructions, request.system) if text)
            context.options = {**options, "instructions": system} if system else options
        if context.stream:
            context.stream_result_hooks.append(self._heard)
        await call_next()
        if isinstance(context.result, ChatResponse):
            self._heard(cast("ChatResponse[Any]", context.result))

    def _heard(self, response: ChatResponse[Any]) -> None:
        self.said = list(response.messages)

    async def finish(self) -> None:
        said = [_told(message) for message in self.said]
        last = [message for group in said for message in group][-1:]
        # A run that ends with a call waits for an approval.
        if last and not calls_of(last[0]):
            await self.door.finish(self.who, [*self.told, *said])


class _Tools(FunctionMiddleware):
    """Marks what runs within a tool: an agent that is one is asked by a model."""

    async def process(self, context: FunctionInvocationContext, call_next: CallNext) -> None:
        mark = IN_TOOL.set(True)
        try:
            await call_next()
        finally:
            IN_TOOL.reset(mark)


def _found(given: Given, session: AgentSession) -> str | None:
    return given(session) if callable(given) else given


def _told(message: Message) -> list[Json]:
    contents = message.contents
    results = [one for one in contents if one.type == "function_result"]
    if results:
        return [result(one.call_id, _result_text(one)) for one in results]
    if message.role == "assistant":
        calls = [
            (one.call_id, one.name or "", one.arguments or {})
            for one in contents
            if one.type == "function_call"
        ]
        text = "".join(one.text or "" for one in contents if one.type == "text")
        thoughts = "".join(one.text or "" for one in contents if one.type == "text_reasoning")
        if not text and not calls:
            return []
        return [{**assistant(text, calls), **({"reasoning_content": thoughts} if thoughts else {})}]
    blocks = [block for one in contents if (block := _block(one)) is not None]
    if not blocks:
        return []
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    content: Any = "\n".join(texts) if len(texts) == len(blocks) else blocks
    return [user(content) if message.role == "user" else {"role": "system", "content": content}]


def _block(content: Content) -> Json | None:
    if content.type == "text" and content.text:
        return {"type": "text", "text": content.text}
    if content.type in {"data", "uri"} and content.uri:
        return {"type": "image_url", "image_url": {"url": content.uri}}
    return None


def _result_text(content: Content) -> str:
    items = content.items or ()
    texts = [item.text for item in items if item.type == "text" and item.text]
    return "\n".join(texts) if texts else result_text(content.result)


def _sent(shown: Shown, own: Sequence[Message]) -> Message:
    """A message as memory shows it; the framework's own are never changed, only copied."""
    if shown.at is None:
        return _of_log(shown.message)
    message = own[shown.at]
    if shown.memory:
        return Message(message.role, [Content.from_text(shown.memory), *message.contents])
    if shown.results:
        texts = shown.results
        contents = [
            Content.from_function_result(str(one.call_id), result=texts[str(one.call_id)])
            if one.type == "function_result" and str(one.call_id) in texts
            else one
            for one in message.contents
        ]
        return Message(message.role, contents)
    return message


def _of_log(message: Json) -> Message:
    text = plain(message)
    if message["role"] == "tool":
        return Message("tool", [Content.from_function_result(str(message["tool_call_id"]), result=text)])
    contents = [Content.from_text(text)] if text else []
    contents += [Content.from_function_call(*call[:2], arguments=call[2]) for call in calls_of(message)]
    return Message(message["role"], contents)


__all__ = ["PagefileHistory", "PagefileProvider"]
