"""From a question to a window: read the log, let the tiers offer, compile, and write down what was handed out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from time import perf_counter
from uuid import uuid4

from pagefile.engine.asking import Request
from pagefile.engine.engine import Engine
from pagefile.engine.moments import KEY as MOMENT
from pagefile.engine.moments import moment_of
from pagefile.errors import ConflictError, NotFoundError, StoreError
from pagefile.ports import LogView, ViewRequest
from pagefile.records import NEVER, Call, Head, Scope
from pagefile.shapes import cleaned, note
from pagefile.text.scripts import language
from pagefile.tiers.base import Occasion
from pagefile.tiers.history import History
from pagefile.window.candidates import Candidate, Form
from pagefile.window.compile import Compiled, Layout, compile_window
from pagefile.window.receipt import Receipt, Window
from pagefile.window.render import messages_hash

FULL_HISTORY = "FULL_HISTORY"
SUMMARY_N = "SUMMARY_N"
#: Bytes of images and files in one window. In base64 they take a third more, and Anthropic's requests end at 32 MB.
MOST_MEDIA_BYTES = 20_000_000


async def make_window(engine: Engine, scope: Scope, request: Request) -> Window:
    """The window for a request. What fails on the way is noted in the receipt; the question itself always gets through."""
    at = engine.clock.now()
    made = await assembled(engine, scope, request)
    notes: list[str] = []
    if await engine.reconsidered(made.occasion, made.window, notes.append):
        at = engine.clock.now()
        made = await assembled(engine, scope, request)
    engine.handed_out(made.occasion, made.window, notes.append)
    if notes:
        made = made.with_notes(notes)
    _tell(engine, scope, request, made, at)
    return made.window


def _tell(engine: Engine, scope: Scope, request: Request, made: "Made", at: datetime) -> None:
    """Whoever wants to know of a window that is handed out."""
    engine.meter.observe("pagefile_window_tokens", made.window.tokens)
    engine.meter.observe("pagefile_token_ratio", made.window.ratio)
    engine.changes.note(scope, made.window.receipt)
    if not engine.incognito and engine.settings.calls_kept:
        # Now, because the messages are the caller's from here on.
        digest = hash_of(made.window)
        make = partial(_call, engine, scope, made, request, at, digest)
        engine.calls.add(scope, make, epoch=made.view.head.epoch)


@dataclass(frozen=True, slots=True)
class Made:
    """A window, and what it was made of."""

    window: Window
    occasion: Occasion

    @property
    def view(self) -> LogView:
        """The conversation as it was read."""
        return self.occasion.view

    @property
    def asked(self) -> str | None:
        """The question."""
        return self.occasion.query

    def with_notes(self, notes: Sequence[str]) -> "Made":
        """The same window, whose receipt says what went wrong after it was made."""
        receipt = self.window.receipt
        receipt = replace(receipt, degraded=(*receipt.degraded, *_clean(notes)))
        return replace(self, window=replace(self.window, receipt=receipt))


def hash_of(window: Window) -> str:
    """Equal for windows whose messages are equal."""
    return messages_hash(window.messages, window.prefix_hash, window.prefix_messages)


async def assembled(engine: Engine, scope: Scope, request: Request) -> Made:
    """The window, and nothing else: nobody is told of it."""
    notes = request.doubts(engine.counter.name)
    budget = engine.budget(request.room, request.reserved, notes.append)
    view = await _read(engine, scope, request, notes)
    asked = view.open_turn.user if view.open_turn is not None else request.query
    # A handle that names nobody still works for the conversation's owner.
    owner = scope if scope.user is not None else view.head.scope
    occasion = Occasion(
        owner,
        asked,
        view,
        budget.tokens,
        request.recent_turns,
        notes.append,
        count=engine.counter.count,
        threshold=request.threshold,
        load=request.load,
        run=(scope, request.run),
    )
    offered = await engine.offers(occasion)
    candidates = [*_given(engine, request, occasion), *offered]
    layout = Layout(request.placement, language(asked or request.instructions or ""))
    compiled = compile_window(candidates, budget, engine.counter.count, layout)
    compiled = await _with_media(engine, scope, compiled, notes)
    return Made(_finished(engine, compiled, request, view, notes), occasion)


async def _read(engine: Engine, scope: Scope, request: Request, notes: list[str]) -> LogView:
    """The conversation; nothing of it when the store is down, since an answer without history beats no answer."""
    ask = ViewRequest(scope, request.room, min_turns=1, open_turn=request.turn_id)
    began = perf_counter()
    try:
        view = await engine.store.reader.view(ask)
        engine.meter.observe("pagefile_store_seconds", perf_counter() - began, verb="view")
        return view  # noqa: TRY300 - the measurement belongs to the reading
    except ConflictError:
        raise
    except StoreError as error:
        if request.query is None or engine.settings.on_tier_error == "raise":
            raise
        engine.failed("store", error)
        notes.append(f"the store failed, so this window has no history: {error}")
        return LogView(Head(scope, None, NEVER, NEVER, 0, 0, 0, 0, 0, 0), None, ())


def _given(engine: Engine, request: Request, occasion: Occasion) -> list[Candidate]:
    """What the caller brought: instructions and the current message."""
    given: list[Candidate] = []
    if request.instructions:
        form = Form(engine.counter.count(request.instructions), text=request.instructions)
        given.append(Candidate("instructions", "instructions", (form,)))
    open_turn = occasion.view.open_turn
    if open_turn is not None:
        given += engine.tier(History).current(open_turn, occasion)
    elif request.query:
        given.append(engine.tier(History).question(request.query))
    return given


async def _with_media(engine: Engine, scope: Scope, compiled: Compiled, notes: list[str]) -> Compiled:
    """The window with the images and files that are shown in it, as many of the newest as a request can carry."""
    wanted = {media.blob: media for media in compiled.parts.media if media.blob is not None}
    blobs: dict[str, bytes] = {}
    left = MOST_MEDIA_BYTES
    for blob, media in wanted.items():
        if media.size > left:
            notes.append(
                f"{note(media)} is only named: a window has at most {MOST_MEDIA_BYTES:,} bytes of media"
            )
            continue
        try:
            blobs[blob] = await engine.store.media.load(scope, blob)
            left -= media.size
        except NotFoundError:
            notes.append(f"{note(media)} is only named: its bytes are not in the store any more")
        except StoreError as error:
            if engine.settings.on_tier_error == "raise":
                raise
            engine.failed("store", error)
            notes.append(f"{note(media)} is only named, because the store failed: {error}")
    return compiled.with_blobs(blobs) if blobs else compiled


def _finished(
    engine: Engine, compiled: Compiled, request: Request, view: LogView, notes: Sequence[str]
) -> Window:
    ratio = compiled.wanted_tokens / request.room
    counter = engine.counter
    return Window(
        parts=compiled.parts,
        messages=compiled.messages,
        tokens=compiled.tokens,
        budget=request.window_tokens,
        ratio=ratio,
        mode=FULL_HISTORY if view.checkpoint is None else SUMMARY_N,
        should_checkpoint=ratio >= request.threshold,
        prefix_hash=compiled.prefix_hash,
        prefix_messages=compiled.prefix_messages,
        receipt=Receipt(
            compiled.verdicts,
            request.window_tokens,
            compiled.framing,
            counter.name,
            counter.exact,
            _clean(notes),
            request.reserved,
        ),
        id=str(uuid4()),
    )


def _clean(notes: Sequence[str]) -> tuple[str, ...]:
    """Notes that a store can hold: they quote errors, and tiers from outside write some themselves."""
    return tuple([cleaned(str(said)) for said in notes])


def _call(engine: Engine, scope: Scope, made: Made, request: Request, at: datetime, digest: str) -> Call:
    window = made.window
    moment = moment_of(made.view, engine.settings, made.occasion.traces, at, digest)
    return Call(
        id=window.id,
        scope=scope,
        at=at,
        turn_id=request.turn_id,
        query=made.asked,
        options={**request.options(), MOMENT: moment.to_json()},
        tokens=window.tokens,
        ratio=window.ratio,
        mode=window.mode,
        prefix_hash=window.prefix_hash,
        receipt=window.receipt.to_json(),
    )
