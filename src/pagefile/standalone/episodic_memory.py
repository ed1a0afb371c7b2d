"""Document 002's episodic memory: past turns of a conversation that are relevant to a question.

With a Milvus client it maintains the document's own collection. With an open `Memory` there is nothing to maintain: the log
indexes itself, and the engine's recall is used. Either way, irrelevant turns are never returned.
"""

import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import uuid4

import anyio

from pagefile.engine import Memory
from pagefile.engine.arguments import at_least
from pagefile.errors import ModelOutputError, SettingsError
from pagefile.ports import Erasures
from pagefile.ports.world import Embedder
from pagefile.records import Turn, checked_id, checked_text
from pagefile.standalone.conversation_store import ConversationMessage, ConversationStore
from pagefile.standalone.milvus_collection import MAX_FIELD_BYTES, MilvusCollection, quoted
from pagefile.standalone.session import SPEAKERS
from pagefile.standalone.user_code import called
from pagefile.stores.erasure import scope_key
from pagefile.text.recall_gate import asking, passes
from pagefile.text.sentences import clip

logger = logging.getLogger("pagefile")

COLLECTION = "conversation_episodes"
TOP_K = 3
#: Episodes with a lower cosine similarity to the question are irrelevant.
MIN_SCORE = 0.3
#: A longer text is cut to this: a character takes up to four bytes.
_MAX_FIELD_CHARS = 16_000
#: The fields needed to tell which turn an episode belongs to.
_WORDS = ("id", "conversation_id", "user_message", "assistant_message")
#: Fields of ours, in collections that have room for more than the document's.
_MARKS = ("turn_id", "epoch")
#: Fetch more than requested: the best matches may turn out to be irrelevant.
_OVER_FETCH = 3

EmbeddingModel: TypeAlias = Embedder | Callable[[str], Any] | Any
_Embed: TypeAlias = Callable[[str], Awaitable[list[float]]]


class ConversationEpisodicMemory:
    """对话情节记忆: each turn is an episode, found again by what it is about.

    Args:
        milvus_client: a `MilvusClient` or `AsyncMilvusClient`; or an open `Memory`, or a `ConversationStore`, whose log is
            searched by word, time and meaning.
        embedding_model: for Milvus: an `Embedder`, an object with LangChain's `aembed_query` or `embed_query`, or a function
            from a text to a vector.
        dim: the length of the vectors (1536 in the document); by default, as the model makes them.
        min_score: for Milvus, the minimum similarity of an episode to the question.
    """

    def __init__(
        self,
        milvus_client: Any,
        embedding_model: EmbeddingModel | None = None,
        *,
        collection_name: str = COLLECTION,
        dim: int | None = None,
        min_score: float = MIN_SCORE,
    ) -> None:
        if isinstance(milvus_client, Memory):
            milvus_client = ConversationStore(milvus_client)
        if isinstance(milvus_client, ConversationStore):
            self._episodes = _LogEpisodes(milvus_client)
        else:
            collection = MilvusCollection(milvus_client, collection_name)
            length = None if dim is None else at_least(1, dim, "dim")
            self._episodes = _MilvusEpisodes(collection, _embed(embedding_model), length, min_score)

    async def index_episode(
        self, conversation_id: str, user_message: str, assistant_message: str, *, turn_id: str | None = None
    ) -> None:
        """将一轮对话索引为一个 Episode. With a `turn_id`, indexing is idempotent.

        Over a `Memory` this does nothing: a turn is indexed by being in the log. Episodes that follow a memory skip
        a `turn_id` that its log does not have: it was erased before it could be indexed.
        """
        conversation_id = checked_id(conversation_id, "conversation_id")
        user = checked_text(user_message, "user_message")
        assistant = checked_text(assistant_message, "assistant_message")
        await self._episodes.index(conversation_id, user, assistant, turn_id)

    async def recall_relevant(
        self, conversation_id: str, query: str, top_k: int = TOP_K, *, user_id: str | None = None
    ) -> list[ConversationMessage]:
        """检索语义相关的历史片段: the user's and the assistant's message of each, best first; empty if none is relevant.

        With a `user_id`, those of the user's other conversations too; the document's Milvus collection names no users, and finds those
        of this conversation only.
        """
        conversation_id = checked_id(conversation_id, "conversation_id")
        if not checked_text(query, "query").strip():
            return []
        return await self._episodes.recall(conversation_id, query, at_least(1, top_k, "top_k"), user_id)

    async def forget(self, conversation_id: str) -> int:
        """Erase the episodes of a conversation; returns how many there were.

        A collection in a file is rewritten, so that nothing of them remains; a server removes them later (SECURITY.md). Over a
        `Memory` this does nothing: use its own `forget`, which erases the log. If these episodes follow a memory, call that too.
        """
        return await self._episodes.forget(checked_id(conversation_id, "conversation_id"))

    def follow(self, store: ConversationStore) -> None:
        """Make `forget` of the memory behind a store erase these episodes too, immediately or as soon as Milvus is back.

        A `ConversationHistory` over both does this itself. When a single turn is erased, episodes of other turns stay only if they
        were indexed with their `turn_id`: any episode without one may belong to the erased turn.
        """
        self._episodes.follow(store)


