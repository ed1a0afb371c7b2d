"""A handle on one conversation of a service."""

import json
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, cast
from uuid import uuid4

from pagefile.client.calling import Caller
from pagefile.client.streaming import events_in, lines_in
from pagefile.content import Shape
from pagefile.engine import Conversation
from pagefile.engine.asking import Request, at_least, checked_shape, moment, place, turn_id_of
from pagefile.engine.drafts import (
    StepLike,
    checked_json,
    checked_message,
    checked_metadata,
    checked_step,
    checked_steps,
)
from pagefile.engine.explaining import Cost, Explanation
from pagefile.engine.reading import Kind, checked_kind
from pagefile.engine.replaying import Replay
from pagefile.engine.shielding import seen_through
from pagefile.errors import InvalidTurnError, StoreUnavailableError
from pagefile.ports import NO_LABELS, Labels
from pagefile.records import (
    Call,
    Checkpoint,
    Head,
    Hit,
    JsonObject,
    JsonValue,
    Listing,
    Page,
    PageHit,
    Reset,
    Scope,
    Step,
    Turn,
    checked_id,
    checked_text,
)
from pagefile.settings import Settings
from pagefile.shapes import listed, plain_json
from pagefile.shapes.storable import results_cleaned
from pagefile.window.beside import tool_texts
from pagefile.window.receipt import Window
from pagefile.window.render import Placement
from pagefile.wire import responses
from pagefile.wire.archive import FetchedOut, PageHitOut, PageOut, ToolAnswer
from pagefile.wire.chat import ChatDone, ChatEvent
from pagefile.wire.explaining import CostOut, ExplanationOut, ReplayOut
from pagefile.wire.responses import (
    CallOut,
    CheckpointOut,
    ConversationOut,
    ForkOut,
    HitOut,
    LoadOut,
    LogPage,
    MessagesOut,
    ResetOut,
    SessionOut,
    TurnOut,
)
from pagefile.wire.windows import WindowOut

#: How long texts may be is for the service to say.
_ANY = sys.maxsize
_UNLIMITED = Settings(max_message_chars=_ANY, max_result_chars=_ANY)


