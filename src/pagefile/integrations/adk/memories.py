"""`PagefileMemoryService`: what ADK's `load_memory` and `preload_memory` search, and what `add_session_to_memory` fills."""

from collections.abc import Mapping, Sequence
from functools import partial

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from pagefile.blocking import BlockingMemory
from pagefile.engine import Memory
from pagefile.errors import NotFoundError
from pagefile.integrations.adk.contents import Reading
from pagefile.integrations.door import Door, whose
from pagefile.integrations.searches import Found, search

#: How much a search returns.
_HITS = 10
#: The conversation of events that come without a session.
_NO_SESSION = "adk-events"


class PagefileMemoryService(BaseMemoryService):
    """A user's turns and facts. A session can be added as often as it grows; a runner with `PagefilePlugin` need not add any."""

    def __init__(
        self, memory: Memory | BlockingMemory, *, tenant: str | None = None, timeout_s: float = 5.0
    ) -> None:
        self._door = Door(memory, "adk", timeout_s=timeout_s)
        self._tenant = tenant

    async def add_session_to_memory(self, session: Session) -> None:
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        contents = [event.content for event in events if event.content is not None and not event.partial]
        who = whose(user_id, session_id or _NO_SESSION, self._tenant or app_name)
        await self._door.take(who, Reading.of(contents).told)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Each entry becomes a fact."""
        remember = partial(self._door.memory.remember, user_id=user_id, tenant=self._tenant or app_name)
        for entry in memories:
            text = "\n".join(part.text or "" for part in entry.content.parts or []).strip()
            if text:
                await self._door.edge.attempt("remembering", partial(remember, text), None)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        work = partial(self._found, user_id, self._tenant or app_name, query)
        return SearchMemoryResponse(memories=await self._door.edge.attempt("searching", work, []))

    async def _found(self, user_id: str, tenant: str, query: str) -> list[MemoryEntry]:
        found = await search(self._door.memory, query, user_id=user_id, tenant=tenant, limit=_HITS)
        return [_entry(one) for one in found]

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Retract a fact; turns are erased with `memory.forget`."""
        if memory_id is None:
            raise NotFoundError("Only facts have ids, and can be deleted one by one.")
        await self._door.memory.retract(memory_id, user_id=user_id, tenant=self._tenant or app_name)


def _entry(found: Found) -> MemoryEntry:
    content = types.Content(role="user", parts=[types.Part(text=found.text)])
    return MemoryEntry(
        content=content,
        id=found.id if found.kind == "fact" else None,
        timestamp=found.at.isoformat(),
        custom_metadata={"kind": found.kind, "session_id": found.conversation_id},
    )
