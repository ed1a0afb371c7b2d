"""The store that ends with its process."""

from pagefile.ports import Clock, Part, Store, VectorIndex
from pagefile.records import ErasureReceipt, JsonObject, Scope
from pagefile.stores.erasure import counted_vectors, erased_keys
from pagefile.stores.inmemory.audit import InMemoryAuditor
from pagefile.stores.inmemory.erasure import drop, erase_part
from pagefile.stores.inmemory.items import InMemoryItems
from pagefile.stores.inmemory.log import InMemoryReader, InMemoryTurnLog
from pagefile.stores.inmemory.pages import InMemoryMedia, InMemoryPageIndex, InMemoryPageKeeper, InMemoryPages
from pagefile.stores.inmemory.ports import (
    InMemoryCalls,
    InMemoryErasures,
    InMemoryFacts,
    InMemoryKeys,
    InMemorySessions,
    InMemoryTerms,
    InMemoryWatermarks,
)
from pagefile.stores.inmemory.tables import Tables
from pagefile.stores.inmemory.vectors import InMemoryVectors


class InMemoryStore(Store):
    def __init__(self, clock: Clock) -> None:
        self._tables = Tables(clock)
        self.log = InMemoryTurnLog(self._tables)
        self.reader = self.source = InMemoryReader(self._tables)
        self.facts = InMemoryFacts(self._tables)
        self.pages = InMemoryPages(self._tables)
        self.page_keeper = InMemoryPageKeeper(self._tables)
        self.page_index = InMemoryPageIndex(self._tables)
        self.media = InMemoryMedia(self._tables)
        self.calls = InMemoryCalls(self._tables)
        self.sessions = InMemorySessions(self._tables)
        self.watermarks = InMemoryWatermarks(self._tables)
        self.terms = InMemoryTerms(self._tables)
        self.keys = InMemoryKeys(self._tables)
        self.items = InMemoryItems(self._tables)
        self.erasures = InMemoryErasures(self._tables)
        self.audit = InMemoryAuditor(self._tables)

    def vectors(self, *, cache_bytes: int | None = None) -> VectorIndex:
        return InMemoryVectors(self._tables)

    async def erase(self, scope: Scope, part: Part | None = None) -> ErasureReceipt:
        tables = self._tables
        tables.check_open()
        if part is not None:
            counts, places = erase_part(tables, scope, part)
            return ErasureReceipt(scope, tables.now(), counts, (), part.turn_id, part.page, places)
        goes = scope
        if scope.conversation is not None:
            # All of the conversation is erased, including what other users wrote to it.
            tables.found(scope)
            goes = Scope(scope.tenant, None, scope.conversation)
        gone = {key for key, found in tables.conversations.items() if found.scope.within(goes)}

        def hit(owned: Scope) -> bool:
            return owned.within(goes) or (owned.tenant, owned.conversation) in gone

        entries = [entry for key in gone for entry in tables.conversations[key].entries()]
        summaries = [key for key in gone if tables.conversations[key].checkpoint() is not None]
        hashes, spans = tables.hashes(), tables.spans()
        counts = {
            "ai_message": len(entries),
            "conversation_summaries": len(summaries),
            "facts": drop(tables.facts, lambda key: hit(tables.facts[key].scope)),
            "fact_revisions": tables.drop_fact_revisions(hit),
            "tool_result_archive": drop(tables.pages, lambda key: hit(tables.pages[key].page.scope)),
            "context_calls": drop(tables.calls, lambda key: hit(tables.calls[key].scope)),
            "sessions": sum(tables.sessions.pop(key, None) is not None for key in gone),
            "watermarks": drop(tables.watermarks, lambda key: key[:2] in gone),
            "turn_terms": drop(tables.terms, lambda key: key[:2] in gone),
            "attachments": drop(tables.attachments, lambda key: key[:2] in gone),
        }
        vectors = [drop(collection, lambda key: key[:2] in gone) for collection in tables.vectors.values()]
        counts |= counted_vectors(sum(vectors))
        counts["items"] = sum(len(tables.items.pop(key)) for key in _owners(tables, scope))
        left = tables.hashes()
        drop(tables.blobs, lambda key: key not in left)
        counts["blobs"] = len(hashes - left)
        counts["archive_passage"] = spans - tables.spans()
        counts["conversations"] = sum(tables.conversations.pop(key, None) is not None for key in gone)
        number, names = tables.epoch + 1, tuple(name for _, name in gone)
        tables.epochs |= dict.fromkeys(erased_keys(scope, names), number)
        return ErasureReceipt(scope, tables.now(), counts, conversations=names)

    async def describe(self) -> JsonObject:
        self._tables.check_open()
        return {"backend": "memory", "version": None, "place": None, "bytes": None, "read_only": False}

    async def close(self) -> None:
        self._tables.closed = True


def _owners(tables: Tables, scope: Scope) -> list[tuple[str, str]]:
    """Whose items are erased: none for a conversation, a user's, or everyone's in the tenant."""
    if scope.conversation is not None:
        return []
    return [key for key in tables.items if key[0] == scope.tenant and scope.user in (None, key[1])]
