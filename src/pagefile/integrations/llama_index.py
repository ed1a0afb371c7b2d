"""LlamaIndex: a `BaseMemory` for its agents and chat engines.

```python
chat = PagefileChatMemory.of(memory, "conv-1", user_id="ada")
agent = FunctionAgent(llm=llm, tools=[*tools, *chat.tools()])
await agent.run("What am I allergic to?", memory=chat)
```
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast
from weakref import WeakValueDictionary

from pagefile.blocking import BlockingMemory
from pagefile.engine import Memory
from pagefile.errors import MissingExtraError, SettingsError
from pagefile.gateway.exchanges import Json
from pagefile.integrations.door import (
    Door,
    Shown,
    Who,
    assistant,
    calls_of,
    image,
    plain,
    result,
    user,
    whose,
)
from pagefile.integrations.item_lists import ItemList

try:
    from llama_index.core.base.llms.types import (
        ChatMessage,
        ImageBlock,
        MessageRole,
        TextBlock,
        ToolCallBlock,
    )
    from llama_index.core.memory.types import BaseMemory
    from llama_index.core.tools import FunctionTool, ToolMetadata
    from pydantic import PrivateAttr
except ImportError as error:
    raise MissingExtraError.of("llama-index", "The LlamaIndex integration") from error


#: The memories that were made in this process, by whose they are, for contexts that are restored from JSON.
_MADE: "WeakValueDictionary[tuple[str, str | None, str | None], PagefileChatMemory]" = WeakValueDictionary()


class _Unbound:
    """In the place of a door, where LlamaIndex made the object itself: a context that comes back from JSON has no database."""

    def __getattr__(self, name: str) -> Any:
        raise SettingsError(
            "A saved context holds the name of its memory and not the database. Make the memory before the run goes on, and "
            'keep it: chat = PagefileChatMemory.of(memory, "conv-1", user_id="ada").'
        )


class PagefileChatMemory(BaseMemory):
    """One conversation of a user: LlamaIndex's history of it, and its memory.

    `get` returns the window for the question that was put last; what memory knows is in it and never in the history. The
    history is stored as LlamaIndex gives it; an answer makes a turn of what was put since the question. If memory fails,
    runs go on with what this object has.
    """

    conversation_id: str = ""
    user_id: str | None = None
    tenant: str | None = None
    _door: Door = PrivateAttr(default_factory=cast("Any", _Unbound))
    _who: Who = PrivateAttr()
    _list: ItemList = PrivateAttr()
    #: The history as it is known here, for the time in which the memory does not answer.
    _known: list[ChatMessage] = PrivateAttr(default_factory=list)

    @classmethod
    def class_name(cls) -> str:
        return "PagefileChatMemory"

    @classmethod
    def of(
        cls,
        memory: Memory | BlockingMemory,
        conversation_id: str,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        window_tokens: int | None = None,
        tools: bool = True,
        timeout_s: float = 5.0,
    ) -> "PagefileChatMemory":
        """The memory of a conversation.

        Args:
            user_id: whose memory it is; without one, nothing is shared between conversations.
            window_tokens: memory never makes a request larger than this; by default the memory's setting.
            tools: False if the agent is not given `tools()`: then tool results stay in requests.
            timeout_s: how long a call waits for the memory before the run continues without it.
        """
        made = cls(conversation_id=conversation_id, user_id=user_id, tenant=tenant)
        made._door = Door(
            memory,
            "llama_index",
            window_tokens=window_tokens,
            timeout_s=timeout_s,
            tools=tools,
            from_log=False,
        )
        made._who = whose(user_id, conversation_id, tenant)
        made._list = ItemList(made._door.memory, ("llama_index", conversation_id), user_id, tenant)
        _MADE[made._name] = made
        return made

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        if (made := _MADE.get(self._name)) is not None:
            # It came back from a saved context: the one that was made here has the database.
            self._door, self._who, self._list = made._door, made._who, made._list  # noqa: SLF001 - of the same class

    @property
    def _name(self) -> tuple[str, str | None, str | None]:
        return self.conversation_id, self.user_id, self.tenant

    @classmethod
    def from_defaults(cls, **kwargs: Any) -> "PagefileChatMemory":
        raise SettingsError(
            'A memory has to be given: PagefileChatMemory.of(memory, "conv-1", user_id="ada").'
        )

    # -- LlamaIndex's interface, asynchronous and synchronous -----------------------------------------------------------------

    async def aget(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: A002 - LlamaIndex's name
        own = await self.aget_all()
        if not _waits(own):
            return own
        request = await self._door.request(self._who, [_told(message) for message in own])
        return own if request is None else _window(request.system, request.shown, own)

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: A002 - LlamaIndex's name
        own = self.get_all()
        if not _waits(own):
            return own
        request = self._door.request_blocking(self._who, [_told(message) for message in own])
        return own if request is None else _window(request.system, request.shown, own)

    async def aget_all(self) -> list[ChatMessage]:
        return self._read(await self._door.edge.attempt("reading a history", self._list.items, None))

    def get_all(self) -> list[ChatMessage]:
        return self._read(self._door.edge.attempt_blocking("reading a history", self._list.items, None))

    async def aput(self, message: ChatMessage) -> None:
        await self.aput_messages([message])

    def put(self, message: ChatMessage) -> None:
        self.put_messages([message])

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        new = _news(await self.aget_all(), messages)
        if not new:
            return
        self._known += new
        work = partial(self._list.append, _dumped(new))
        await self._door.edge.attempt("saving a history", work, None, always=True)
        if not _waits(self._known):
            await self._door.finish(self._who, [_told(message) for message in self._known])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        new = _news(self.get_all(), messages)
        if not new:
            return
        self._known += new
        work = partial(self._list.append, _dumped(new))
        self._door.edge.attempt_blocking("saving a history", work, None, always=True)
        if not _waits(self._known):
            self._door.finish_blocking(self._who, [_told(message) for message in self._known])

    async def aset(self, messages: list[ChatMessage]) -> None:
        """Replace the history; the log keeps what was said."""
        self._known = list(messages)
        work = partial(self._list.replace, _dumped(messages))
        await self._door.edge.attempt("replacing a history", work, None, always=True)

    def set(self, messages: list[ChatMessage]) -> None:
        self._known = list(messages)
        work = partial(self._list.replace, _dumped(messages))
        self._door.edge.attempt_blocking("replacing a history", work, None, always=True)

    async def areset(self) -> None:
        """Empty the history; the log keeps what was said, and `memory.forget` erases it."""
        await self.aset([])

    def reset(self) -> None:
        self.set([])

    # -- tools ------------------------------------------------------------------------------------------------------------

    def tools(self) -> list[FunctionTool]:
        """`recall`, `remember`, `load_tool_history` and so on, for this conversation."""
        return [self._tool(name, schema) for name, schema in self._door.tool_schemas(self._who).items()]

    def _tool(self, name: str, schema: dict[str, Any]) -> FunctionTool:
        async def acall(**arguments: Any) -> str:
            return await self._door.answer(name, arguments, self._who)

        def call(**arguments: Any) -> str:
            return self._door.answer_blocking(name, arguments, self._who)

        described = _Described(name=name, description=schema["description"], parameters=schema["parameters"])
        return FunctionTool(call, described, async_fn=acall)

    def _read(self, items: Sequence[Any] | None) -> list[ChatMessage]:
        if items is not None:
            self._known = [ChatMessage.model_validate(item) for item in items]
        return list(self._known)


@dataclass
class _Described(ToolMetadata):
    """A tool whose parameters are a JSON schema."""

    parameters: dict[str, Any] = field(default_factory=dict[str, Any])

    def get_parameters_dict(self) -> dict[str, Any]:
        return self.parameters


def _waits(messages: Sequence[ChatMessage]) -> bool:
    """Whether the last message is not an answer."""
    last = messages[-1] if messages else None
    return last is not None and (last.role != MessageRole.ASSISTANT or bool(_calls(last)))


def _news(known: Sequence[ChatMessage], messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages without a question that is asked once more because its run broke off."""
    again = bool(known and messages) and known[-1].role == messages[0].role == MessageRole.USER
    return list(messages[1:] if again and known[-1].content == messages[0].content else messages)


