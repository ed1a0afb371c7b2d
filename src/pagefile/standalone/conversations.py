"""The log as documents 001 and 002 read it: conversations by their id alone, and their done turns, oldest first."""

from collections.abc import AsyncIterator
from typing import Final

from pagefile.engine import Memory
from pagefile.engine.engine import Engine
from pagefile.engine.ownership import on_behalf
from pagefile.ports import EntryQuery, LogReader, LogView, ViewRequest
from pagefile.records import DEFAULT_TENANT, Scope, Status, Turn, checked_id

DONE: Final[frozenset[Status]] = frozenset({"done"})
_BATCH = 500


class Conversations:
    """The conversations of a tenant. The documents' calls name no user, and act as the conversation's owner."""

    def __init__(self, memory: Memory, tenant: str | None = None) -> None:
        self.memory = memory
        self.tenant = DEFAULT_TENANT if tenant is None else checked_id(tenant, "tenant")

    @property
    def engine(self) -> Engine:
        """The engine; raises if it is closed."""
        self.memory.engine.check_open()
        return self.memory.engine

    @property
    def reader(self) -> LogReader:
        return self.engine.store.reader

    def scope(self, conversation_id: str, user_id: str | None = None) -> Scope:
        """The scope of a conversation; without a user, for any of them."""
        return Scope(self.tenant, user_id or None, checked_id(conversation_id, "conversation_id"))

    async def owned(self, conversation_id: str, user_id: str | None = None) -> Scope:
        """A conversation and its user: if the caller names none, the conversation's owner."""
        return await on_behalf(self.reader, self.scope(conversation_id, user_id))

    async def view(self, scope: Scope, *, budget_tokens: int = 0, min_turns: int = 0) -> LogView:
        """The head of a conversation and its summary, by default without turns."""
        return await self.reader.view(ViewRequest(scope, budget_tokens, min_turns))

    async def turns_after(self, scope: Scope, seq: int) -> AsyncIterator[list[Turn]]:
        """Done turns after a position in the log, in batches of some hundreds."""
        while batch := await self._turns(EntryQuery(scope, statuses=DONE, after_seq=seq, limit=_BATCH)):
            yield batch
            seq = batch[-1].seq or seq
            if len(batch) < _BATCH:
                return

    async def turns_between(self, scope: Scope, after_seq: int, before_seq: int, limit: int) -> list[Turn]:
        """The first done turns between two positions in the log."""
        found = await self._turns(EntryQuery(scope, statuses=DONE, after_seq=after_seq, limit=limit))
        return [turn for turn in found if (turn.seq or 0) < before_seq]

    async def newest_turns(self, scope: Scope, limit: int, after_seq: int = 0) -> list[Turn]:
        """The last done turns after a position in the log."""
        query = EntryQuery(scope, statuses=DONE, after_seq=after_seq, limit=limit, newest=True)
        return await self._turns(query)

    async def _turns(self, query: EntryQuery) -> list[Turn]:
        return [turn for turn in await self.reader.entries(query) if isinstance(turn, Turn)]
