"""`Memory`: one open database, its tiers, and everything that concerns more than one conversation."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from os import PathLike
from typing import Any

import anyio

from pagefile import ports, records
from pagefile.content import JsonValue
from pagefile.engine import arguments, standard_tiers
from pagefile.engine.conversation import Conversation
from pagefile.engine.engine import Engine
from pagefile.engine.fact_import import import_memory
from pagefile.engine.lifetime import connecting, opening
from pagefile.engine.log_queries import done_turns, listing, pages_about, pages_of, recalled
from pagefile.engine.messages import Desk
from pagefile.engine.metrics import NoMeter
from pagefile.engine.ownership import on_behalf
from pagefile.engine.page_tools import load_text
from pagefile.engine.replay import found_call
from pagefile.errors import InvalidArgumentError
from pagefile.settings import Settings
from pagefile.settings.files import warn_of_unread_file
from pagefile.settings.model import database_url
from pagefile.stores import InMemoryStore, StoreOptions, SystemClock, open_sessions, open_store
from pagefile.stores.registry import open_vectors, read_key
from pagefile.text.tokens import CachedCounter, open_counter
from pagefile.tiers.archive import Archive
from pagefile.tiers.base import Tier, guarded
from pagefile.tiers.derivation import Health
from pagefile.tiers.episodes import Episodes
from pagefile.tiers.fact_book import Draft
from pagefile.tiers.facts import Facts
from pagefile.tiers.turn_index import TurnVectors


class Memory:
    """Everything the agents ever saw, and the windows made from it.

    Use it as `async with Memory.open("sqlite:///agent.db") as memory`, or as `memory = await Memory.connect(…)` with `close`.
    """

    def __init__(self, engine: Engine) -> None:
        #: The store and the tiers, for packages that build on this one.
        self.engine = engine
        #: Closes the memory.
        self.closing: Callable[[], Coroutine[Any, Any, None]]

    @property
    def settings(self) -> Settings:
        """What this memory was opened with."""
        return self.engine.settings

    @classmethod
    @opening
    async def open(
        cls,
        url: str | PathLike[str] | ports.Store | None = None,
        *,
        sessions: str | ports.SessionCache | None = None,
        vectors: str | ports.VectorIndex | None = None,
        embedder: str | ports.Embedder | None = None,
        tokenizer: str | None = None,
        model: ports.ChatModel | None = None,
        summarizer: ports.Summarizer | Callable[[str], str | Awaitable[str]] | None = None,
        settings: Settings | None = None,
        meter: ports.Meter | None = None,
        clock: ports.Clock | None = None,
        tiers: Sequence[Tier] = (),
    ) -> AsyncGenerator["Memory"]:
        """Open a memory for the length of a `with` block.

        Args: url: where everything is stored, by default `sqlite:///pagefile.db`: a URL, the path of a SQLite file, or a
        store of your own, which is closed with the memory. sessions: a cache of
        session values in front of the database, such as `redis://…`; it may be down, it is only a cache.
        vectors: where vectors of turns are stored, such as `milvus://…`; by default the database itself,
        "none" for nowhere. embedder: what makes them: an `Embedder`, or a name as in the setting
        `embedder.name`. tokenizer: what counts tokens, by default `o200k_base`. model: a chat model that
        writes summaries; without one they are extracted. summarizer: what writes summaries instead: a
        `Summarizer`, or a function from the conversation's text to a summary. settings: everything else;
        neither the environment nor a `pagefile.toml` is read here: `load_settings()` reads both. meter: records metrics. clock: for tests. tiers: your own
        kinds of memory, in addition to the standard ones.
        """
        if settings is None:
            warn_of_unread_file()
        settings = arguments.sized(settings or Settings())
        counter = CachedCounter(open_counter(tokenizer or settings.tokenizer))
        clock, meter = clock or SystemClock(), meter or NoMeter()
        own_model = standard_tiers.chat_model(settings.model) if model is None else None
        model, own_embedder = model or own_model, None
        if not isinstance(embedder, ports.Embedder):
            embedder = own_embedder = standard_tiers.named_embedder(settings.embedder, embedder)
        async with _closing() as closing:
            named = sessions if sessions is not None else settings.sessions
            cache = open_sessions(named) if isinstance(named, str) else named
            for opened in (own_model, own_embedder, cache):
                if opened is not None:
                    closing.push_async_callback(opened.close)
            options = StoreOptions(settings.synchronous, key=read_key(settings.encryption_key_file))
            place = url or settings.url
            store = (
                place
                if isinstance(place, ports.Store)
                else await open_store(database_url(place), clock=clock, options=options)
            )
            closing.push_async_callback(store.close)
            place = vectors if vectors is not None else settings.vectors
            index = place if isinstance(place, ports.VectorIndex) else open_vectors(place, store)
            if index is not None:
                closing.push_async_callback(index.close)
            kit = standard_tiers.Kit(
                store,
                settings,
                clock,
                counter,
                meter,
                summarizer=standard_tiers.summarizer_of(model, summarizer),
                describe=standard_tiers.synopsis_of(settings, model),
                extractor=standard_tiers.extractor_of(settings, model),
                embedder=embedder,
                index=index,
                vectors=None
                if index is None or embedder is None
                else TurnVectors(index, embedder, store.watermarks, store.erasures),
                health=Health(meter),
            )
            engine = Engine(kit, cache=cache, more=tiers)
            engine.dead_writers.give_up = lambda scope, turn_id: Desk(
                engine, scope, None, ports.NO_LABELS
            ).given_up(turn_id)
            closing.push_async_callback(engine.calls.flush)
            try:
                async with _background_work(engine):
                    yield cls(engine)
            finally:
                engine.closed = True

    connect = classmethod(connecting(open))  # noqa: A003 - the method above

    async def close(self) -> None:
        """Finish the quick part of what is left, and close; from any task, and idempotent."""
        await self.closing()

    def conversation(
        self,
        id: str,  # noqa: A002 - the word users write
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        agent: str | None = None,
        project: str | None = None,
        language: str | None = None,
        timezone: str | None = None,
        incognito: bool = False,
    ) -> Conversation:
        """A handle on a conversation; nothing is read or written until it is used.

        Its first use decides its owner for good: the user named, or none. Any other scope gets
        `ConflictError`, including one that names no user if the conversation has an owner.

        The agent, the project, the user's language and time zone (such as "Asia/Shanghai") are stored with the
        conversation from the next turn on, until a different value is given; `head()` shows them. The language
        ("zh" or "en", or "auto" for that of the first messages) is the one in which Pagefile speaks to the model;
        by default the setting.

        An incognito conversation is kept in this handle only: nothing is written to the database, no fact and
        no past turn is recalled into it, and it is gone with the handle.
        """
        scope = self._scope(tenant, user_id, records.checked_id(id, "conversation id"))
        labels = arguments.checked_labels(project=project, language=language, timezone=timezone)
        engine = self._incognito() if incognito else self.engine
        return Conversation(engine, scope, agent=agent, labels=labels)

    async def conversations(
        self,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> records.Listing[records.ConversationInfo]:
        """Conversations, most recently used first; asking for a window is a use. Pass `next` as `after` to continue."""
        scope, count = self._scope(tenant, user_id), arguments.at_least(1, limit, "limit")
        query = ports.ConversationQuery(scope, count + 1, arguments.cursor(after))
        found = await self.engine.store.reader.heads(query)
        return listing(found, count, lambda head: head.scope.conversation)

    async def turns(
        self,
        *,
        user_id: str | None = None,
        conversation_id: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> records.Listing[records.Turn]:
        """Completed turns of a tenant, a user or a conversation, one conversation after another; pass `next` as
        `after` to continue.

        Turns from before a reset are included: they left the window, not the memory.
        """
        scope = await self._on_behalf(tenant, user_id, conversation_id)
        return await done_turns(self.engine, scope, after=after, limit=arguments.at_least(1, limit, "limit"))

    async def recall(
        self,
        query: str,
        *,
        user_id: str,
        tenant: str | None = None,
        limit: int = 10,
        at: datetime | None = None,
    ) -> list[records.Hit]:
        """Past turns of a user, across conversations, that answer the query, best first.

        `at` is the time of the question, by default now: "last week" is relative to it.
        """
        return await recalled(self.engine, self._user(tenant, user_id), query, limit, at)

    async def remember(
        self,
        text: str,
        *,
        user_id: str,
        tenant: str | None = None,
        category: str | None = None,
        confidence: float | None = 1.0,
        source: str | None = None,
        attribute: str | None = None,
        subject: str | None = None,
        valid_from: datetime | None = None,
        project: str | None = None,
        agent: str | None = None,
    ) -> records.Fact:
        """Store a lasting statement about a user; `outcome` says whether it was new, known or replaced another.

        A statement that is already known is a "duplicate" and raises the fact's confidence. With an `attribute`
        (such as "residence"), it replaces what was held about that attribute ("superseded"), which stays on record.
        A statement that contains a password, a key or a card number raises `FactRejectedError`.

        Args:
            source: the turn it came from.
            attribute: what it is about; each `subject` (the user, unless named) has one fact per attribute.
            valid_from: since when it is true, by default now.
            project: the project it belongs to: only conversations of that project are shown it.
            agent: the agent it belongs to: only that agent's conversations are shown it.
        """
        scope = self._user(tenant, user_id)
        draft = Draft(
            text,
            category=category,
            confidence=confidence,
            source_turn=source,
            project=arguments.id_or_none(project, "project"),
            agent=arguments.id_or_none(agent, "agent"),
            attribute=attribute,
            subject=subject,
            valid_from=valid_from,
        )
        fact = await self.engine.tier(Facts).book.remember(scope, draft)
        self.engine.worker.wake(Facts.name, scope)
        return fact

    async def facts(
        self, user_id: str, tenant: str | None = None, *, as_of: datetime | None = None, history: bool = False
    ) -> list[records.Fact]:
        """The facts about a user, oldest first.

        `as_of` gives what was held at that moment, in its state at the time; `history` gives every fact there
        ever was, including superseded ones (they have a `valid_to`) and retracted ones.
        """
        scope = self._user(tenant, user_id)
        if as_of is not None:
            return await self.engine.tier(Facts).book.as_of(scope, arguments.moment(as_of))
        if history:
            return await self.engine.store.facts.list(scope, retracted=True)
        return [fact for fact in await self.engine.store.facts.list(scope) if fact.valid_to is None]

    async def retract(
        self, fact_id: str, *, user_id: str | None = None, tenant: str | None = None
    ) -> records.Fact:
        """Retract a fact; it stays on record as retracted. If a user is named, the fact must be theirs."""
        scope = self._scope(tenant, user_id)
        return await self.engine.tier(Facts).book.retract(scope, records.checked_id(fact_id, "fact id"))

    async def correct(
        self, fact_id: str, text: str, *, user_id: str | None = None, tenant: str | None = None
    ) -> records.Fact:
        """Correct a fact, and return the one that replaces it. If a user is named, the fact must be theirs.

        The wrong statement stays on record as retracted, and `undo` brings it back. A fact that is no longer
        current raises `ConflictError`.
        """
        scope = self._scope(tenant, user_id)
        fact = await self.engine.tier(Facts).book.correct(scope, records.checked_id(fact_id, "fact id"), text)
        self.engine.worker.wake(Facts.name, fact.scope)
        return fact

    async def fact_revisions(
        self, user_id: str, tenant: str | None = None, *, after: int = 0
    ) -> list[records.Revision]:
        """Every change to the facts about a user, oldest first; `after` gives only those after a revision."""
        scope, number = self._user(tenant, user_id), arguments.at_least(0, after, "after")
        return list(await self.engine.store.facts.revisions(scope, after=number))

    async def undo(
        self, user_id: str, revision: int | None = None, *, tenant: str | None = None
    ) -> records.Revision:
        """Undo a change to the facts about a user, by default the newest.

        The undo is itself a revision and can be undone. A change whose fact was changed again raises
        `ConflictError`.
        """
        scope = self._user(tenant, user_id)
        number = None if revision is None else arguments.at_least(1, revision, "revision")
        return await self.engine.tier(Facts).book.undo(scope, number)

    async def import_facts(
        self,
        source: str | PathLike[str] | Mapping[str, JsonValue],
        *,
        user_id: str,
        tenant: str | None = None,
    ) -> dict[str, int]:
        """Remember the facts and the profile of a deer-flow `memory.json`, given as a path or as data.

        Counts the outcomes: stored, duplicate (also in nearly the same words), superseded, rejected (blank, not text, or a secret).
        """
        scope = self._user(tenant, user_id)
        return await import_memory(self.engine.tier(Facts).book, source, scope)

    async def settle(self) -> None:
        """Wait until background work has caught up."""
        self.engine.check_open()
        await self.engine.settle()

    async def forget(
        self,
        *,
        user_id: str | None = None,
        conversation_id: str | None = None,
        tenant: str | None = None,
        turn_id: str | None = None,
        page: str | None = None,
    ) -> records.ErasureReceipt:
        """Erase a conversation, a user or a whole tenant through every tier, and count what was removed; or
        only one turn or one page.

        Raises `TierError` if one of your own tiers could not erase what it holds; everything else is erased
        by then. A turn or a page that never existed raises `NotFoundError`; erasing one twice is the same as
        once.

        Args: turn_id: only this turn of the conversation, and what was derived from it: its pages, facts,
        summaries, recorded windows, copies in forks. page: only this archived page, by its uuid; turns that
        showed it keep a note.
        """
        uuid = arguments.check_erased(user_id, conversation_id, tenant, turn_id=turn_id, page=page)
        scope = self._scope(tenant, user_id, conversation_id)
        return await self.engine.erase(scope, turn_id=turn_id, page=uuid)

    async def call(
        self, call_id: str, *, user_id: str | None = None, tenant: str | None = None
    ) -> records.WindowRecord:
        """A recorded call of any conversation of the tenant, or of one of its users; `call.scope` says which."""
        scope = self._scope(tenant, user_id)
        return await found_call(self.engine, scope, records.checked_id(call_id, "call id"))

    async def pages(
        self,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> records.Listing[records.Page]:
        """Archived tool results, newest first; pass `next` of the result as `after` to continue."""
        return await pages_of(self.engine, self._scope(tenant, user_id), limit=limit, after=after)

    async def page(self, uuid: str, *, user_id: str | None = None, tenant: str | None = None) -> records.Page:
        """An archived page of the tenant, or of one of its users, without its text; `page.scope` names its conversation."""
        return await self.engine.tier(Archive).page(self._scope(tenant, user_id), uuid)

    async def peek(
        self,
        uuid: str,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        query: str | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> str:
        """Read the text of an archived page of the tenant, or of one of its users: whole, by `query`
        or by part, as with `load`.

        This is not counted as a load, because loads show what the model needed.
        """
        engine, scope = self.engine, self._scope(tenant, user_id)
        return await load_text(engine, scope, uuid, query=query, offset=offset, limit=limit, counted=False)

    async def search_tool_history(
        self, query: str, *, user_id: str | None, tenant: str | None = None, limit: int = 5
    ) -> list[records.PageHit]:
        """Archived tool results of a user that answer a query, best first, each with its best passage.

        With `user_id=None` it searches the whole tenant.
        """
        return await pages_about(self.engine, self._scope(tenant, user_id), query, limit)

    async def purge(
        self,
        *,
        user_id: str | None = None,
        conversation_id: str | None = None,
        tenant: str | None = None,
        uuids: Sequence[str] | None = None,
        older_than: timedelta | None = None,
        max_bytes: int | None = None,
    ) -> list[records.Page]:
        """Remove the texts of archived pages and leave tombstones; returns what was purged.

        Purges those named, those older than a time, or the oldest beyond a size; never pinned ones. A page with a
        placeholder in the window of a conversation is purged only by name, unless nothing was written to the
        conversation for that time, and for half an hour.
        """
        arguments.check_purged(uuids, older_than, max_bytes)
        now = self.engine.clock.now()
        request = ports.PurgeRequest(
            await self._on_behalf(tenant, user_id, conversation_id),
            now,
            None if uuids is None else frozenset(arguments.checked_uuids(uuids, "uuids")),
            None if older_than is None else _before(now, older_than),
            None if max_bytes is None else arguments.at_least(0, max_bytes, "max_bytes"),
        )
        return await self.engine.tier(Archive).purge(request)

    async def rebuild(
        self,
        *,
        tenant: str | None = None,
        from_scratch: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, int]:
        """Build what recall needs for every turn that lacks it, with the current embedder and vector store;
        then remove the vectors that other embedders made there. Reads continue meanwhile, and an interrupted
        rebuild is continued by the next call.

        Args:
            tenant: only this tenant's turns, by default everyone's.
            from_scratch: rebuild everything, even what exists.
            progress: called with the number of log entries read so far and the total.
        """
        self.engine.check_open()
        return await self.engine.tier(Episodes).derivation.rebuild(
            progress or (lambda _done, _total: None),
            tenant=arguments.id_or_none(tenant, "tenant"),
            from_scratch=from_scratch,
        )

    async def export(
        self,
        path: str | PathLike[str],
        *,
        user_id: str | None = None,
        conversation_id: str | None = None,
        tenant: str | None = None,
    ) -> dict[str, int]:
        """Write a tenant, a user or a conversation as JSON lines; returns how many of each kind."""
        from pagefile.engine.export import export_to  # noqa: PLC0415 - see import_

        scope = await self._on_behalf(tenant, user_id, conversation_id)
        return await export_to(self.engine, path, scope)

    async def import_(self, path: str | PathLike[str], *, tenant: str | None = None) -> dict[str, int]:
        """Read an export; existing data is left as it is. Returns how many of each kind were new."""
        # Imported late: building the schemas of its lines takes a fifth of a second.
        from pagefile.engine.importer import import_from  # noqa: PLC0415

        return await import_from(self.engine, path, self._scope(tenant).tenant)

    async def describe(self) -> records.JsonObject:
        """What this memory runs on: the store, the tokenizer, the window, page faults, and how often each tier failed.

        `erasures_owed` names places outside the database that could not be reached when something was erased,
        and the number of scopes they have yet to erase.
        """
        self.engine.check_open()
        counter = self.engine.counter
        first: dict[str, JsonValue] = {
            "store": await self.engine.store.describe(),
            "tokenizer": {"name": counter.name, "exact": counter.exact},
            "window_tokens": self.settings.window_tokens,
            "model": self.settings.model.name,
        }
        tiers = await self.engine.described((*first, "tier_failures", "calls_dropped", "erasures_owed"))
        return {
            **first,
            **tiers,
            "tier_failures": dict(self.engine.failures),
            "calls_dropped": self.engine.calls.dropped,
            "erasures_owed": {**await self.engine.elsewhere.owed()},
        }

    def _scope(
        self, tenant: str | None, user_id: str | None = None, conversation_id: str | None = None
    ) -> records.Scope:
        """Whose memory a verb is about; raises if the memory was closed."""
        self.engine.check_open()
        return records.Scope(records.DEFAULT_TENANT if tenant is None else tenant, user_id, conversation_id)

    def _user(self, tenant: str | None, user_id: str) -> records.Scope:
        return self._scope(tenant, records.checked_id(user_id, "user_id"))

    async def _on_behalf(self, *named: str | None) -> records.Scope:
        return await on_behalf(self.engine.store.reader, self._scope(*named))

    def _incognito(self) -> Engine:
        """A separate in-memory engine in which nothing is looked up; only third-party tiers that allow it take part."""
        kit = self.engine.kit
        more = [tier for tier in self.engine.tiers if tier.name in self.engine.outside and tier.incognito]
        alone = standard_tiers.Kit(InMemoryStore(kit.clock), kit.settings, kit.clock, kit.counter, NoMeter())
        return Engine(alone, more=more, incognito=True, beside=self.engine)


@asynccontextmanager
async def _background_work(engine: Engine) -> AsyncGenerator[None]:
    """Run the worker during the block; at the end, finish the quick part of what is left."""
    # A failure of the block is raised behind the task group, which would wrap it: a caller's `except` would
    # miss it.
    failures: list[Exception] = []
    async with anyio.create_task_group() as background:
        background.start_soon(engine.worker.run)
        background.start_soon(engine.loading.run, engine.tier(Episodes).derivation.load)
        with guarded(failures.append):
            yield
        with anyio.move_on_after(engine.settings.drain_s, shield=True):
            await engine.worker.drain()
        background.cancel_scope.cancel()
    for failure in failures:
        raise failure


@asynccontextmanager
async def _closing() -> AsyncGenerator[AsyncExitStack]:
    """Closes what was opened, last first, even if the caller is cancelled."""
    stack = AsyncExitStack()
    try:
        yield stack
    finally:
        with anyio.CancelScope(shield=True):
            await stack.aclose()


def _before(now: datetime, age: timedelta) -> datetime:
    if age < timedelta(0):
        raise InvalidArgumentError(f"older_than is {age}: give an age, which cannot be negative.")
    try:
        return now - age
    except OverflowError:
        return records.NEVER