def _recalled(
    conversation_id: str, said: tuple[str, str], timestamp: int, turn_id: str | None
) -> Iterator[ConversationMessage]:
    """The messages of an episode; one indexed without its turn has no ids."""
    for role, content in zip(SPEAKERS, said, strict=True):
        message = ConversationMessage(role=role, content=content, timestamp=timestamp, recalled=True)
        message["conversation_id"] = conversation_id
        if turn_id is not None:
            message["turn_id"], message["id"] = turn_id, f"{turn_id}:{role}"
        if content:
            yield message


@dataclass(frozen=True, slots=True)
class _LogEpisodes:
    """Episodes in the engine's own log, which needs no indexing and follows every erasure."""

    store: ConversationStore

    async def index(self, conversation_id: str, user: str, assistant: str, turn_id: str | None) -> None:
        self.store.engine.check_open()

    async def recall(
        self, conversation_id: str, query: str, top_k: int, user: str | None
    ) -> list[ConversationMessage]:
        most, how = _OVER_FETCH * top_k, asking(query)
        if user:
            hits = await self.store.memory.recall(query, user_id=user, tenant=self.store.tenant, limit=most)
        else:
            hits = await (await self.store.chat(conversation_id)).recall(query, most)
        best = [hit for hit in hits if passes(hit.parts, "auto", how)]
        reset = (await self.store.view(await self.store.owned(conversation_id, user))).head.reset_seq
        found: list[ConversationMessage] = []
        for hit in best[:top_k]:
            turn = await self.store.turn_of(hit)
            # Turns before a reset no longer belong to the conversation.
            if turn and (hit.conversation_id != conversation_id or (turn.seq or 0) > reset):
                found += _recalled(hit.conversation_id, _said(turn), int(turn.at.timestamp()), turn.id)
        return found

    async def forget(self, conversation_id: str) -> int:
        return 0

    def follow(self, store: ConversationStore) -> None: ...


