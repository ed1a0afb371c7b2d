"""The store that is gone with its process."""

from pagefile.ports import Clock, Part, Store, VectorHome
from pagefile.records import ErasureReceipt, JsonObject, Scope
from pagefile.stores.erasing import counted_vectors, erased_keys
from pagefile.stores.inmemory.auditing import InMemoryAuditor
from pagefile.stores.inmemory.erasing import drop, erase_part
from pagefile.stores.inmemory.items import InMemoryItems
from pagefile.stores.inmemory.log import InMemoryReader, InMemoryTurnLog
from pagefile.stores.inmemory.pages import InMemoryMedia, InMemoryPageIndex, InMemoryPageKeeper, InMemoryPages
from pagefile.stores.inmemory.room import Room
from pagefile.stores.inmemory.shelves import (
    InMemoryCalls,
    InMemoryErasures,
    InMemoryFacts,
    InMemoryKeys,
    InMemorySessions,
    InMemoryTerms,
    InMemoryWatermarks,
)
from pagefile.stores.inmemory.vectors import InMemoryVectors


class InMemoryStore(Store):
    def __init__(self, clock: Clock) -> None:
        self._room = Room(clock)
        self.log = InMemoryTurnLog(self._room)
        self.reader = self.source = InMemoryReader(self._room)
        self.facts = InMemoryFacts(self._room)
        self.pages = InMemoryPages(self._room)
        self.page_keeper = InMemoryPageKeeper(self._room)
        self.page_index = InMemoryPageIndex(self._room)
        self.media = InMemoryMedia(self._room)
        self.calls = InMemoryCalls(self._room)
        self.sessions = InMemorySessions(self._room)
        self.watermarks = InMemoryWatermarks(self._room)
        self.terms = InMemoryTerms(self._room)
        self.keys = InMemoryKeys(self._room)
        self.items = InMemoryItems(self._room)
        self.erasures = InMemoryErasures(self._room)
        self.audit = InMemoryAuditor(self._room)

    def vectors(self, *, cache_bytes: int | None = None) -> VectorHome:
        return InMemoryVectors(self._room)

    async def erase(self, scope: Scope, part: Part | None = None) -> ErasureReceipt:
        room = self._room
        room.check_open()
        if part is not None:
            counts, places = erase_part(room, scope, part)
            return ErasureReceipt(scope, room.now(), counts, (), part.turn_id, part.page, places)
        goes = scope
        if scope.conversation is not None:
            # Whoever wrote to the conversation, all of it goes.
            room.found(scope)
            goes = Scope(scope.tenant, None, scope.conversation)
        gone = {key for key, found in room.conversations.items() if found.scope.within(goes)}

        def hit(owned: Scope) -> bool:
            return owned.within(goes) or (owned.tenant, owned.conversation) in gone

        entries = [entry for key in gone for entry in room.conversations[key].entries()]
        summaries = [key for key in gone if room.conversations[key].checkpoint() is not None]
        hashes, spans = room.hashes(), room.spans()
        counts = {
            "ai_message": len(entries),
            "conversation_summaries": len(summaries),
            "facts": drop(room.facts, lambda key: hit(room.facts[key].scope)),
            "fact_revisions": room.drop_fact_revisions(hit),
            "tool_result_archive": drop(room.pages, lambda key: hit(room.pages[key].page.scope)),
            "context_calls": drop(room.calls, lambda key: hit(room.calls[key].scope)),
            "sessions": sum(room.sessions.pop(key, None) is not None for key in gone),
            "watermarks": drop(room.watermarks, lambda key: key[:2] in gone),
            "turn_terms": drop(room.terms, lambda key: key[:2] in gone),
            "attachments": drop(room.attachments, lambda key: key[:2] in gone),
        }
        vectors = [drop(shelf, lambda key: key[:2] in gone) for shelf in room.vectors.values()]
        counts |= counted_vectors(sum(vectors))
        counts["items"] = sum(len(room.items.pop(key)) for key in _owners(room, scope))
        left = room.hashes()
        drop(room.blobs, lambda key: key not in left)
        counts["blobs"] = len(hashes - left)
        counts["archive_passage"] = spans - room.spans()
        counts["conversations"] = sum(room.conversations.pop(key, None) is not None for key in gone)
        number, names = room.epoch + 1, tuple(name for _, name in gone)
        room.epochs |= dict.fromkeys(erased_keys(scope, names), number)
        return ErasureReceipt(scope, room.now(), counts, conversations=names)

    async def describe(self) -> JsonObject:
        self._room.check_open()
        return {"backend": "memory", "version": None, "place": None, "bytes": None, "read_only": False}

    async def close(self) -> None:
        self._room.closed = True


def _owners(room: Room, scope: Scope) -> list[tuple[str, str]]:
    """Whose items go: those of no conversation, of a user, or everybody's of the tenant."""
    if scope.conversation is not None:
        return []
    return [key for key in room.items if key[0] == scope.tenant and scope.user in (None, key[1])]
