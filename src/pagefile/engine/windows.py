"""From a question to a window: read the log, let the tiers offer, compile, and record what was handed out."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from time import perf_counter
from uuid import uuid4
from zoneinfo import ZoneInfo

from pagefile.content import Media, media_in
from pagefile.engine.arguments import Request
from pagefile.engine.engine import Engine
from pagefile.engine.messages import Desk
from pagefile.engine.snapshots import snapshot_of
from pagefile.errors import ConflictError, ErasedError, NotFoundError, StoreError
from pagefile.ports import NO_LABELS, LogView, ViewRequest
from pagefile.records import NEVER, SNAPSHOT_KEY, ConversationInfo, Scope, Turn, WindowRecord
from pagefile.shapes.media import keeper, note
from pagefile.shapes.parser import cleaned
from pagefile.stores.session import FULL_HISTORY, SUMMARY_N
from pagefile.tiers.base import WindowRequest
from pagefile.tiers.history import History
from pagefile.window.budget import Budget
from pagefile.window.candidates import Candidate, Form
from pagefile.window.compile import Compiled, Count, Layout, compile_window
from pagefile.window.forms import media_named, turn_forms
from pagefile.window.parts import messages_hash
from pagefile.window.receipt import Receipt, Window
from pagefile.window.turn_notes import least_tokens

#: Limit on the bytes of images and files in one window. Base64 adds a third, and Anthropic limits requests to
#: 32 MB.
MOST_MEDIA_BYTES = 20_000_000
#: Turns read at a time beyond one that did not fit.
_FURTHER_TURNS = 8


async def make_window(engine: Engine, scope: Scope, request: Request) -> Window:
    """The window for a request. Failures on the way are noted in the receipt; the question itself always gets through."""
    at = engine.clock.now()
    made = await assembled(engine, scope, request)
    notes: list[str] = []
    await _claim(engine, made.request.view.head, notes)
    await _give_up_abandoned(engine, made.request.view, at, notes)
    if await engine.reconsidered(made.request, made.window, notes.append):
        at = engine.clock.now()
        made = await assembled(engine, scope, request)
    engine.handed_out(made.request, made.window, notes.append)
    if notes:
        made = made.with_notes(notes)
    engine.meter.observe("pagefile_window_tokens", made.window.tokens)
    engine.meter.observe("pagefile_token_ratio", made.window.ratio)
    engine.changes.note(scope, made.window.receipt)
    if not engine.incognito and engine.settings.calls_kept:
        # Computed now, because the caller may change the messages afterwards.
        digest = hash_of(made.window)
        make = partial(_call, engine, scope, made, request, at, digest)
        engine.calls.add(scope, make, epoch=made.request.view.head.epoch)
    return made.window


async def _claim(engine: Engine, head: ConversationInfo, notes: list[str]) -> None:
    """Asking is a use: the first to ask in a conversation owns it, even before anything is written there."""
    if head.exists or engine.incognito:
        return
    try:
        await engine.store.log.claim(head.scope, epoch=head.epoch)
    except ErasedError:
        # A user who was erased while asking leaves nothing behind, not even a name.
        return
    except ConflictError:
        raise
    except StoreError as error:
        engine.go_on_without_store(error)
        notes.append(f"the store failed, so this conversation has no owner yet: {error}")


async def _give_up_abandoned(engine: Engine, view: LogView, now: datetime, notes: list[str]) -> None:
    """Turns that a process left open when it died: as long as they are open, no summary and no index has them."""
    if not engine.settings.abandoned_after_s or engine.incognito:
        return
    limit = timedelta(seconds=engine.settings.abandoned_after_s)
    for turn in view.running:
        if now - turn.created > limit:
            try:
                # It may have ended meanwhile.
                with suppress(ConflictError, NotFoundError):
                    await Desk(engine, turn.scope, None, NO_LABELS).given_up(turn.id)
            except StoreError as error:
                engine.go_on_without_store(error)
                notes.append(f"the store failed, so turn {turn.id} stays open: {error}")


@dataclass(frozen=True, slots=True)
class Made:
    window: Window
    request: WindowRequest

    def with_notes(self, notes: Sequence[str]) -> "Made":
        """The same window, with notes in its receipt about what went wrong afterwards."""
        receipt = self.window.receipt
        receipt = replace(receipt, degraded=(*receipt.degraded, *_clean(notes)))
        return replace(self, window=replace(self.window, receipt=receipt))


def hash_of(window: Window) -> str:
    """The same for windows with equal messages."""
    return messages_hash(window.messages, window.prefix_hash, window.prefix_messages)


async def assembled(engine: Engine, scope: Scope, request: Request) -> Made:
    """The window, without side effects: nothing is recorded."""
    return await _Assembly(engine, request, request.doubts(engine.counter.name)).made(scope)


@dataclass(frozen=True, slots=True)
class _Assembly:
    engine: Engine
    request: Request
    #: What the receipt says about failures and doubts.
    notes: list[str]

    async def made(self, scope: Scope) -> Made:
        engine, request, note = self.engine, self.request, self.notes.append
        budget = engine.budget(request.room, request.reserved, note)
        view = await self._read(scope)
        asked = view.open_turn.user if view.open_turn is not None else request.query
        languages, instructions = engine.languages, request.instructions
        spoken = await languages.of_window(view, request.language, asked, instructions)
        window_request = WindowRequest(
            # The owner's scope. It differs from the asking scope only for replays of calls recorded before
            # decision 0033, which may name no user.
            view.head.scope,
            asked,
            view,
            budget.tokens,
            request.recent_turns,
            note,
            count=engine.counter.count,
            threshold=request.threshold,
            load=request.load,
            instructions_tokens=engine.counter.count(request.instructions or ""),
            run=(scope, request.run),
            at=self._asked_at(view),
            language=spoken,
            day_language=languages.of_day(view, request.language, instructions, spoken),
            project=request.project or view.head.project,
            agent=request.agent or view.head.agent,
        )
        offered = await engine.offers(window_request)
        layout = Layout(request.placement, window_request.language)
        given = self._given(window_request)
        compiled = await self._compiled(view.head.scope, [*given, *offered], budget, layout)
        return Made(self._finished(compiled, window_request), window_request)

    def _asked_at(self, view: LogView) -> datetime:
        """When the question was asked, by the user's clock: the same through all windows of a running turn."""
        zone = self.request.timezone or view.head.timezone or self.engine.settings.timezone
        at = self.engine.clock.now() if view.open_turn is None else view.open_turn.at
        return at.astimezone(ZoneInfo(zone))

    async def _read(self, scope: Scope) -> LogView:
        """The conversation; empty if the store is down, since an answer without history beats no answer."""
        began = perf_counter()
        try:
            ask = ViewRequest(scope, self.request.room, min_turns=1, open_turn=self.request.turn_id)
            view = await self._view(ask)
        except ConflictError:
            raise
        except StoreError as error:
            if self.request.query is None:
                raise
            self.engine.go_on_without_store(error)
            self.notes.append(f"the store failed, so this window has no history: {error}")
            profile = await self.engine.sessions.snapshot(scope)
            head = ConversationInfo(scope, None, NEVER, NEVER, 0, 0, 0, 0, 0, 0)
            return LogView(head, None, (), profile=profile)
        self.engine.meter.observe("pagefile_store_seconds", perf_counter() - began, verb="view")
        return view

    async def _view(self, ask: ViewRequest) -> LogView:
        """The turns that may fit. One that stops the reading because it is too large may fit with its results gone, or
        with its images only named.

        With little room left, reading on would gain little.
        """
        reader, little = self.engine.store.reader, ask.budget_tokens // 8
        view = await reader.view(ask)
        while 0 < len(view.turns) < view.head.live_turns:
            taken = sum([least_tokens(turn, ask.budget_tokens) for turn in view.turns])
            if taken >= ask.budget_tokens - little:
                break
            further = await reader.view(replace(ask, min_turns=2 * len(view.turns) + _FURTHER_TURNS))
            fitting = _fitting(further.turns, ask.budget_tokens, self.engine.counter.count)
            if fitting <= len(view.turns):
                break
            view = replace(further, turns=further.turns[-fitting:])
            if fitting < len(further.turns):
                break
        return view

    def _given(self, request: WindowRequest) -> list[Candidate]:
        given: list[Candidate] = []
        instructions, history = self.request.instructions, self.engine.tier(History)
        if instructions:
            form = Form(self.engine.counter.count(instructions), text=instructions)
            given.append(Candidate("instructions", "instructions", (form,)))
        if request.view.open_turn is not None:
            given += history.current(request.view.open_turn, request)
        elif self.request.query:
            given.append(history.question(self.request.query))
        return given

    # -- images and files ---------------------------------------------------------------------------------------------

    async def _compiled(
        self, scope: Scope, candidates: Sequence[Candidate], budget: Budget, layout: Layout
    ) -> Compiled:
        """The window with its images and files; if some cannot be shown, they are named and it is compiled again."""
        loaded: dict[str, bytes] = {}
        count = self.engine.counter.count
        while True:
            compiled = compile_window(candidates, budget, count, layout)
            absent = await self._load_media(scope, compiled.parts.media, loaded)
            if not absent:
                break
            candidates = [
                one._replace(forms=tuple(media_named(form, count, absent) for form in one.forms))
                for one in candidates
            ]
        # Only one provider can show a file that was given by its file id.
        files = {note(media): who for media in compiled.parts.media if (who := keeper(media)) is not None}
        told = "other providers are only told its name"
        self.notes.extend(f"{name} is a file at {who}: {told}" for name, who in files.items())
        blobs = {media.blob: loaded[media.blob] for media in compiled.parts.media if media.blob is not None}
        return compiled.with_blobs(blobs) if blobs else compiled

    async def _load_media(self, scope: Scope, shown: Iterable[Media], loaded: dict[str, bytes]) -> set[str]:
        """Load the bytes of what is shown, newest first, as many as a request can carry; returns those unavailable."""
        left = MOST_MEDIA_BYTES
        absent: set[str] = set()
        for blob, media in {media.blob: media for media in shown if media.blob is not None}.items():
            if media.size > left:
                what = f": a window has at most {MOST_MEDIA_BYTES:,} bytes of media"
            else:
                what = None if blob in loaded else await self._load(scope, blob, loaded)
            if what is None:
                left -= media.size
            else:
                absent.add(blob)
                self.notes.append(f"{note(media)} is only named{what}")
        return absent

    async def _load(self, scope: Scope, blob: str, loaded: dict[str, bytes]) -> str | None:
        """Load the bytes; returns why they are unavailable, if they are."""
        try:
            loaded[blob] = await self.engine.store.media.load(scope, blob)
        except NotFoundError:
            return ": its bytes are not in the store any more"
        except StoreError as error:
            self.engine.go_on_without_store(error)
            return f", because the store failed: {error}"
        return None

    def _finished(self, compiled: Compiled, made_for: WindowRequest) -> Window:
        request, counter, view = self.request, self.engine.counter, made_for.view
        # What can still leave is no reason for a checkpoint.
        pageable = made_for.leaving.pageable_tokens
        ratio = compiled.wanted_tokens / request.room
        counted, notes = (compiled.framing, counter.name, counter.exact), _clean(self.notes)
        receipt = Receipt(compiled.verdicts, request.window_tokens, *counted, notes, request.reserved)
        return Window(
            parts=compiled.parts,
            messages=compiled.messages,
            tokens=compiled.tokens,
            budget=request.window_tokens,
            ratio=ratio,
            mode=FULL_HISTORY if view.checkpoint is None else SUMMARY_N,
            should_checkpoint=ratio - pageable / request.room >= request.threshold,
            prefix_hash=compiled.prefix_hash,
            prefix_messages=compiled.prefix_messages,
            receipt=receipt,
            id=str(uuid4()),
        )


