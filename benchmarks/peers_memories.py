"""Those that keep what was said and find it again: mem0, LangGraph's store, Chroma, LlamaIndex' memory.

None of their types is at hand when this is checked, so what they return is `Any`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from benchmarks.peers_base import (
    BUDGET,
    INSTRUCTIONS,
    RECALLED,
    Peer,
    Prompt,
    part,
    pieces,
    with_memories,
)
from benchmarks.peers_script import Line
from benchmarks.peers_vectors import Vectors
from benchmarks.recall_peers import mem0_keywords
from pagefile.settings.sources import handed_down

_EVERYTHING = 10**6


class _Store(Peer):
    """Somebody who makes no prompts: what is found goes into the system message."""

    makes_windows = False

    async def context(self, question: str) -> Prompt:
        return with_memories(question, await self.recall(question), self.given.counter)


class Mem0Peer(_Store):
    """Its `Memory` over qdrant on disk, without a model."""

    name = "mem0"
    package = "mem0ai"
    used = (
        "`Memory.add(infer=False)` and `search` over its default store on disk, with its own BM25 (without spaCy's lemmas, whose "
        "model is a download). The prompt is that of its quickstart: what was found, and the question."
    )

    async def open(self) -> None:
        handed_down("MEM0_TELEMETRY", "False")
        handed_down("MEM0_DIR", str(self.given.folder / "home"))
        # Nothing is asked of either model: the embedder is put in place below, and without `infer` no text is written.
        unused = {"provider": "openai", "config": {"api_key": "unused"}}
        store = {
            "path": str(self.given.folder / "qdrant"),
            "on_disk": True,
            "embedding_model_dims": self.given.vectors.dimension,
        }
        self._memory = part("mem0").Memory.from_config(
            {
                "embedder": unused,
                "llm": unused,
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(self.given.folder / "history.db"),
            }
        )
        self._memory.embedding_model = Mem0Embedder(self.given.vectors)
        self._memory.vector_store._bm25_encoder = mem0_keywords(self.given.folder / "bm25")  # noqa: SLF001 - see there

    async def record(self, line: Line) -> None:
        messages = [{"role": "user", "content": line.user}, {"role": "assistant", "content": line.assistant}]
        if line.result is not None:
            messages.append({"role": "tool", "content": line.result})
        self._memory.add(messages, user_id="bench", infer=False)

    async def recall(self, question: str) -> Sequence[str]:
        found = self._memory.search(question, top_k=RECALLED, filters={"user_id": "bench"}, threshold=0.0)
        return [row["memory"] for row in found["results"]]

    async def remains(self) -> Iterable[str]:
        found = self._memory.get_all(filters={"user_id": "bench"}, top_k=_EVERYTHING)
        return [row["memory"] for row in found["results"]]

    async def close(self) -> None:
        self._memory.vector_store.client.close()


class Mem0Embedder:
    """An embedder as mem0 calls it."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        del memory_action
        return self._vectors.now([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        del memory_action
        return self._vectors.now(texts)


class LangGraphStorePeer(_Store):
    """`InMemoryStore` with an index."""

    name = "LangGraph store"
    package = "langgraph"
    vectors_only = True
    used = (
        "`InMemoryStore` with an index, an item a turn, tool results in pieces of 1,000 characters. The prompt: what `search` "
        "found, and the question."
    )

    async def open(self) -> None:
        index = {"dims": self.given.vectors.dimension, "embed": self.given.vectors.now, "fields": ["text"]}
        self._store = part("langgraph.store.memory").InMemoryStore(index=index)

    async def record(self, line: Line) -> None:
        for key, text in _items(line):
            self._store.put(("turns",), key, {"text": text})

    async def recall(self, question: str) -> Sequence[str]:
        found = self._store.search(("turns",), query=question, limit=RECALLED)
        return [item.value["text"] for item in found]

    async def remains(self) -> Iterable[str]:
        items = self._store.search(("turns",), limit=_EVERYTHING)
        return _whole((item.key, item.value["text"]) for item in items)


class ChromaPeer(_Store):
    """A collection on disk."""

    name = "chromadb"
    package = "chromadb"
    vectors_only = True
    used = (
        "A collection of a `PersistentClient`, a document a turn, tool results in pieces of 1,000 characters. The prompt: what "
        "`query` found, and the question."
    )

    async def open(self) -> None:
        settings = part("chromadb.config").Settings(anonymized_telemetry=False)
        client = part("chromadb").PersistentClient(str(self.given.folder / "chroma"), settings=settings)
        self._collection = client.create_collection("turns", metadata={"hnsw:space": "cosine"})

    async def record(self, line: Line) -> None:
        items = dict(_items(line))
        texts = list(items.values())
        self._collection.add(ids=list(items), documents=texts, embeddings=self.given.vectors.now(texts))

    async def recall(self, question: str) -> Sequence[str]:
        asked = self.given.vectors.now([question])
        return self._collection.query(query_embeddings=asked, n_results=RECALLED)["documents"][0]

    async def remains(self) -> Iterable[str]:
        found = self._collection.get()
        return _whole(zip(found["ids"], found["documents"], strict=True))


class LlamaIndexPeer(Peer):
    """Its `Memory`: the latest messages, and what leaves them in a vector block."""

    name = "LlamaIndex memory"
    package = "llama-index-core"
    vectors_only = True
    vectors_in_memory = True
    used = (
        "`Memory` on a SQLite file with a `VectorMemoryBlock` that adds 2 items, its default, to a prompt of 16,000 tokens, of which "
        "70 % are for the latest messages. The block is asked the question alone; its vectors are in memory."
    )
    #: It counts the tokens of every message it still has each time one is put.
    _counted: dict[str, range]

    async def open(self) -> None:
        memory = part("llama_index.core.memory")
        self._message = part("llama_index.core.base.llms.types").ChatMessage
        self._counted = {}
        self._block = memory.VectorMemoryBlock(
            vector_store=_llama_store(),
            embed_model=_llama_embedder(self.given.vectors),
            retrieval_context_window=1,
        )
        self._memory = memory.Memory.from_defaults(
            session_id="bench",
            token_limit=BUDGET,
            token_flush_size=BUDGET // 10,
            memory_blocks=[self._block],
            tokenizer_fn=self._tokens,
            async_database_uri=f"sqlite+aiosqlite:///{self.given.folder / 'llama.db'}",
        )

    async def record(self, line: Line) -> None:
        said = [("user", line.user), ("assistant", line.assistant)]
        if line.result is not None:
            said.insert(1, ("tool", line.result))
        await self._memory.aput_messages([self._message(role=role, content=text) for role, text in said])

    async def context(self, question: str) -> Prompt:
        messages = await self._memory.aget(input=question)
        made = [{"role": str(one.role.value), "content": one.content or ""} for one in messages]
        return [
            {"role": "system", "content": INSTRUCTIONS},
            *made,
            {"role": "user", "content": question},
        ]

    async def recall(self, question: str) -> Sequence[str]:
        """What the block finds when it is asked for as many as the others are."""
        usual, self._block.similarity_top_k = self._block.similarity_top_k, RECALLED
        found = await self._block.aget([self._message(role="user", content=question)], session_id="bench")
        self._block.similarity_top_k = usual
        return [found] if found else []

    async def remains(self) -> Iterable[str]:
        return [one.content or "" for one in await self._memory.aget_all()]

    def _tokens(self, text: str) -> range:
        """Something as long as the text has tokens."""
        if text not in self._counted:
            self._counted[text] = range(self.given.counter.count(text))
        return self._counted[text]


def _llama_store() -> Any:
    """Its own store in memory, which keeps no texts, with the texts: a memory block wants both in one place."""
    simple: Any = part("llama_index.core.vector_stores").SimpleVectorStore

    class Kept(simple):
        stores_text: bool = True

        def add(self, nodes: Sequence[Any], **options: Any) -> Any:
            kept.update((node.node_id, node) for node in nodes)
            return simple.add(self, nodes, **options)

        def query(self, query: Any, **options: Any) -> Any:
            found: Any = simple.query(self, query, **options)
            found.nodes = [kept[one] for one in found.ids]
            return found

    kept: dict[str, Any] = {}
    return Kept()


def _llama_embedder(vectors: Vectors) -> Any:
    """An embedder as LlamaIndex calls it."""
    base: Any = part("llama_index.core.base.embeddings.base").BaseEmbedding

    class Asked(base):
        def _get_text_embedding(self, text: str) -> list[float]:
            return vectors.now([text])[0]

        def _get_query_embedding(self, query: str) -> list[float]:
            return vectors.now([query])[0]

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return vectors.now([query])[0]

    return Asked(model_name=vectors.name)


def _items(line: Line) -> Iterator[tuple[str, str]]:
    """A turn as items of a store, each with its key."""
    yield f"{line.number}", line.text
    for number, piece in enumerate(pieces(line.result or "")):
        yield f"{line.number}/{number:04}", piece


def _whole(items: Iterable[tuple[str, str]]) -> list[str]:
    """Texts of items, pieces put together again."""
    whole: dict[str, str] = {}
    for key, text in sorted(items):
        # "7" is what was said in turn 7, "7/" what its tool returned.
        name = f"{key.partition('/')[0]}/" if "/" in key else key
        whole[name] = whole.get(name, "") + text
    return list(whole.values())
