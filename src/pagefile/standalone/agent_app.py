"""Document 001 on its own: a conversation's history as text, checkpoints written by the caller, and the session value.

Names, defaults, texts and JSON keys are the document's. The mistakes of its sample code are fixed by the engine: the turn log
is the source of truth, a summary covers only turns its author could read, and session contents are checked against the log.
Checkpoints are made only by the caller, as in the document, whatever the memory's own setting.
"""

import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from time import perf_counter
from weakref import WeakValueDictionary

import anyio

from pagefile import errors
from pagefile.engine import Conversation, Memory
from pagefile.engine.ownership import on_behalf
from pagefile.lru import Lru
from pagefile.ports import EntryQuery, LogView
from pagefile.records import Scope, Turn
from pagefile.standalone import app_requests as requests
from pagefile.standalone import session as sessions
from pagefile.standalone.app_requests import HistoryText, Query
from pagefile.standalone.conversation_store import Conversations, version_of
from pagefile.standalone.session import FULL_HISTORY, AIMessage, MemoryContext, SessionValue
from pagefile.standalone.waiting_queries import WaitingQueries
from pagefile.stores.encoding import to_json
from pagefile.stores.rules import no_head
from pagefile.stores.session import WINDOW_TURNS
from pagefile.tiers.base import off_loop
from pagefile.tiers.checkpoints import RETRY_S, nothing_to_cover
from pagefile.tiers.history import History

logger = logging.getLogger("pagefile")

#: A longer summary is refused.
MAX_SUMMARY_CHARS = 10_000
#: How often to try a checkpoint that lost a race, or whose id is taken.
CONFLICT_TRIES = 3

#: More tokens than any conversation has.
_EVERYTHING = 2**31 - 1
#: How many conversations' last queries are remembered.
_REMEMBERED = 10_000
#: From this size on, counting tokens would block the event loop noticeably.
_THREAD_FROM_CHARS = 50_000


