"""A handle on one conversation of a service."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import asdict
from typing import Any, cast
from uuid import uuid4

from pagefile import verbs
from pagefile.blocking import described_as
from pagefile.client.events import events_in, lines_in
from pagefile.client.transport import Caller
from pagefile.client.verbs import (
    ANY_LENGTH,
    Remote,
    as_it_is,
    from_number,
    is_id,
    is_message,
    like,
    remote,
    said,
    steps_of,
)
from pagefile.engine import Conversation
from pagefile.engine.arguments import log_position, turn_id_of
from pagefile.engine.drafts import StepLike, checked_step
from pagefile.engine.shield import shielded
from pagefile.errors import StoreUnavailableError
from pagefile.ports import NO_LABELS, Labels
from pagefile.records import Scope, Turn, checked_id
from pagefile.window.receipt import Window
from pagefile.window.render import Placement
from pagefile.wire.chat import AskChat, ChatDone, ChatEvent


def _begun(chat: "ClientConversation", turn: Turn) -> Turn:
    chat.open_turn = turn if turn.status == "open" else None
    return turn


def _noticed(chat: "ClientConversation", turn: Turn) -> Turn:
    if chat.open_turn is not None and chat.open_turn.id == turn.id:
        _begun(chat, turn)
    return turn


def _for_open_turn(chat: "ClientConversation", given: dict[str, Any]) -> None:
    given["turn"] = given["turn"] or chat.open_turn


def _after_known_messages(_: "ClientConversation", given: dict[str, Any]) -> None:
    if isinstance(given["turn"], Turn) and given["after"] is None:
        given["after"] = len(given["turn"].messages)


def _checked_step(_: "ClientConversation", given: dict[str, Any]) -> None:
    turn = given["turn"]
    number = len(turn.steps) if isinstance(turn, Turn) else 0
    call = {name: value for name, value in given.items() if name != "turn"}
    step = checked_step(call, turn_id_of(turn), number, ANY_LENGTH)
    given |= {"tool": step.tool, "input": step.input, "result": step.result}
    # The same step of the same turn has the same id: adding it twice adds it once.
    given["call_id"] = step.call_id if given["call_id"] or isinstance(turn, Turn) else None


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
        #: The turn that this handle began.
        self.open_turn: Turn | None = None

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
    begin = remote(verbs.BEGIN, then=_begun, id=is_id("turn id"))
    extend = remote(verbs.EXTEND, first=_after_known_messages, then=_noticed, after=from_number(0, "after"))
    step = remote(verbs.STEP, first=_checked_step, then=_noticed, call_id=as_it_is)
    complete = remote(verbs.COMPLETE, then=_noticed)
    messages = remote(verbs.MESSAGES)
    _abort = remote(verbs.ABORT, then=_noticed)

    @like(Conversation.abort)
    async def abort(self, turn: Turn | str) -> Turn:
        return await shielded(lambda: self._abort(turn))

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

    call_tool = remote(verbs.CALL_TOOL, first=_for_open_turn)

    # -- checkpoints and listings ---------------------------------------------------------------------------------

    checkpoint = remote(verbs.CHECKPOINT)
    reset = remote(verbs.RESET)
    turns = remote(verbs.CHAT_TURNS, after=log_position)
    log = remote(verbs.LOG, after=log_position)
    head = remote(verbs.HEAD)
    session = remote(verbs.SESSION)
    calls = remote(verbs.CALLS)

    checkpoints = remote(verbs.CHECKPOINTS, whole=True)

    # -- recorded calls -------------------------------------------------------------------------------------------

    explain = remote(verbs.EXPLAIN)
    replay = remote(verbs.REPLAY)
    costs = remote(verbs.COSTS)

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

    def _current_turn_id(self, query: str | None, turn: Turn | str | None) -> str | None:
        if turn is not None:
            return turn_id_of(turn)
        mine = self.open_turn
        return mine.id if mine is not None and query in {None, mine.user} else None
