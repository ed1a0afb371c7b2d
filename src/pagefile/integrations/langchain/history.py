"""LangChain's message histories in a Pagefile database, for `RunnableWithMessageHistory` and code that keeps its own."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    convert_to_openai_messages,
    message_to_dict,
    messages_from_dict,
)

from pagefile.blocking import BlockingMemory
from pagefile.edge.recorder import as_json
from pagefile.engine import Memory
from pagefile.gateway.exchanges import Json
from pagefile.integrations.door import Door, whose
from pagefile.integrations.item_lists import ItemList


class PagefileChatMessageHistory(BaseChatMessageHistory):
    """The messages of one conversation, exactly as they were added; an answer makes a turn of what was added since the question.

    The database is the only place of the history, so one that is down raises. `messages` and the other synchronous ones need a
    `BlockingMemory`, or a `Memory` in another thread's event loop.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        conversation_id: str,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
    ) -> None:
        super().__init__()
        self._door = Door(memory, "langchain")
        self._who = whose(user_id, conversation_id, tenant)
        self._list = ItemList(self._door.memory, ("langchain", conversation_id), user_id, tenant)

    @property
    def messages(self) -> list[BaseMessage]:  # pyright: ignore[reportIncompatibleVariableOverride] - a property, as LangChain allows
        return _read(self._door.edge.waited(self._list.items))

    async def aget_messages(self) -> list[BaseMessage]:
        return _read(await self._door.edge.awaited(self._list.items))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        self._door.edge.waited(partial(self._list.append, _dumped(messages)))
        if messages and _answers(messages[-1]):
            self._door.finish_blocking(self._who, [_told(self.messages)])

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        await self._door.edge.awaited(partial(self._list.append, _dumped(messages)))
        if messages and _answers(messages[-1]):
            await self._door.finish(self._who, [_told(await self.aget_messages())])

    def clear(self) -> None:
        """Remove all messages; the log keeps what was said, and `memory.forget` erases it."""
        self._door.edge.waited(self._list.clear)

    async def aclear(self) -> None:
        await self._door.edge.awaited(self._list.clear)


def _read(items: Sequence[Any]) -> list[BaseMessage]:
    return messages_from_dict([*items])


def _dumped(messages: Sequence[BaseMessage]) -> list[Any]:
    return [as_json(message_to_dict(message)) for message in messages]


def _answers(message: BaseMessage) -> bool:
    return isinstance(message, AIMessage) and not message.tool_calls


def _told(messages: Sequence[BaseMessage]) -> list[Json]:
    return [convert_to_openai_messages(message) for message in messages]
