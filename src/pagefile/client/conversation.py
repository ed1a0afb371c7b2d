"""A handle on one conversation of a service."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import cast
from uuid import uuid4

from pagefile import verbs
from pagefile.blocking import described_as
from pagefile.client.calling import Caller
from pagefile.client.streaming import events_in, lines_in
from pagefile.client.verbs import (
    ANY_LENGTH,
    Remote,
    as_it_is,
    from_number,
    is_id,
    is_message,
    remote,
    said,
    steps_of,
)
from pagefile.engine import Conversation
from pagefile.engine.asking import place, turn_id_of
from pagefile.engine.drafts import StepLike, checked_json, checked_step
from pagefile.engine.replaying import Replay
from pagefile.engine.shielding import seen_through
from pagefile.errors import StoreUnavailableError
from pagefile.ports import NO_LABELS, Labels
from pagefile.records import Checkpoint, JsonObject, JsonValue, Listing, Scope, Turn, checked_id
from pagefile.window.receipt import Window
from pagefile.window.render import Placement
from pagefile.wire.chat import AskChat, ChatDone, ChatEvent


class ClientConversation(Remote):
    """A cheap handle: creating one sends nothing. Arguments are checked here, with the error messages of `Memory`."""

    def __init__(
        self,
        caller: Caller,
        scope: Scope,
        *,
        agent: str | None = None,
        labels: Labels = NO_LABELS,
        tenant: str | None = None,
    ) -> None:
        super().__init__(caller)
        self._scope = scope
        # Left out when not given: the service then takes it from the key.
        self._tenant = tenant
        self._agent = None if agent is None else checked_id(agent, "agent")
        self._labels = asdict(labels)
        self._open_turn: Turn | None = None

    def __repr__(self) -> str:
        return f"ClientConversation({self.id!r}, user_id={self._scope.user!r}, tenant={self._scope.tenant!r})"

    @property
    def id(self) -> str:
        """The conversation's id."""
        return cast("str", self._scope.conversation)

    @property
    def scope(self) -> Scope:
        """Whose memory this is, as far as it was named here: the service takes a missing tenant or user from the key."""
        return self._scope

    # -- turns in -------------------------------------------------------------------------------------------------

    record = remote(verbs.RECORD, id=is_id("turn id"))
    messages = remote(verbs.MESSAGES)
    _begin = remote(verbs.BEGIN, id=is_id("turn id"))
    _extend = remote(verbs.EXTEND, after=from_number(0, "after"))
    _complete = remote(verbs.COMPLETE)
    _abort = remote(verbs.ABORT)

    @described_as(Conversation.begin)
    async def begin(
        self,
        user: str | None = None,
        *,
        messages: Iterable[object] | None = None,
        id: str | None = None,  # noqa: A002 - the word users write
        at: datetime | None = None,
        metadata: JsonObject | None = None,
    ) -> Turn:
        turn = await self._begin(user, messages=messages, id=id, at=at, metadata=metadata)
        self._open_turn = turn if turn.status == "open" else None
        return turn

    @described_as(Conversation.extend)
    async def extend(self, turn: Turn | str, messages: Iterable[object], *, after: int | None = None) -> Turn:
        known = len(turn.messages) if isinstance(turn, Turn) and after is None else after
        return self._noticed(await self._extend(turn, messages, after=known))

    @described_as(Conversation.step)
    async def step(
        self,
        turn: Turn | str,
        *,
        tool: str,
        input: object = None,  # noqa: A002 - the word users write
        result: object = None,
        call_id: str | None = None,
    ) -> Turn:
        turn_id = turn_id_of(turn)
        number = len(turn.steps) if isinstance(turn, Turn) else 0
        given = {"tool": tool, "input": input, "result": result, "call_id": call_id}
        step = checked_step(given, turn_id, number, ANY_LENGTH)
        sent = {"turn_id": turn_id, "tool": step.tool, "input": step.input, "result": step.result}
        if call_id or isinstance(turn, Turn):
            # The same step of the same turn has the same id: adding it twice adds it once.
            sent["call_id"] = step.call_id
        return self._noticed((await self._asked(verbs.STEP, sent)).record())

    @described_as(Conversation.complete)
    async def complete(self, turn: Turn | str, assistant: str | None = None) -> Turn:
        return self._noticed(await self._complete(turn, assistant))

    @described_as(Conversation.abort)
    async def abort(self, turn: Turn | str) -> Turn:
        return self._noticed(await seen_through(lambda: self._abort(turn)))

    @described_as(Conversation.fork)
    async def fork(
        self,
        turn: Turn | str,
        *,
        id: str | None = None,  # noqa: A002 - the word users write
        before: bool = False,
    ) -> "ClientConversation":
        named = {} if id is None else {"id": checked_id(id, "conversation id")}
        made = await self._asked(verbs.FORK, {"turn_id": turn_id_of(turn), "before": before, **named})
        scope = Scope(self._scope.tenant, made.user_id, made.conversation_id)
        labels = Labels(**self._labels)
        return ClientConversation(self._caller, scope, agent=self._agent, labels=labels, tenant=self._tenant)

    # -- windows out ----------------------------------------------------------------------------------------------

    _context = remote(
        verbs.CONTEXT,
        query=is_message("query"),
        window_tokens=from_number(1, "window_tokens"),
        recent_turns=from_number(1, "recent_turns"),
    )

    @described_as(Conversation.context)
    async def context(
        self,
        query: str | None = None,
        *,
        turn: Turn | str | None = None,
        window_tokens: int | None = None,
        window_for: str | None = None,
        tools: Sequence[object] = (),
        answer_tokens: int | None = None,
        threshold: float | None = None,
        recent_turns: int | None = None,
        load: Sequence[str] = (),
        instructions: str | None = None,
        placement: Placement | None = None,
    ) -> Window:
        return await self._context(
            query,
            turn=self._current_turn_id(query, turn),
            window_tokens=window_tokens,
            window_for=window_for,
            tools=tools,
            answer_tokens=answer_tokens,
            threshold=threshold,
            recent_turns=recent_turns,
            load=load,
            instructions=instructions,
            placement=placement,
        )

    recall = remote(verbs.CHAT_RECALL)

    # -- archived pages -------------------------------------------------------------------------------------------

    load = remote(verbs.LOAD, query=as_it_is, limit=as_it_is)
    page = remote(verbs.CHAT_PAGE)
    pages = remote(verbs.CHAT_PAGES)
    search_tool_history = remote(verbs.CHAT_SEARCH)
    fetched = remote(verbs.FETCHED)
    pin = remote(verbs.PIN)

    @described_as(Conversation.call_tool)
    async def call_tool(self, name: str, arguments: Mapping[str, object], *, turn: Turn | None = None) -> str:
        asking = turn or self._open_turn
        given = {"name": name, "arguments": checked_json(dict(arguments), "arguments")}
        return (await self._asked(verbs.CALL_TOOL, said({**given, "turn_id": asking and asking.id}))).text

    # -- checkpoints and listings ---------------------------------------------------------------------------------

    checkpoint = remote(verbs.CHECKPOINT)
    reset = remote(verbs.RESET)
    turns = remote(verbs.CHAT_TURNS, after=place)
    log = remote(verbs.LOG, after=place)
    head = remote(verbs.HEAD)
    session = remote(verbs.SESSION)
    calls = remote(verbs.CALLS)

    @described_as(Conversation.checkpoints)
    async def checkpoints(self) -> Listing[Checkpoint]:
        return Listing(await self._all(verbs.CHECKPOINTS, {}))

    # -- recorded calls -------------------------------------------------------------------------------------------

    explain = remote(verbs.EXPLAIN)
    costs = remote(verbs.COSTS)

    @described_as(Conversation.replay)
    async def replay(self, call_id: str, /, **changes: JsonValue) -> Replay:
        given = {"call_id": checked_id(call_id, "call id"), "changes": checked_json(changes, "changes")}
        return (await self._asked(verbs.REPLAY, given)).record()

    # -- only in the service ---------------------------------------------------------------------------------------

    async def stream_chat(
        self,
        message: str,
        *,
        id: str | None = None,  # noqa: A002 - the word users write
        instructions: str | None = None,
        window_tokens: int | None = None,
        steps: Iterable[StepLike] = (),
    ) -> AsyncGenerator[ChatEvent]:
        """Have the service's model answer a message: events as they happen, including words of the answer, and `ChatDone` at the end.

        Failures are raised. The turn is then aborted, as it is when the caller stops early (wrap it in `aclosing()` to abort
        immediately).
        """
        body = {
            **self._known_of(AskChat),
            "message": is_message("message")(message) or message,
            "id": str(uuid4()) if id is None else checked_id(id, "turn id"),
            "instructions": instructions,
            "window_tokens": window_tokens,
            "steps": steps_of(steps),
        }
        async with self._caller.stream("POST", "/v1/chat/stream", body=said(body)) as answer:
            done = False
            async for event in events_in(lines_in(answer.aiter_bytes())):
                done = isinstance(event, ChatDone)
                yield event
            if not done:
                raise StoreUnavailableError("The stream ended before the answer did: the turn is aborted.")

    # -- inside ---------------------------------------------------------------------------------------------------

    def _known(self) -> dict[str, object]:
        whose = {
            "conversation_id": self._scope.conversation,
            "user_id": self._scope.user,
            "tenant": self._tenant,
        }
        return said({**whose, "agent": self._agent, **self._labels, "format": "parts"})

    def _noticed(self, turn: Turn) -> Turn:
        if self._open_turn is not None and self._open_turn.id == turn.id:
            self._open_turn = turn if turn.status == "open" else None
        return turn

    def _current_turn_id(self, query: str | None, turn: Turn | str | None) -> str | None:
        if turn is not None:
            return turn_id_of(turn)
        mine = self._open_turn
        return mine.id if mine is not None and query in {None, mine.user} else None