def _fitting(turns: Sequence[Turn], room: int, count: Count) -> int:
    """How many of the newest turns fit, with their images if there is room for them."""
    window_tokens = room
    for number, turn in enumerate(reversed(turns)):
        least = least_tokens(turn, window_tokens)
        # One without images or files was read only if it fits as it is.
        if least > room and any(media_in(turn.layout or ())):
            least = min(form.tokens for form in turn_forms(turn, {}, {}, count))
        room -= least
        if room < 0:
            return number
    return len(turns)


#: A URL with its host, or a host with a port.
_ADDRESS = re.compile(r"\w+://\S+|(?:localhost|[\w-]+(?:\.[\w-]+)+|\[[0-9a-f:]+\]):\d{2,5}\b")


def _clean(notes: Sequence[str]) -> tuple[str, ...]:
    """Notes that a store can hold and any client may read: they quote errors, and third-party tiers write some themselves."""
    return tuple([_ADDRESS.sub("(its address is in the log)", cleaned(str(said))) for said in notes])


def _call(
    engine: Engine, scope: Scope, made: Made, request: Request, at: datetime, digest: str
) -> WindowRecord:
    window = made.window
    snapshot = snapshot_of(made.request, engine.settings, at, digest)
    return WindowRecord(
        id=window.id,
        scope=scope,
        at=at,
        turn_id=request.turn_id,
        query=made.request.query,
        options={**request.options(), SNAPSHOT_KEY: snapshot.to_json()},
        tokens=window.tokens,
        ratio=window.ratio,
        mode=window.mode,
        prefix_hash=window.prefix_hash,
        receipt=window.receipt.to_json(),
    )
