"""What others would use instead, asked the same questions with the same vectors: mem0, Chroma, LangGraph's store.

They are installed by the extra `bench`. One that is not there, or would phone home, is left out, and the report says why.
"""

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio.to_thread

from benchmarks.recall_data import Asked, Corpus, Said
from benchmarks.recall_rankers import Ranker
from benchmarks.recall_vectors import Remembered
from pagefile.text.words import STOP_WORDS

#: The most that Chroma takes at once.
_BATCH = 1000
#: A turn may be stored as two memories: more are asked for, so that enough turns come back.
_MEMORIES_A_TURN = 2


class PeerRanker(Ranker):
    """Somebody else's store; its calls block, so they are made in a thread."""

    def __init__(self, vectors: Remembered, folder: Path) -> None:
        self._vectors = vectors
        self._folder = folder
        self._user = ""
        self.start()

    @abstractmethod
    def start(self) -> None:
        """Load it; `ImportError` when it is not installed, `RuntimeError` when it must not be used as it is."""

    @abstractmethod
    def put(self, corpus: Corpus) -> None:
        """Store everything that was said."""

    @abstractmethod
    def find(self, question: str, limit: int) -> Iterator[str]:
        """The ids of turns, best first; one may come twice."""

    async def take(self, corpus: Corpus) -> None:
        self._user = corpus.user
        await anyio.to_thread.run_sync(self.put, corpus)

    async def rank(self, asked: Asked, limit: int) -> list[str]:
        def found() -> list[str]:
            return list(dict.fromkeys(self.find(asked.text, limit)))[:limit]

        return await anyio.to_thread.run_sync(found)


class ChromaRanker(PeerRanker):
    """A collection of a Chroma on disk."""

    name = "chroma"

    def start(self) -> None:
        settings = import_module("chromadb.config").Settings(anonymized_telemetry=False)
        client = import_module("chromadb").PersistentClient(str(self._folder / "chroma"), settings=settings)
        self._collection: Any = client.create_collection("turns", metadata={"hnsw:space": "cosine"})

    def put(self, corpus: Corpus) -> None:
        for start in range(0, len(corpus.said), _BATCH):
            said = corpus.said[start : start + _BATCH]
            self._collection.add(
                # Not the set's own id, which it may use twice.
                ids=[f"{corpus.user}/{start + number}" for number in range(len(said))],
                embeddings=self._vectors.now([one.text for one in said]),
                documents=[one.text for one in said],
                metadatas=[{"user": corpus.user, "said": one.id} for one in said],
            )

    def find(self, question: str, limit: int) -> Iterator[str]:
        found = self._collection.query(
            query_embeddings=self._vectors.now([question]), n_results=limit, where={"user": self._user}
        )
        return (row["said"] for row in found["metadatas"][0])


class LangGraphRanker(PeerRanker):
    """LangGraph's `InMemoryStore` with an index, a namespace for each user."""

    name = "LangGraph store"

    def start(self) -> None:
        index = {"dims": self._vectors.dimension, "embed": self._vectors.now, "fields": ["text"]}
        self._store: Any = import_module("langgraph.store.memory").InMemoryStore(index=index)

    def put(self, corpus: Corpus) -> None:
        self._vectors.now([one.text for one in corpus.said])
        for number, one in enumerate(corpus.said):
            self._store.put(("turns", corpus.user), str(number), {"text": one.text, "said": one.id})

    def find(self, question: str, limit: int) -> Iterator[str]:
        found = self._store.search(("turns", self._user), query=question, limit=limit)
        return (item.value["said"] for item in found)


class Mem0Ranker(PeerRanker):
    """mem0 without a model (`infer=False`), over its default store, with its own BM25 where that is installed."""

    name = "mem0"

    def start(self) -> None:
        if import_module("mem0.memory.telemetry").MEM0_TELEMETRY:
            raise RuntimeError("it phones home unless MEM0_TELEMETRY=False is set before the command is run")
        # It warns of each reset, which is meant here.
        logging.getLogger("mem0").setLevel(logging.ERROR)
        # Nothing is asked of either model: the embedder is put in place below, and without `infer` no text is written.
        unused = {"provider": "openai", "config": {"api_key": "unused"}}
        self._memory: Any = import_module("mem0").Memory.from_config(
            {
                "embedder": unused,
                "llm": unused,
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": str(self._folder / "mem0"),
                        "on_disk": True,
                        "embedding_model_dims": self._vectors.dimension,
                    },
                },
                "history_db_path": str(self._folder / "mem0-history.db"),
            }
        )
        self._memory.embedding_model = _Mem0Embedder(self._vectors)
        self._memory.vector_store._bm25_encoder = mem0_keywords(self._folder / "bm25")  # noqa: SLF001 - see there

    def put(self, corpus: Corpus) -> None:
        # Its store reads every memory of everybody for each question: with one user in it, it is faster and finds no less.
        self._memory.reset()
        self._vectors.now([text for one in corpus.said for _, text in _sides(one)])
        for one in corpus.said:
            messages = [{"role": role, "content": text} for role, text in _sides(one)]
            self._memory.add(messages, user_id=corpus.user, metadata={"said": one.id}, infer=False)

    def find(self, question: str, limit: int) -> Iterator[str]:
        found = self._memory.search(
            question, top_k=_MEMORIES_A_TURN * limit, filters={"user_id": self._user}, threshold=0.0
        )
        return (row["metadata"]["said"] for row in found["results"])


def mem0_keywords(folder: Path) -> object:
    """What mem0 ranks words with, made without a download; False, as mem0 has it, where fastembed is not installed.

    mem0 fetches the "model", which is nothing but lists of stop words, from the net, and does without words when it cannot.
    Here the stop words are ours, and the stemming and weighing are those of the package itself.
    """
    try:
        embedding = import_module("fastembed").SparseTextEmbedding
    except ImportError:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "english.txt").write_text("\n".join(sorted(STOP_WORDS)), encoding="utf-8")
    return embedding(model_name="Qdrant/bm25", specific_model_path=str(folder))


class _Mem0Embedder:
    """An embedder as mem0 calls it."""

    def __init__(self, vectors: Remembered) -> None:
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        del memory_action
        return self._vectors.now([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        del memory_action
        return self._vectors.now(texts)


PEERS: tuple[type[PeerRanker], ...] = (Mem0Ranker, ChromaRanker, LangGraphRanker)


def open_peers(vectors: Remembered, folder: Path, told: Callable[[str], None]) -> list[Ranker]:
    """Those that can be used here; `told` why another cannot."""
    opened: list[Ranker] = []
    for peer in PEERS:
        try:
            opened.append(peer(vectors, folder))
        except (ImportError, RuntimeError) as error:
            told(f"{peer.name} is left out: {error}. The extra `bench` installs what is compared.")
    return opened


def _sides(said: Said) -> list[tuple[str, str]]:
    sides = (("user", said.user), ("assistant", said.assistant))
    return [(role, text) for role, text in sides if text]