def _dumped(messages: Sequence[ChatMessage]) -> list[Any]:
    return [message.model_dump(mode="json") for message in messages]


def _window(system: str, shown: Sequence[Shown], own: Sequence[ChatMessage]) -> list[ChatMessage]:
    found = [_sent(one, own) for one in shown]
    return [ChatMessage(role=MessageRole.SYSTEM, content=system), *found] if system else found


def _calls(message: ChatMessage) -> list[tuple[str | None, str, Any]]:
    found = [
        (block.tool_call_id, block.tool_name, block.tool_kwargs)
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    ]
    # Older models of LlamaIndex put them beside, as their provider's client gave them.
    for call in cast("list[Any]", [] if found else message.additional_kwargs.get("tool_calls") or []):
        given: Any = call if isinstance(call, dict) else call.model_dump()
        function = given.get("function") or {}
        found.append((given.get("id"), function.get("name") or "tool", function.get("arguments") or {}))
    return found


def _told(message: ChatMessage) -> list[Json]:
    if message.role in {MessageRole.TOOL, MessageRole.FUNCTION}:
        return [result(message.additional_kwargs.get("tool_call_id"), message.content or "")]
    if message.role == MessageRole.ASSISTANT:
        return [assistant(message.content, _calls(message))]
    pictures = [block for block in message.blocks if isinstance(block, ImageBlock)]
    if message.role != MessageRole.USER:
        return [{"role": "system", "content": message.content or ""}]
    if not pictures:
        return [user(message.content or "")]
    texts: list[Any] = [
        {"type": "text", "text": block.text} for block in message.blocks if isinstance(block, TextBlock)
    ]
    return [user([*texts, *map(_picture, pictures)])]


def _picture(block: ImageBlock) -> Json:
    if block.url is not None:
        return {"type": "image_url", "image_url": {"url": str(block.url)}}
    data = block.image.decode() if isinstance(block.image, bytes) else ""
    return image(block.image_mimetype or "image/png", data)


def _sent(shown: Shown, own: Sequence[ChatMessage]) -> ChatMessage:
    """A message as memory shows it; the history's own are never changed, only copied."""
    if shown.at is None:
        return _of_log(shown.message)
    message = own[shown.at]
    if shown.memory:
        return message.model_copy(update={"blocks": [TextBlock(text=f"{shown.memory}\n\n"), *message.blocks]})
    if shown.results:
        return message.model_copy(update={"blocks": [TextBlock(text=next(iter(shown.results.values())))]})
    return message


def _of_log(message: Json) -> ChatMessage:
    text = plain(message)
    if message["role"] == "tool":
        return ChatMessage(
            role=MessageRole.TOOL, content=text, additional_kwargs={"tool_call_id": message["tool_call_id"]}
        )
    blocks: list[Any] = [TextBlock(text=text)] if text else []
    blocks += [
        ToolCallBlock(tool_call_id=call_id, tool_name=name, tool_kwargs=given)
        for call_id, name, given in calls_of(message)
    ]
    return ChatMessage(role=message["role"], blocks=blocks)


__all__ = ["PagefileChatMemory"]