class AgentApp:
    """短期记忆: the document's functions over an open memory."""

    def __init__(
        self,
        memory: Memory,
        *,
        tenant: str | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._log = Conversations(memory, tenant)
        self._waiting = WaitingQueries(self._log)
        self._sleep = sleep
        self._asked: Lru[str, requests.Asked] = Lru(_REMEMBERED)
        # A lock lives as long as a task holds it or waits for it.
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    # -- a turn ---------------------------------------------------------------------------------------------------------

    async def query_memory_context(self, request: sessions.MemoryQueryRequest | None) -> MemoryContext:
        """查询记忆上下文: the history for the prompt, and whether a summary is due.

        Unsummarized turns are shown as far as they fit; the newest `recent_turns` of them are dropped last. An explicit
        `recent_turns` also brings back turns that the summary covers, as long as the window stays below its threshold. The query
        is stored for half an hour, for the answer that may reach another process.
        """
        with _told("QueryMemoryContext error: %s"):
            context = await self.read_history(request)
            read = requests.Token.of(context.read_token).read
            await self._waiting.put(context.conversation_id, context.query, read.through_seq)
            return context

    async def read_history(self, request: sessions.MemoryQueryRequest | None) -> MemoryContext:
        """The same, without storing the query: no answer will be written for it here."""
        asked = Query.of(request, self._log.engine.settings.max_message_chars)
        view, session = await self._read(self._log.scope(asked.conversation_id), _EVERYTHING)
        live = HistoryText.of_session(session)
        log_read = view is not None
        if view is None:
            view = LogView(no_head(self._log.scope(asked.conversation_id)), None, ())
        else:
            live = HistoryText.of(view, session.user_snapshot, asked.text)
        whole = await self._with_covered(live, view, asked)
        show = partial(asked.shown, whole, self._log.engine.counter.count)
        shown, tokens = await off_loop(show, len(whole.text) + len(asked.text), _THREAD_FROM_CHARS)
        ratio = tokens / asked.window_tokens
        # A single oversized turn may leave few tokens to count, so anything dropped makes a summary due, too.
        due = ratio >= asked.threshold or shown is not whole
        of, mode = asked.conversation_id, session.message_context.mode
        read = requests.Read.made_of(view)
        now = self._log.engine.clock.now()
        known = self._known(of)
        token = known.answered(asked, read, due=due, at=now)
        known.query_after = read if log_read else None
        self._log.engine.meter.observe("pagefile_token_ratio", ratio)
        self._log.engine.meter.observe("pagefile_window_tokens", tokens)
        told = shown.text, live.text, tokens, ratio, due, asked.text
        return MemoryContext(of, mode, session, *told, token.text)

    async def write_turn(self, request: sessions.MemoryWriteRequest | None) -> sessions.MemoryWriteResult:
        """写入对话轮次，更新会话状态: the row and the session, in one transaction.

        Without a `user_query` the turn answers the last query that this app was asked about, or another process in the last half
        hour; pass it where calls overlap. Where there is neither, the log warns that the turn is the agent's words alone.
        """
        with _told("WriteTurn error: %s"):
            request = requests.given(request, "a MemoryWriteRequest")
            scope = await self._log.owned(request.conversation_id, request.user_id)
            asked = self._known(request.conversation_id)
            query = request.user_query or await self._query_for_answer(scope, asked)
            if not query:
                logger.warning(
                    "WriteTurn: no UserQuery, and no query waits for its answer; the turn has only the answer"
                )
            chat = self._chat(scope, request.agent_code)
            async with self._alone(scope):
                turn = await chat.record(query or None, request.agent_response or None)
            asked.wrote(turn)
            if asked.query == query:
                asked.query = ""
            mode, updated_at = await self._mode(scope), int(turn.created.timestamp())
            return sessions.MemoryWriteResult(request.conversation_id, mode, updated_at)

    async def _query_for_answer(self, scope: Scope, asked: requests.Asked) -> str:
        """The query that was asked here last, unless turns were written or erased since: another process may have answered it."""
        after = asked.query_after
        if not asked.query or after is None:
            return asked.query or await self._waiting.of(scope)
        now = requests.Read.made_of(await self._log.view(scope, min_turns=1))
        if now == after:
            return asked.query
        if (later := await self._waiting.of(scope)) or now.epoch != after.epoch:
            # The turn that answered it may be among those that were erased.
            return later
        since = [turn.user async for turn in self._log.turns_after(scope, after.through_seq)]
        return "" if asked.query in since else asked.query

    async def _mode(self, scope: Scope) -> str:
        """The mode after a write, which no failure from here on must undo; the document's fields are in the session from now on."""
        engine = self._log.engine
        try:
            epoch = await engine.store.reader.epoch()
            stored = await engine.sessions.from_store(scope)
            if stored is not None and not sessions.has_entities(stored):
                await self._save(scope, SessionValue.of(stored), epoch)
        except errors.StoreError as error:
            if engine.settings.on_tier_error == "raise":
                raise
            engine.failed("store", error)
            stored = None
        return SessionValue.of(stored).message_context.mode

    # -- checkpoints ----------------------------------------------------------------------------------------------------

    async def checkpoint_short_memory(
        self,
        conversation_id: str,
        summary: str,
        recent_turns: int = requests.defaultMemoryRecentTurns,
        read_token: str = "",
    ) -> None:
        """创建记忆检查点: from now on the summary replaces the older turns.

        `read_token` is that of the `MemoryContext` that was summarized: no turn is covered that its author has not read, whichever
        process the summary comes from and whatever came before it. Without it, the summary may be of any history that this app
        returned as due for one in the last ten minutes, and covers no more than the oldest of them. A summary that is older than
        the one in force is refused with `ConflictError`.

        The newest `recent_turns` stay verbatim: fewer if they would fill half of the window or there are no others, more if turns
        were written while the summary was made. A failing store is retried three times; then the session's mode becomes
        `FULL_HISTORY`, and the error is raised.
        """
        with _told("Failed to create checkpoint: %s"):
            scope = self._log.scope(conversation_id)
            token = requests.Token.of(read_token) if read_token else None
            for pause in (*RETRY_S, None):
                try:
                    with _told("CheckpointShortMemory error: %s"):
                        await self._checkpoint(scope, summary, recent_turns, token)
                except errors.ConflictError:
                    raise
                except errors.StoreError:
                    if pause is None:
                        await self._degrade(scope)
                        raise
                    await self._sleep(pause)
                else:
                    return

    async def _checkpoint(
        self, scope: Scope, summary: str, recent_turns: int, token: requests.Token | None
    ) -> None:
        scope = await on_behalf(self._log.reader, scope)
        text = requests.bounded(summary, "summary", MAX_SUMMARY_CHARS)
        wanted = int(requests.or_default(recent_turns, requests.defaultMemoryRecentTurns, "recent_turns"))
        asked = self._known(scope.conversation or "")
        for tries_left in reversed(range(CONFLICT_TRIES)):
            async with self._alone(scope):
                view = await self._log.view(scope, budget_tokens=_EVERYTHING)
                known = token.read if token else asked.provable(view, self._log.engine.clock.now())
                try:
                    through, epoch = _coverable(view, known, wanted, asked.window_tokens)
                except (errors.ConflictError, errors.InvalidArgumentError):
                    asked.came_in(token)
                    raise
                try:
                    cover = self._log.checkpoints.cover
                    await cover(scope, text, through, epoch=epoch, expected_version=version_of(view))
                except errors.ErasedError:
                    # A retry would bring back erased words.
                    asked.came_in(token)
                    raise
                except errors.ConflictError:
                    if not tries_left:
                        raise
                else:
                    break
        asked.came_in(token)

    async def _degrade(self, scope: Scope) -> None:
        """Record in the session that no summary can be kept."""
        try:
            scope = await on_behalf(self._log.reader, scope)
            epoch = await self._log.reader.epoch()
            session = await self._session(scope)
            session.message_context.mode = FULL_HISTORY
            await self._save(scope, session, epoch)
        except errors.PagefileError as error:
            logger.warning("could not save the mode %s: %s", FULL_HISTORY, error)

    # -- sessions -------------------------------------------------------------------------------------------------------

    async def create_short_memory(self, request: sessions.AgentRequest | None) -> None:
        """创建短期记忆会话: a new session; a conversation that already has turns starts over."""
        with _told("CreateShortMemory error: %s"):
            request = requests.given(request, "an AgentRequest")
            scope = await self._log.owned(request.conversation_id, request.user_id)
            async with self._alone(scope):
                if (await self._log.view(scope)).head.turns:
                    await self._start_over(scope)
                    return
                epoch = await self._log.reader.epoch()
                session = SessionValue.of(await self._log.engine.store.sessions.get(scope))
                if not session.meta.conversation_id or (scope.user and not session.meta.user_id):
                    await self._save(scope, session, epoch)

    async def get_short_memory(self, conversation_id: str) -> SessionValue:
        """获取短期记忆会话状态, checked against the log; raises `NotFoundError` if there is none."""
        with _told("GetShortMemory error: %s"):
            return await self._session(self._log.scope(conversation_id))

    async def set_short_memory(self, conversation_id: str, session: SessionValue) -> None:
        """Replace the session. What the log knows better stays: turns written since, and the current checkpoint."""
        with _told("SetShortMemory error: %s"):
            scope = await self._log.owned(conversation_id, session.meta.user_id)
            async with self._alone(scope):
                await self._save(scope, session, await self._log.reader.epoch())

    async def delete_short_memory(self, conversation_id: str) -> None:
        """Start over: history and state leave the prompt but stay in the log. What is known about the user stays."""
        with _told("DeleteShortMemory error: %s"):
            scope = await self._log.owned(conversation_id)
            async with self._alone(scope):
                if (await self._log.view(scope)).head.exists:
                    await self._start_over(scope)

    async def get_redis_client(self) -> "SessionClient":
        """The sessions by their Redis keys, wherever they are stored."""
        return SessionClient(self)

    async def _start_over(self, scope: Scope) -> None:
        epoch = await self._log.reader.epoch()
        known = SessionValue.of(await self._log.engine.store.sessions.get(scope))
        await self._chat(scope).reset()
        self._asked.pop(scope.conversation or "", None)
        # Erased meanwhile: there is nothing left to carry over.
        with suppress(errors.ErasedError):
            await self._save(scope, SessionValue(user_snapshot=known.user_snapshot), epoch)

    async def _session(self, scope: Scope) -> SessionValue:
        stored = await self._log.engine.sessions.get_for_operator(scope)
        if stored is not None:
            return SessionValue.of(stored)
        scope = await on_behalf(self._log.reader, scope)
        view = await self._log.view(scope, min_turns=WINDOW_TURNS)
        if not view.head.exists:
            raise errors.NotFoundError(
                f"There is no session of conversation {scope.conversation!r}: create it with create_short_memory()."
            )
        return sessions.present(scope, None, view)

    async def _save(self, scope: Scope, session: SessionValue, epoch: int) -> None:
        """Write a session, unless its contents were erased after `epoch`."""
        stored = await self._log.engine.store.sessions.get(scope)
        view = await self._log.view(scope)
        now = int(self._log.engine.clock.now().timestamp())
        value = sessions.merged(scope, stored, session, view, now)
        await self._log.engine.sessions.put(scope, value, epoch=epoch)

    # -- messages -------------------------------------------------------------------------------------------------------

    async def query_message_by_conversation_id_asc(self, conversation_id: str) -> list[AIMessage]:
        """Every done turn, oldest first."""
        return await self._messages_after(await self._log.owned(conversation_id), 0)

    async def query_message_by_conversation_id_asc_with_limit(
        self, conversation_id: str, limit: int = 100
    ) -> list[AIMessage]:
        """The newest done turns, oldest first."""
        scope = await self._log.owned(conversation_id)
        if limit < 1:
            raise errors.InvalidArgumentError(f"limit is {limit}: it must be at least 1.")
        return [_row(turn) for turn in await self._log.turns(scope, limit, newest=True)]

    async def query_message_by_conversation_id_asc_from_checkpoint(
        self, conversation_id: str, checkpoint_message_id: str
    ) -> list[AIMessage]:
        """Done turns written after a checkpoint, oldest first; all of them for an empty id."""
        scope = await self._log.owned(conversation_id)
        if not checkpoint_message_id:
            return await self._messages_after(scope, 0)
        query = EntryQuery(scope, kinds=frozenset({"checkpoint"}), limit=_EVERYTHING)
        for entry in await self._log.reader.entries(query):
            if entry.id == checkpoint_message_id:
                return await self._messages_after(scope, entry.seq or 0)
        raise errors.NotFoundError(
            f"Conversation {conversation_id!r} has no checkpoint {checkpoint_message_id!r}."
        )

    async def _messages_after(self, scope: Scope, seq: int) -> list[AIMessage]:
        return [_row(turn) async for turn in self._log.turns_after(scope, seq)]

    # -- internals ----------------------------------------------------------------------------------------------------------

    def _chat(self, scope: Scope, agent: str | None = None) -> Conversation:
        return Conversation(self._log.engine.without(History), scope, agent=agent or None)

    def _known(self, conversation_id: str) -> requests.Asked:
        return self._asked.setdefault(conversation_id, requests.Asked())

    def _alone(self, scope: Scope) -> anyio.Lock:
        """Serializes changes of one conversation in this process; conversations do not block each other."""
        return self._locks.setdefault(scope.conversation or "", anyio.Lock())

    async def _view_of_owner(self, scope: Scope, budget_tokens: int) -> LogView:
        """Most conversations here have no user, so the owner is only looked up when there is a conflict."""
        try:
            return await self._log.view(scope, budget_tokens=budget_tokens)
        except errors.ConflictError:
            owned = await on_behalf(self._log.reader, scope)
            return await self._log.view(owned, budget_tokens=budget_tokens)

    async def _read(self, scope: Scope, budget_tokens: int = 0) -> tuple[LogView | None, SessionValue]:
        """The conversation; of an unavailable store what the cache has of the session, else as in a new one."""
        engine = self._log.engine
        view, session, error = await engine.sessions.read(scope, partial(self._viewed, scope, budget_tokens))
        if error is not None:
            if engine.settings.on_tier_error == "raise" or isinstance(error, errors.ConflictError):
                raise error
            engine.failed("store", error)
        if session is None and view is not None:
            return view, sessions.present(view.head.scope, None, view)
        return view, SessionValue.of(session)

    async def _viewed(self, scope: Scope, budget_tokens: int) -> LogView:
        began = perf_counter()
        view = await self._view_of_owner(scope, max(budget_tokens, 0))
        self._log.engine.meter.observe("pagefile_store_seconds", perf_counter() - began, verb="view")
        return view

    async def _with_covered(self, live: HistoryText, view: LogView, asked: Query) -> HistoryText:
        """The history with turns that the summary covers, if the request asks for more than are live."""
        missing = asked.recent_turns - len(live.turns)
        if view.checkpoint is None or missing <= 0:
            return live
        head = view.head
        newest = await self._log.turns(head.scope, asked.recent_turns, head.reset_seq, newest=True)
        covered = [turn for turn in newest if (turn.seq or 0) <= view.checkpoint.covered_through_seq]
        return asked.longer(live, covered[-missing:], self._log.engine.counter.count)

    QueryMemoryContext = query_memory_context
    WriteTurn = write_turn
    CheckpointShortMemory = checkpoint_short_memory
    CreateShortMemory = create_short_memory
    GetShortMemory = get_short_memory
    SetShortMemory = set_short_memory
    DeleteShortMemory = delete_short_memory
    GetRedisClient = get_redis_client
    QueryMessageByConversationIDASC = query_message_by_conversation_id_asc
    QueryMessageByConversationIDASCWithLimit = query_message_by_conversation_id_asc_with_limit
    QueryMessageByConversationIDASCFromCheckpoint = query_message_by_conversation_id_asc_from_checkpoint


NewAgentApp = AgentApp


def _coverable(
    view: LogView, read: requests.Read | None, recent_turns: int, window_tokens: int
) -> tuple[int, int]:
    """How far a summary may cover, and the erasures when its author read; raises if it may not cover anything."""
    head = view.head
    if read is None:
        if not view.turns:
            raise nothing_to_cover(head, recent_turns)
        raise errors.ConflictError(
            f"This app has read nothing of conversation {head.scope.conversation!r} that is not summarized: query it first, and give "
            "the read_token of what was summarized."
        )
    # A summary speaks for all that its author read, the one before it included: a newer one may replace another's.
    if read.through_seq <= max(head.covered_through_seq, head.reset_seq) and view.turns:
        raise errors.ConflictError(
            f"The summary is of an older history, up to {read.through_seq}: a newer one is in force, or the conversation was reset. "
            "Query again and summarize that; with its read_token nothing is held up by summaries that never came."
        )
    staying = requests.staying(view, read, recent_turns, window_tokens)
    if staying >= len(view.turns):
        raise nothing_to_cover(head, staying)
    return view.turns[-1 - staying].seq or 0, read.epoch


def _row(turn: Turn) -> AIMessage:
    said, written = (turn.user or "", turn.assistant or ""), (turn.created, turn.scope.user or "")
    return AIMessage(turn.id, turn.scope.conversation or "", *said, *written, *written)


class SessionClient:
    """Sessions by their Redis keys, for code that resets a conversation as the document shows."""

    def __init__(self, app: AgentApp) -> None:
        self._app = app

    async def get(self, key: str) -> str | None:
        try:
            return to_json((await self._app.get_short_memory(_conversation(key))).to_json())
        except errors.NotFoundError:
            return None

    async def delete(self, *keys: str) -> int:
        """Reset these conversations; returns the number of keys given."""
        for key in keys:
            await self._app.delete_short_memory(_conversation(key))
        return len(keys)

    Get = get
    Del = delete


def _conversation(key: str) -> str:
    prefix = sessions.SESSION_KEY % ""
    if not key.startswith(prefix):
        raise errors.InvalidArgumentError(f"{key!r} is not the key of a session: it begins with {prefix!r}.")
    return key.removeprefix(prefix)


@contextmanager
def _told(line: str) -> Generator[None]:
    """Log a failure, in the document's words, before it is raised to the caller."""
    try:
        yield
    except errors.PagefileError as error:
        logger.warning(line, error)
        raise
