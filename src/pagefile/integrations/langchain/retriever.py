"""A LangChain retriever over a user's memory: facts first, then past turns."""

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, PrivateAttr

from pagefile.edge.fail_open import FailOpen
from pagefile.integrations.searches import Found, search


class PagefileRetriever(BaseRetriever):
    """Finds what memory knows: `PagefileRetriever(memory=memory, user_id="ada", k=4)`.

    A memory that fails finds nothing. `invoke` needs a `BlockingMemory`, or a `Memory` in another thread's event loop.
    """

    memory: Any = Field(exclude=True, repr=False)
    """A `Memory` or a `BlockingMemory`."""
    user_id: str
    """Whose memory is searched."""
    tenant: str | None = None
    k: int = Field(4, ge=1)
    """How many documents are returned at most."""
    timeout_s: float = 5.0
    """How long a search waits for the memory."""
    _edge: FailOpen = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        self._edge = FailOpen(self.memory, "langchain", timeout_s=self.timeout_s)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return self._edge.attempt_blocking("searching", lambda: self._found(query, k), list[Document]())

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return await self._edge.attempt("searching", lambda: self._found(query, k), list[Document]())

    async def _found(self, query: str, k: int | None) -> list[Document]:
        memory, limit = self._edge.memory, self.k if k is None else k
        found = await search(memory, query, user_id=self.user_id, tenant=self.tenant, limit=limit)
        return [_document(one) for one in found]


def _document(found: Found) -> Document:
    told = {"kind": found.kind, "at": found.at.isoformat(), "score": found.score}
    if found.conversation_id is not None:
        told["conversation_id"] = found.conversation_id
    return Document(id=found.id, page_content=found.text, metadata=told)
