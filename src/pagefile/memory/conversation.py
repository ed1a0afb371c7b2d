"""A handle on one conversation: turns go in, windows come out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import cast
from uuid import uuid4

import anyio.to_thread

from pagefile.errors import InvalidTurnError, SettingsError
from pagefile.memory.drafts import StepLike, checked_message, checked_metadata, checked_step, checked_steps
from pagefile.memory.house import House
from pagefile.ports import Abort, AddStep, Complete, EntryQuery, LogView, TurnDraft, ViewRequest
from pagefile.records import (
    Call,
    Checkpoint,
    Hit,
    JsonObject,
    Listing,
    Reset,
    Scope,
    Step,
    Turn,
    checked_id,
    checked_text,
    utc,
)
from pagefile.text.scripts import language
from pagefile.tiers.base import Occasion
from pagefile.window.budget import Budget
from pagefile.window.candidates import Candidate, Form
from pagefile.window.compile import Compiled, Layout, compile_window
from pagefile.window.measure import side_tokens, step_tokens, turn_tokens
from pagefile.window.receipt import Receipt, Window
from pagefile.window.render import Placement

FULL_HISTORY = "FULL_HISTORY"
SUMMARY_N = "SUMMARY_N"

#: From so many characters on, counting tokens would hold up the event loop.
_THREAD_FROM_CHARS = 50_000


@dataclass(frozen=True, slots=True)
class _Request:
    """The arguments of one `context()`, checked."""

    query: str | None
    turn_id: str | None
    window_tokens: int
    threshold: float
    recent_turns: int
    instructions: str | None
    placement: Placement


class Conversation:
    """A cheap handle: making one reads and writes nothing."""

    def __init__(self, house: House, scope: Scope, *, agent: str | None = None) -> None:
        self._house = house
        self._scope = scope
        self._agent = None if agent is None else checked_id(agent, "agent")
        self._open_turn: Turn | None = None

    def __repr__(self) -> str:
        return f"Conversation({self.id!r}, user_id={self._scope.user!r}, tenant={self._scope.tenant!r})"

    @property
    def id(self) -> str:
        """The conversation's id."""
        return cast("str", self._scope.conversation)

    @property
    def scope(self) -> Scope:
        """Whose memory this is."""
        return self._scope

    # -- turns in -------------------------------------------------------------------------------------------------

    async def record(
        self,
        user: str | None = None,
        assistant: str | None = None,
        *,
        steps: Iterable[StepLike] = (),
        id: str | None = None,  # noqa: A002 - the word users write
        at: datetime | None = None,
        metadata: JsonObject | None = None,
    ) -> Turn:
        """Write one done turn; when this returns, it is on disk.

        Either side may be missing, not both. The same id with the same text returns the stored turn, with another text
        it raises `ConflictError`.
        """
        draft = await self._draft("done", user, assistant, steps=steps, turn_id=id, at=at, metadata=metadata)
        return await self._house.store.log.append(draft)

    async def begin(
        self,
        user: str,
        *,
        id: str | None = None,  # noqa: A002 - the word users write
        at: datetime | None = None,
        metadata: JsonObject | None = None,
    ) -> Turn:
        """Write the user's message before the answer is there; the turn stays open until `complete` or `abort`."""
        draft = await self._draft("open", user, None, turn_id=id, at=at, metadata=metadata)
        self._open_turn = await self._house.store.log.append(draft)
        return self._open_turn

    async def step(
        self,
        turn: Turn | str,
        *,
        tool: str,
        input: object = None,  # noqa: A002 - the word users write
        result: object = None,
        call_id: str | None = None,
    ) -> Turn:
        """Add a tool call and its result to an open turn; a bulky result is archived on the way."""
        self._house.check_open()
        turn_id = _turn_id(turn)
        number = len(turn.steps) if isinstance(turn, Turn) else uuid4().int % 1_000_000_000
        given = {"tool": tool, "input": input, "result": result, "call_id": call_id}
        raw = checked_step(given, turn_id, number, self._house.settings.max_result_chars)
        step = await self._kept(raw)
        changed = await self._house.store.log.advance(AddStep(self._scope, turn_id, step, step_tokens(step)))
        self._remember_open(changed)
        return changed

    async def complete(self, turn: Turn | str, assistant: str | None) -> Turn:
        """Write the answer: the turn is done and takes its place in the log."""
        self._house.check_open()
        text = checked_message(assistant, "assistant", self._house.settings.max_message_chars)
        tokens = await self._count(text)
        change = Complete(self._scope, _turn_id(turn), text, tokens, side_tokens(text, tokens))
        changed = await self._house.store.log.advance(change)
        self._remember_open(changed)
        return changed

    async def abort(self, turn: Turn | str) -> Turn:
        """Give a turn up: it stays in the log and enters no window, summary or index."""
        self._house.check_open()
        changed = await self._house.store.log.advance(Abort(self._scope, _turn_id(turn)))
        self._remember_open(changed)
        return changed

    # -- windows out ----------------------------------------------------------------------------------------------

    async def context(
        self,
        query: str | None = None,
        *,
        turn: Turn | str | None = None,
        window_tokens: int | None = None,
        threshold: float | None = None,
        recent_turns: int | None = None,
        instructions: str | None = None,
        placement: Placement | None = None,
    ) -> Window:
        """The messages to send to the model, within one exact token budget, with the receipt.

        `query` is the user's message if it is not written yet. For a turn that was begun, leave it out: the turn this
        handle began last (or the one named by `turn`) is the current message, with its tool results behind it.
        """
        self._house.check_open()
        settings = self._house.settings
        request = _Request(
            query=checked_message(query, "query", settings.max_message_chars),
            turn_id=self._current_turn_id(query, turn),
            window_tokens=_at_least(
                1, settings.window_tokens if window_tokens is None else window_tokens, "window_tokens"
            ),
            threshold=_share(settings.threshold if threshold is None else threshold),
            recent_turns=_at_least(
                1, settings.recent_turns if recent_turns is None else recent_turns, "recent_turns"
            ),
            instructions=checked_message(instructions, "instructions", settings.max_message_chars),
            placement=_placement(placement or settings.placement),
        )
        return await self._window(request)

    async def recall(self, query: str, limit: int = 10) -> list[Hit]:
        """Past turns of this conversation that answer the query, best first, each with its neighbours."""
        self._house.check_open()
        text = checked_text(query, "query")
        return await self._house.episodes.recall(self._scope, text, _at_least(1, limit, "limit"))

    async def load(self, uuid: str, *, offset: int = 0, limit: int | None = None) -> str:
        """Page in an archived tool result, whole or from `offset` on for `limit` characters."""
        self._house.check_open()
        text = await self._house.archive.load(self._scope, checked_id(uuid, "uuid"))
        start = _at_least(0, offset, "offset")
        return text[start:] if limit is None else text[start : start + _at_least(1, limit, "limit")]

    # -- checkpoints and listings -----------------------------------------------------------------------------------

    async def checkpoint(self, summary: str | None = None, *, recent_turns: int | None = None) -> Checkpoint:
        """Let a summary speak for all but the last `recent_turns` turns; without one, it is extracted from them."""
        self._house.check_open()
        keep = self._house.settings.recent_turns if recent_turns is None else recent_turns
        return await self._house.history.checkpoint(self._scope, summary, _at_least(0, keep, "recent_turns"))

    async def reset(self) -> Reset:
        """Begin anew: what came before leaves the window and stays in the log and in recall."""
        self._house.check_open()
        return await self._house.history.reset(self._scope)

    async def turns(self, *, after: int = 0, limit: int = 100, newest: bool = False) -> Listing[Turn]:
        """Turns in order, open and aborted ones too; `next` of the result continues as `after`."""
        self._house.check_open()
        count = _at_least(1, limit, "limit")
        query = EntryQuery(
            self._scope, after_seq=_at_least(0, after, "after"), limit=count + 1, newest=newest
        )
        found = [entry for entry in await self._house.store.reader.entries(query) if isinstance(entry, Turn)]
        page = found[-count:] if newest else found[:count]
        more = len(found) > count and not newest and page[-1].seq is not None
        return Listing(page, str(page[-1].seq) if more else None)

    async def checkpoints(self) -> Listing[Checkpoint]:
        """Every checkpoint of this conversation, oldest first."""
        self._house.check_open()
        query = EntryQuery(self._scope, kinds=frozenset({"checkpoint"}), limit=10_000)
        found = await self._house.store.reader.entries(query)
        return Listing([entry for entry in found if isinstance(entry, Checkpoint)])

    async def calls(self, *, limit: int = 50, after: str | None = None) -> Listing[Call]:
        """The windows handed out lately, newest first."""
        self._house.check_open()
        count = _at_least(1, limit, "limit")
        found = await self._house.store.calls.list(self._scope, limit=count + 1, after=after)
        return Listing(found[:count], found[count - 1].id if len(found) > count else None)

    # -- inside -------------------------------------------------------------------------------------------------------

    async def _draft(
        self,
        status: str,
        user: str | None,
        assistant: str | None,
        *,
        steps: Iterable[StepLike] = (),
        turn_id: str | None,
        at: datetime | None,
        metadata: JsonObject | None,
    ) -> TurnDraft:
        house = self._house
        house.check_open()
        user = checked_message(user, "user", house.settings.max_message_chars)
        assistant = checked_message(assistant, "assistant", house.settings.max_message_chars)
        if user is None and assistant is None:
            raise InvalidTurnError(
                "A turn needs a user message or an assistant message: both are missing or blank."
            )
        turn_id = str(uuid4()) if turn_id is None else checked_id(turn_id, "turn id")
        raw_steps = checked_steps(steps, turn_id, house.settings.max_result_chars) if steps else ()
        kept_steps = tuple([await self._kept(step) for step in raw_steps])
        user_tokens, assistant_tokens = await self._count(user), await self._count(assistant)
        return TurnDraft(
            scope=self._scope,
            id=turn_id,
            status="open" if status == "open" else "done",
            user=user,
            assistant=assistant,
            steps=kept_steps,
            at=_moment(at) if at is not None else house.clock.now(),
            user_tokens=user_tokens,
            assistant_tokens=assistant_tokens,
            tokens=turn_tokens(user, user_tokens, assistant, assistant_tokens, kept_steps),
            counter=house.counter.name,
            metadata=checked_metadata(metadata),
            agent=self._agent,
        )

    async def _kept(self, step: Step) -> Step:
        return await self._house.archive.keep(self._scope, step)

    async def _count(self, text: str | None) -> int:
        if not text:
            return 0
        if len(text) < _THREAD_FROM_CHARS:
            return self._house.counter.count(text)
        return await anyio.to_thread.run_sync(self._house.counter.count, text)

    def _remember_open(self, turn: Turn) -> None:
        if self._open_turn is not None and self._open_turn.id == turn.id:
            self._open_turn = turn if turn.status == "open" else None

    def _current_turn_id(self, query: str | None, turn: Turn | str | None) -> str | None:
        if turn is not None:
            return _turn_id(turn)
        mine = self._open_turn
        return mine.id if mine is not None and query in {None, mine.user} else None

    async def _window(self, request: _Request) -> Window:
        house = self._house
        view = await house.store.reader.view(
            ViewRequest(self._scope, request.window_tokens, min_turns=1, open_turn=request.turn_id)
        )
        notes: list[str] = []
        asked = view.open_turn.user if view.open_turn is not None else request.query
        occasion = Occasion(
            self._scope, asked, view, request.window_tokens, request.recent_turns, notes.append
        )
        candidates = self._given(request, view) + await house.offers(occasion)
        budget = Budget.of(request.window_tokens, facts_tokens=house.settings.memory.max_injection_tokens)
        layout = Layout(request.placement, language(asked or request.instructions or ""))
        compiled = compile_window(candidates, budget, house.counter.count, layout)
        window = self._finished(compiled, request, view, notes)
        if not house.incognito:
            house.calls.add(partial(self._call, window, request, asked))
        return window

    def _given(self, request: _Request, view: LogView) -> list[Candidate]:
        """What the caller brought: instructions and the current message."""
        given: list[Candidate] = []
        if request.instructions:
            form = Form(self._house.counter.count(request.instructions), text=request.instructions)
            given.append(Candidate("instructions", "instructions", (form,)))
        if view.open_turn is not None:
            given += self._house.history.current(view.open_turn)
        elif request.query:
            given.append(self._house.history.question(request.query))
        return given

    def _finished(self, compiled: Compiled, request: _Request, view: LogView, notes: Sequence[str]) -> Window:
        counter = self._house.counter
        ratio = compiled.wanted_tokens / request.window_tokens
        receipt = Receipt(
            compiled.verdicts,
            request.window_tokens,
            compiled.framing,
            counter.name,
            counter.exact,
            tuple(notes),
        )
        return Window(
            messages=compiled.messages,
            tokens=compiled.tokens,
            budget=request.window_tokens,
            ratio=ratio,
            mode=FULL_HISTORY if view.checkpoint is None else SUMMARY_N,
            should_checkpoint=ratio >= request.threshold,
            prefix_hash=compiled.prefix_hash,
            prefix_messages=compiled.prefix_messages,
            receipt=receipt,
            id=str(uuid4()),
        )

    def _call(self, window: Window, request: _Request, asked: str | None) -> Call:
        return Call(
            id=window.id,
            scope=self._scope,
            at=self._house.clock.now(),
            turn_id=request.turn_id,
            query=asked,
            options={
                "window_tokens": request.window_tokens,
                "threshold": request.threshold,
                "recent_turns": request.recent_turns,
                "instructions": request.instructions,
                "placement": request.placement,
            },
            tokens=window.tokens,
            ratio=window.ratio,
            mode=window.mode,
            prefix_hash=window.prefix_hash,
            receipt=window.receipt.to_json(),
        )


def _turn_id(turn: Turn | str) -> str:
    return turn.id if isinstance(turn, Turn) else checked_id(turn, "turn id")


def _moment(value: object) -> datetime:
    if not isinstance(value, datetime):
        raise InvalidTurnError(
            f"at must be a datetime, not {type(value).__name__}: use datetime.fromisoformat(…)."
        )
    return utc(value)


def _at_least(least: int, value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise SettingsError(f"{name} must be a whole number, not {value!r}.")
    if value < least:
        raise SettingsError(f"{name} is {value}: it must be at least {least}.")
    return value


def _share(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= 1:
        raise SettingsError(
            f"threshold is {value!r}: give a share of the window between 0 and 1, for instance 0.75."
        )
    return float(value)


def _placement(value: str) -> Placement:
    if value not in {"tail", "head"}:
        raise SettingsError(f"placement is {value!r}: it must be 'tail' or 'head'.")
    return cast("Placement", value)