# -- Milvus ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _MilvusEpisodes:
    """A separate collection with the document's fields."""

    collection: MilvusCollection
    embed: _Embed
    dim: int | None
    min_score: float
    #: Whether rows may have more than the document's fields; None until the collection was inspected.
    dynamic: bool | None = None
    #: Whether its vectors have the model's dimension.
    fits: bool = False
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    #: The memory whose erasures reach this collection, and whether it is registered there.
    store: ConversationStore | None = None
    known: bool = False
    #: By tenant. The document has no tenants: where several share the collection, a conversation may belong to any of them.
    stores: dict[str, ConversationStore] = field(default_factory=dict[str, ConversationStore])
    #: What remains of the last erased episodes in a server's files.
    leaves: str = ""

    async def index(self, conversation_id: str, user: str, assistant: str, turn_id: str | None) -> None:
        epoch = await self._epoch()
        vector = await self.embed(f"User: {user}\nAssistant: {assistant}")
        row: dict[str, Any] = {
            "id": turn_id or str(uuid4()),
            "conversation_id": conversation_id,
            "user_message": _fitting(user),
            "assistant_message": _fitting(assistant),
            "embedding": vector,
            "created_at": int(time.time()),
        }
        # Embedded Milvus does not support concurrent writers.
        async with self.lock:
            await self._ready(len(vector))
            if turn_id is not None and self.store is not None:
                # Embedding may have taken long: read the log after fixing the epoch the row is written in.
                epoch = await self._epoch()
                known = [await store.standing(conversation_id, [turn_id]) for store in self.stores.values()]
                if not any(known):
                    logger.info("a turn that the log does not have (any more) was not indexed")
                    return
            marks = zip(_MARKS, (turn_id, epoch), strict=True) if self.dynamic else ()
            row |= {name: value for name, value in marks if value is not None}
            async with self._owing(epoch):
                await self.collection.call("upsert" if turn_id else "insert", data=[row])
        if self.store is not None:
            await self.store.engine.elsewhere.follow(self)

    async def recall(
        self, conversation_id: str, query: str, top_k: int, _user: str | None
    ) -> list[ConversationMessage]:
        vector = await self.embed(query)
        async with self.lock:
            await self._ready(len(vector))
        # An embedded collection is missing for a moment while it is rewritten.
        async with self.lock if await self.collection.in_file() else nullcontext():
            found = await self.collection.call(
                "search",
                data=[vector],
                anns_field="embedding",
                filter=f"conversation_id == {quoted(conversation_id)}",
                limit=top_k,
                output_fields=[*_WORDS, "created_at", *(_MARKS if self.dynamic else ())],
                consistency_level="Strong",
            )
        erasures, stores = await self._erasures(), self.stores.values()
        owed: Mapping[str, int] = {} if erasures is None else (await erasures.owed(self.name)).scopes
        epochs = [await store.reader.epoch(store.scope(conversation_id)) for store in stores]
        messages: list[ConversationMessage] = []
        for hit in found[0]:
            row: Mapping[str, Any] = hit["entity"]
            # The filter already asks for it; checked again, so that no other conversation can ever leak.
            ours = row["conversation_id"] == conversation_id and float(hit["distance"]) >= self.min_score
            if ours and not self._is_hidden(row, owed, max(epochs, default=0)):
                told = int(row["created_at"]), row.get("turn_id")
                messages += _recalled(conversation_id, _words(row), *told)
        return messages

    # -- erasing ------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name under which the memory tracks this collection."""
        return f"milvus:{self.collection.name}"

    def follow(self, store: ConversationStore) -> None:
        self.store = store
        self.stores[store.tenant] = store
        store.engine.elsewhere.add(self)

    async def forget(self, conversation_id: str) -> int:
        async with self.lock:
            rows = await self._rows()
            going = [row for row in rows if row["conversation_id"] == conversation_id]
            return await self._remove(rows, going)

    async def erase_before(self, erased: Mapping[str, int]) -> int:
        """Erase what was indexed before erasures; see `VectorIndex.erase_before` for how they are named.

        An erasure only names the conversation, not the turns: episodes whose turns the log still has stay.
        """
        async with self.lock:
            rows = await self._rows()
            older = [row for row in rows if self._is_older(row, erased)]
            stays: set[str] = set()
            async for some in self.collection.some([str(row["id"]) for row in older], _WORDS):
                standing = await self._standing(some)
                await self._renew(standing, max(erased.values()))
                stays |= standing
            return await self._remove(rows, [row for row in older if row["id"] not in stays])

    async def _rows(self) -> list[Mapping[str, Any]]:
        """Every row, without its text."""
        if not await self.collection.is_there():
            return []
        await self._looked_at()
        marks = ("epoch",) if self.dynamic else ()
        return [row async for row in self.collection.rows(["id", "conversation_id", *marks])]

    async def _remove(self, rows: Sequence[Mapping[str, Any]], going: Sequence[Mapping[str, Any]]) -> int:
        gone = {str(row["id"]) for row in going}
        kept = [str(row["id"]) for row in rows if row["id"] not in gone]
        self.leaves = await self.collection.remove([*gone], kept) if gone else ""
        return len(gone)

    async def _renew(self, ids: Collection[str], epoch: int) -> None:
        """Mark episodes of turns that survived an erasure as if they had been indexed after it."""
        if not ids or not self.dynamic:
            return
        async with self._owing(epoch):
            async for rows in self.collection.some([*ids], ["*"]):
                await self.collection.call("upsert", data=[{**row, "epoch": epoch} for row in rows])

    async def _standing(self, rows: Sequence[Mapping[str, Any]]) -> set[str]:
        """The ids of episodes whose turns the log has with the same text: an id may have been reused."""
        found: set[str] = set()
        for name in {str(row["conversation_id"]) for row in rows}:
            own = {str(row["id"]): _words(row) for row in rows if row["conversation_id"] == name}
            for store in self.stores.values():
                turns = (await store.standing(name, own.keys())).values()
                # The row has the turn's text as far as Milvus can hold it.
                found |= {turn.id for turn in turns if tuple(map(_fitting, _said(turn))) == own[turn.id]}
        return found

    def _is_older(self, row: Mapping[str, Any], erased: Mapping[str, int]) -> bool:
        """Whether an episode is older than the last erasure of its conversation, or of the tenant."""
        names = (None, str(row["conversation_id"]))
        keys = [scope_key(tenant, None, name) for tenant in self.stores for name in names]
        return any(int(row.get("epoch") or 0) < erased.get(key, 0) for key in keys)

    def _is_hidden(self, row: Mapping[str, Any], owed: Mapping[str, int], newest: int) -> bool:
        """Whether it may belong to erased turns, even if Milvus was never asked to erase: `newest` is its conversation's epoch."""
        epoch = row.get("epoch")
        # Foreign collections and rows of earlier versions have no epoch.
        return self._is_older(row, owed) if epoch is None else int(epoch) < newest

    async def _erasures(self) -> Erasures | None:
        if self.store is None:
            return None
        erasures = self.store.engine.store.erasures
        if not self.known:
            await erasures.begin(self.name)
            self.known = True
        return erasures

    async def _epoch(self) -> int | None:
        """The current erasure epoch; None while no memory is followed."""
        await self._erasures()
        return None if self.store is None else await self.store.reader.epoch()

    @asynccontextmanager
    async def _owing(self, epoch: int | None) -> AsyncGenerator[None]:
        """Around writing rows of an epoch: erasures since then are owed again, since the rows may belong to them."""
        # Recorded before writing, because this process may die before it can do so afterwards.
        await self._owe_since(epoch)
        try:
            yield
        finally:
            # Milvus may have the rows even if the caller was cancelled.
            with anyio.CancelScope(shield=True):
                await self._owe_since(epoch)

    async def _owe_since(self, epoch: int | None) -> None:
        erasures = await self._erasures()
        if erasures is not None and epoch is not None and await self._epoch() != epoch:
            await erasures.redo(self.name, epoch)

    async def _ready(self, length: int) -> None:
        """Ensures that the collection exists, is loaded, and matches the vectors' dimension."""
        if self.dim is None:
            self.dim = length
        if self.dim != length:
            raise SettingsError(
                f"The embedding model makes vectors of {length} numbers, and dim is {self.dim}: give dim={length}, or another model."
            )
        if self.fits:
            return
        if not await self.collection.is_there():
            await self.collection.create(length)
        stored = await self._looked_at()
        self.fits = stored == length
        if not self.fits:
            raise SettingsError(
                f"The collection {self.collection.name!r} has vectors of {stored} numbers, the embedding model makes {length}: "
                "give another collection_name, or the model it was made with."
            )

    async def _looked_at(self) -> int:
        """Load the collection and inspect its schema; returns the dimension of its vectors."""
        described = await self.collection.call("describe_collection")
        await self.collection.call("load_collection")
        self.dynamic = bool(described.get("enable_dynamic_field"))
        vectors = [known for known in described["fields"] if known["name"] == "embedding"]
        return int(vectors[0]["params"]["dim"]) if vectors else 0


def _said(turn: Turn) -> tuple[str, str]:
    return turn.user or "", turn.assistant or ""


def _words(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row["user_message"]), str(row["assistant_message"])


def _fitting(text: str) -> str:
    """The text as far as Milvus can hold it: a longer one is clipped in the middle and says by how much."""
    return text if len(text.encode()) <= MAX_FIELD_BYTES else clip(text, _MAX_FIELD_CHARS)


# -- embedding models ----------------------------------------------------------------------------------------------------


def _embed(model: EmbeddingModel | None) -> _Embed:
    functions = (getattr(model, "aembed_query", None), getattr(model, "embed_query", None), model)
    usable = [function for function in functions if callable(function)]
    if not usable and not isinstance(model, Embedder):
        raise SettingsError(
            f"embedding_model is {type(model).__name__}: Milvus needs one; give an Embedder, an object with embed_query, "
            "or a function from a text to a vector."
        )

    async def embed(text: str) -> list[float]:
        found: Any = (
            (await model.embed([text]))[0] if isinstance(model, Embedder) else await called(usable[0], text)
        )
        vector = [float(number) for number in found]
        if not vector:
            raise ModelOutputError("The embedding model returned an empty vector.")
        return vector

    return embed