class ClientConversation:
    """A cheap handle: making one sends nothing. Arguments are checked here, in the words of `Memory`."""

    def __init__(
        self,
        caller: Caller,
        scope: Scope,
        *,
        agent: str | None = None,
        labels: Labels = NO_LABELS,
        tenant: str | None = None,
    ) -> None:
        self._caller = caller
        self._scope = scope
        # Unnamed it stays unnamed: with a key, the service knows whose it is.
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
        """Whose memory this is, as far as it was named here: a key may stand for another tenant and for a user."""
        return self._scope

    # -- turns in -------------------------------------------------------------------------------------------------

    async def record(
        self,
        user: str | None = None,
        assistant: str | None = None,
        *,
        messages: Iterable[object] | None = None,
        steps: Iterable[StepLike] = (),
        id: str | None = None,  # noqa: A002 - the word users write
        at: datetime | None = None,
        metadata: JsonObject | None = None,
    ) -> Turn:
        user, assistant = checked_message(user, "user", _ANY), checked_message(assistant, "assistant", _ANY)
        if user is None and assistant is None and messages is None:
            raise InvalidTurnError(
                "A turn needs a user message or an assistant message: both are missing or blank."
            )
        turn_id = str(uuid4()) if id is None else checked_id(id, "turn id")
        body = {
            **self._new_turn(turn_id, at, metadata),
            "user": user,
            "assistant": assistant,
            "messages": _messages(messages),
            "steps": [_sent(step) for step in checked_steps(steps, turn_id, _ANY)],
        }
        return (await self._caller.change("/v1/turns", body, TurnOut)).record()

    async def begin(
        self,
        user: str | None = None,
        *,
        messages: Iterable[object] | None = None,
        id: str | None = None,  # noqa: A002 - the word users write
        at: datetime | None = None,
        metadata: JsonObject | None = None,
    ) -> Turn:
        turn_id = str(uuid4()) if id is None else checked_id(id, "turn id")
        said = checked_message(user, "user", _ANY)
        if said is None and messages is None:
            raise InvalidTurnError(
                "A turn needs a user message or an assistant message: both are missing or blank."
            )
        body = {**self._new_turn(turn_id, at, metadata), "user": said, "messages": _messages(messages)}
        turn = (await self._caller.change("/v1/turns/begin", body, TurnOut)).record()
        self._open_turn = turn if turn.status == "open" else None
        return turn

    async def extend(self, turn: Turn | str, messages: Iterable[object], *, after: int | None = None) -> Turn:
        known = len(turn.messages) if isinstance(turn, Turn) and after is None else after
        body = {"messages": _messages(messages), "after": known}
        return await self._advanced("/v1/turns/extend", turn_id_of(turn), body)

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
        number = len(turn.steps) if isinstance(turn, Turn) else uuid4().int % 1_000_000_000
        given = {"tool": tool, "input": input, "result": result, "call_id": call_id}
        step = checked_step(given, turn_id, number, _ANY)
        return await self._advanced("/v1/turns/step", turn_id, _sent(step))

    async def complete(self, turn: Turn | str, assistant: str | None = None) -> Turn:
        text = checked_message(assistant, "assistant", _ANY)
        return await self._advanced("/v1/turns/complete", turn_id_of(turn), {"assistant": text})

    async def abort(self, turn: Turn | str) -> Turn:
        turn_id = turn_id_of(turn)
        return await seen_through(lambda: self._advanced("/v1/turns/abort", turn_id, {}))

    async def messages(self, turn: Turn | str, *, shape: Shape | None = None) -> list[dict[str, Any]]:
        params = {**self._here(), "turn_id": turn_id_of(turn), "shape": checked_shape(shape)}
        return (await self._caller.get("/v1/turns/messages", params, MessagesOut)).messages

    async def fork(
        self,
        turn: Turn | str,
        *,
        id: str | None = None,  # noqa: A002 - the word users write
        before: bool = False,
    ) -> "ClientConversation":
        name = str(uuid4()) if id is None else checked_id(id, "conversation id")
        body = {**self._here(), "turn_id": turn_id_of(turn), "id": name, "before": before}
        made = await self._caller.change("/v1/conversations/fork", body, ForkOut)
        scope = Scope(self._scope.tenant, made.user_id, made.conversation_id)
        labels = Labels(**self._labels)
        return ClientConversation(self._caller, scope, agent=self._agent, labels=labels, tenant=self._tenant)

    # -- windows out ----------------------------------------------------------------------------------------------

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
        request = Request.checked(
            _UNLIMITED,
            query=query,
            turn_id=self._current_turn_id(query, turn),
            window_tokens=window_tokens,
            answer_tokens=answer_tokens,
            threshold=threshold,
            recent_turns=recent_turns,
            load=load,
            instructions=instructions,
            placement=placement,
        )
        body = {
            **self._here(),
            "query": request.query,
            "turn_id": request.turn_id,
            "window_tokens": window_tokens,
            "window_for": window_for,
            "tools": [json.loads(text) for text in tool_texts(tools)],
            "answer_tokens": answer_tokens,
            "threshold": threshold,
            "recent_turns": recent_turns,
            "load": request.load,
            "instructions": request.instructions,
            "placement": placement,
            "format": "parts",
        }
        return (await self._caller.ask("/v1/context", body, WindowOut)).record()

    async def recall(self, query: str, limit: int = 10, *, at: datetime | None = None) -> list[Hit]:
        body = {
            **self._here(),
            "query": checked_text(query, "query"),
            "limit": at_least(1, limit, "limit"),
            "at": None if at is None else moment(at).isoformat(),
        }
        found = await self._caller.ask("/v1/recall", body, responses.Page[HitOut])
        return [hit.record() for hit in found.items]

    # -- archived pages -------------------------------------------------------------------------------------------

    async def load(
        self, uuid: str, *, query: str | None = None, offset: int = 0, limit: int | None = None
    ) -> str:
        body = {**self._here(), "uuid": str(uuid), "query": query, "offset": offset, "limit": limit}
        return (await self._caller.ask("/v1/load", body, LoadOut)).text

    async def page(self, uuid: str) -> Page:
        return (await self._caller.get("/v1/pages/page", {**self._here(), "uuid": uuid}, PageOut)).record()

    async def pages(self, *, limit: int = 100, after: str | None = None) -> Listing[Page]:
        params = {**self._here(), "limit": at_least(1, limit, "limit"), "after": after}
        found = await self._caller.get("/v1/pages", params, responses.Page[PageOut])
        return Listing([page.record() for page in found.items], found.next)

    async def search_tool_history(self, query: str, limit: int = 5, *, here: bool = False) -> list[PageHit]:
        body = {
            **self._here(),
            "query": checked_text(query, "query"),
            "limit": at_least(1, limit, "limit"),
            "here": here,
        }
        found = await self._caller.ask("/v1/pages/search", body, responses.Page[PageHitOut])
        return [hit.record() for hit in found.items]

    async def fetched(self, tool: str, input: object = None) -> Page | None:  # noqa: A002 - the word users write
        body = {
            **self._here(),
            "tool": checked_text(tool, "tool"),
            "input": checked_json(input, "input"),
        }
        found = (await self._caller.ask("/v1/pages/fetched", body, FetchedOut)).page
        return None if found is None else found.record()

    async def pin(self, uuid: str, *, pinned: bool = True) -> Page:
        body = {**self._here(), "uuid": uuid, "pinned": pinned}
        return (await self._caller.change("/v1/pages/pin", body, PageOut)).record()

    async def call_tool(self, name: str, arguments: Mapping[str, object], *, turn: Turn | None = None) -> str:
        asking = turn or self._open_turn
        body = {
            **self._here(),
            "name": name,
            "arguments": checked_json(dict(arguments), "arguments"),
            "turn_id": None if asking is None else asking.id,
        }
        return (await self._caller.ask("/v1/tools/call", body, ToolAnswer)).text

    # -- checkpoints and listings ---------------------------------------------------------------------------------

    async def checkpoint(self, summary: str | None = None, *, recent_turns: int | None = None) -> Checkpoint:
        keep = None if recent_turns is None else at_least(0, recent_turns, "recent_turns")
        body = {**self._here(), "summary": summary, "recent_turns": keep}
        return (await self._caller.change("/v1/checkpoints", body, CheckpointOut)).record()

    async def reset(self) -> Reset:
        return (await self._caller.change("/v1/reset", self._here(), ResetOut)).record()

    async def turns(self, *, after: int | str = 0, limit: int = 100, newest: bool = False) -> Listing[Turn]:
        params = {
            **self._here(),
            "after": place(after),
            "limit": at_least(1, limit, "limit"),
            "newest": newest,
        }
        found = await self._caller.get("/v1/turns", params, responses.Page[TurnOut])
        return Listing([turn.record() for turn in found.items], found.next)

    async def log(
        self, *, kind: Kind | None = None, after: int | str = 0, limit: int = 100, newest: bool = False
    ) -> Listing[Turn | Checkpoint | Reset]:
        params = {
            **self._here(),
            "kind": checked_kind(kind),
            "after": place(after),
            "limit": at_least(1, limit, "limit"),
            "newest": newest,
        }
        found = await self._caller.get("/v1/log", params, LogPage)
        return Listing([entry.record() for entry in found.items], found.next)

    async def head(self) -> Head:
        found = await self._caller.get("/v1/conversations/conversation", self._here(), ConversationOut)
        return found.record()

    async def session(self) -> JsonObject | None:
        return (await self._caller.get("/v1/session", self._here(), SessionOut)).value

    async def checkpoints(self) -> Listing[Checkpoint]:
        made: list[Checkpoint] = []
        after: str | None = None
        while True:
            params = {**self._here(), "limit": 1000, "after": after}
            found = await self._caller.get("/v1/checkpoints", params, responses.Page[CheckpointOut])
            made += [checkpoint.record() for checkpoint in found.items]
            after = found.next
            if after is None:
                return Listing(made)

    async def calls(self, *, limit: int = 50, after: str | None = None) -> Listing[Call]:
        params = {**self._here(), "limit": at_least(1, limit, "limit"), "after": after}
        found = await self._caller.get("/v1/calls", params, responses.Page[CallOut])
        return Listing([call.record() for call in found.items], found.next)

    # -- recorded calls -------------------------------------------------------------------------------------------

    async def explain(self, call_id: str) -> Explanation:
        params = {**self._here(), "call_id": checked_id(call_id, "call id")}
        return (await self._caller.get("/v1/explain", params, ExplanationOut)).record()

    async def replay(self, call_id: str, /, **changes: JsonValue) -> Replay:
        body = {
            **self._here(),
            "call_id": checked_id(call_id, "call id"),
            "changes": checked_json(changes, "changes"),
        }
        return (await self._caller.ask("/v1/replay", body, ReplayOut)).record()

    async def costs(self, *, limit: int = 50) -> list[Cost]:
        params = {**self._here(), "limit": at_least(1, limit, "limit")}
        found = await self._caller.get("/v1/costs", params, responses.Page[CostOut])
        return [cost.record() for cost in found.items]

    # -- the service's own ----------------------------------------------------------------------------------------

    async def stream_chat(
        self,
        message: str,
        *,
        id: str | None = None,  # noqa: A002 - the word users write
        instructions: str | None = None,
        window_tokens: int | None = None,
        steps: Iterable[StepLike] = (),
    ) -> AsyncGenerator[ChatEvent]:
        """Have the service's model answer a message: events as they happen, words among them, `ChatDone` at the end.

        What breaks on the way is raised; the turn is aborted then, as it is when this is left early (`aclosing()` does so at
        once).
        """
        turn_id = str(uuid4()) if id is None else checked_id(id, "turn id")
        body = {
            **self._here(),
            "message": checked_message(message, "message", _ANY) or message,
            "id": turn_id,
            "agent": self._agent,
            **self._labels,
            "instructions": instructions,
            "window_tokens": window_tokens,
            "steps": [_sent(step) for step in checked_steps(steps, turn_id, _ANY)],
        }
        async with self._caller.stream("POST", "/v1/chat/stream", body=body) as answer:
            done = False
            async for event in events_in(lines_in(answer.aiter_bytes())):
                done = isinstance(event, ChatDone)
                yield event
            if not done:
                raise StoreUnavailableError("The stream ended before the answer did: the turn is aborted.")

    # -- inside ---------------------------------------------------------------------------------------------------

    def _here(self) -> dict[str, object]:
        return {
            "conversation_id": self._scope.conversation,
            "user_id": self._scope.user,
            "tenant": self._tenant,
        }

    def _new_turn(self, turn_id: str, at: datetime | None, metadata: JsonObject | None) -> dict[str, object]:
        return {
            **self._here(),
            "id": turn_id,
            "at": None if at is None else moment(at).isoformat(),
            "metadata": checked_metadata(metadata),
            "agent": self._agent,
            **self._labels,
        }

    async def _advanced(self, path: str, turn_id: str, more: Mapping[str, object]) -> Turn:
        body = {**self._here(), "turn_id": turn_id, **more}
        changed = (await self._caller.change(path, body, TurnOut)).record()
        if self._open_turn is not None and self._open_turn.id == changed.id:
            self._open_turn = changed if changed.status == "open" else None
        return changed

    def _current_turn_id(self, query: str | None, turn: Turn | str | None) -> str | None:
        if turn is not None:
            return turn_id_of(turn)
        mine = self._open_turn
        return mine.id if mine is not None and query in {None, mine.user} else None


def _messages(messages: Iterable[object] | None) -> list[JsonValue] | None:
    """Messages as the library would store them: what a tool returned is mended, and the caller's own words are checked."""
    if messages is None:
        return None
    given = [results_cleaned(plain_json(message, place)) for place, message in enumerate(listed(messages))]
    return [checked_json(message, f"messages[{place}]") for place, message in enumerate(given)]


def _sent(step: Step) -> dict[str, object]:
    return {"tool": step.tool, "input": step.input, "result": step.result, "call_id": step.call_id}


for _verb, _function in vars(ClientConversation).items():
    if callable(_function) and not _verb.startswith("_") and not _function.__doc__:
        _function.__doc__ = getattr(Conversation, _verb).__doc__
