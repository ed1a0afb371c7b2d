"""Pending queries, for answers that arrive in another process than their query.

They are items of the database, for half an hour, and are erased with their conversation (`asked` in `items.sql`).
"""

import logging
from typing import cast

from pagefile.errors import StoreError
from pagefile.lru import Lru
from pagefile.ports import ItemWrite
from pagefile.records import Scope
from pagefile.standalone.app_requests import Read
from pagefile.standalone.conversation_store import Conversations
from pagefile.stores.session_cache import SESSION_TTL_S

logger = logging.getLogger("pagefile")

_ASKED = ("pagefile", "asked")
#: How many conversations' queries are remembered, to store each once.
_REMEMBERED = 10_000


class WaitingQueries:
    def __init__(self, log: Conversations) -> None:
        self._log = log
        #: The query of each conversation, and the position of the last turn before it: with a later one, it is answered.
        self._stored: Lru[str, tuple[str, int]] = Lru(_REMEMBERED)

    async def put(self, conversation_id: str, query: str, after_seq: int) -> None:
        """Store a query. A failure costs only that other processes do not know of it."""
        engine, waiting = self._log.engine, (query, after_seq)
        if not query or waiting == self._stored.get(conversation_id) or engine.incognito:
            return
        item = ItemWrite(_ASKED, conversation_id, [*waiting], SESSION_TTL_S)
        try:
            await engine.store.items.write(Scope(self._log.tenant), [item], now=engine.clock.now())
        except StoreError as error:
            logger.warning("QueryMemoryContext: the query is not known to other processes: %s", error)
        else:
            self._stored[conversation_id] = waiting

    async def of(self, scope: Scope) -> str:
        """The query of a conversation that is not answered yet; "" if there is none."""
        engine, key = self._log.engine, (_ASKED, scope.conversation or "")
        (found,) = await engine.store.items.get(Scope(scope.tenant), [key], now=engine.clock.now())
        if found is None:
            return ""
        query, after_seq = cast("tuple[str, int]", found.value)
        view = await self._log.view(scope, min_turns=1)
        return query if Read.made_of(view).through_seq == after_seq else ""
