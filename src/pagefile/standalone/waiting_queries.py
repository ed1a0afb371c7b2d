"""Pending queries, for answers that arrive in another process than their query.

They are items of the database, for half an hour, and are erased with their conversation (`asked` in `items.sql`).
"""

import logging
from typing import cast

from pagefile.errors import StoreError
from pagefile.ports import OWN_NAMESPACE, ItemWrite
from pagefile.records import Scope
from pagefile.standalone.app_requests import Read
from pagefile.standalone.conversation_store import Conversations
from pagefile.stores.session_cache import SESSION_TTL_S

logger = logging.getLogger("pagefile")

_ASKED = (OWN_NAMESPACE, "asked")


class WaitingQueries:
    def __init__(self, log: Conversations) -> None:
        self._log = log

    async def put(self, conversation_id: str, query: str, after_seq: int) -> None:
        """Store a query with the position of the last turn before it: once there is a later turn, it is answered.

        A failure costs only that other processes do not know of it.
        """
        engine = self._log.engine
        if not query or engine.incognito:
            return
        item = ItemWrite(_ASKED, conversation_id, [query, after_seq], SESSION_TTL_S)
        try:
            await engine.store.items.write(Scope(self._log.tenant), [item], now=engine.clock.now())
        except StoreError as error:
            logger.warning("QueryMemoryContext: the query is not known to other processes: %s", error)

    async def of(self, scope: Scope) -> str:
        """The query of a conversation that is not answered yet; "" if there is none."""
        engine, key = self._log.engine, (_ASKED, scope.conversation or "")
        (found,) = await engine.store.items.get(Scope(scope.tenant), [key], now=engine.clock.now())
        if found is None:
            return ""
        query, after_seq = cast("tuple[str, int]", found.value)
        view = await self._log.view(scope, min_turns=1)
        return query if Read.made_of(view).through_seq == after_seq else ""
