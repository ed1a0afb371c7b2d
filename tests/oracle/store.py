"""The store, and what an erasure removes from its dicts."""

from collections.abc import Callable
from typing import TypeVar

from pagefile.ports import Clock, Part, Store, VectorIndex
from pagefile.records import ErasureReceipt, JsonObject, Scope
from pagefile.stores.erasure import counted_vectors, erased_keys
from tests.oracle.log import OracleReader, OracleTurnLog
from tests.oracle.pages import OracleMedia, OraclePageIndex, OraclePageKeeper, OraclePages
from tests.oracle.ports import (
    OracleCalls,
    OracleFacts,
    OracleSessions,
    OracleTerms,
    OracleWatermarks,
)
from tests.oracle.tables import Tables
from tests.oracle.vectors import OracleVectors

K = TypeVar("K")
T = TypeVar("T")


class OracleStore(Store):
    def __init__(self, clock: Clock) -> None:
        self._tables = Tables(clock)
        self.log = OracleTurnLog(self._tables)
        self.reader = self.source = OracleReader(self._tables)
        self.facts = OracleFacts(self._tables)
        self.pages = OraclePages(self._tables)
        self.page_keeper = OraclePageKeeper(self._tables)
        self.page_index = OraclePageIndex(self._tables)
        self.media = OracleMedia(self._tables)
        self.calls = OracleCalls(self._tables)
        self.sessions = OracleSessions(self._tables)
        self.watermarks = OracleWatermarks(self._tables)
        self.terms = OracleTerms(self._tables)

    def vectors(self, *, cache_bytes: int | None = None) -> VectorIndex:
        return OracleVectors(self._tables)

    async def erase(self, scope: Scope, part: Part | None = None) -> ErasureReceipt:
        tables = self._tables
        tables.check_open()
        assert part is None, "the oracle erases whole scopes only"
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
        counts["items"] = 0
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


def drop(table: dict[K, T], goes: Callable[[K], bool]) -> int:
    keys = [key for key in table if goes(key)]
    for key in keys:
        del table[key]
    return len(keys)
