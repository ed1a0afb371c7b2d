"""The history tier: recent turns verbatim, older ones as a checkpoint's summary."""

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache, partial
from typing import Any, Literal, cast

from pagefile.errors import ErasedError
from pagefile.lru import Lru
from pagefile.ports import Watermarks, WindowLog
from pagefile.records import Checkpoint, ErasureReceipt, JsonObject, Scope, Step, Turn
from pagefile.shapes.call_order import waiting_steps
from pagefile.text.sentences import fitting_sentences
from pagefile.text.tokens import MESSAGE_OVERHEAD
from pagefile.tiers.base import Counter, Counts, OwnTier, Pace, WindowRequest, homes, off_loop
from pagefile.tiers.checkpoints import PREPARE_AT, Checkpoints, WindowRules, summary_tokens
from pagefile.tiers.page_in import LOADING_TOOLS, THREAD_FROM_CHARS
from pagefile.window.candidates import Candidate, Form, ShownTurn, shown_turn
from pagefile.window.forms import plain_form, running_turn, shown_pages, shown_summary, turn_forms
from pagefile.window.measure import recounted, step_tokens
from pagefile.window.parts import escape
from pagefile.window.placeholder import reworded
from pagefile.window.receipt import Window
from pagefile.window.turn_notes import (
    LARGE,
    asks_for_time,
    date_lines,
    excerpts,
    in_order,
    is_large,
    lined_form,
    now_line,
    status_line,
    today_line,
    with_lines,
)
from pagefile.window.wording import WORDINGS, ZH, Wording

#: Checkpoints whose text for a window is cached: finding their anchors again takes almost as long as the
#: query.
_REMEMBERED = 256
#: A summary that takes more than the window divided by this is shortened, whatever else is in the window: the beginning of the
#: prompt does not depend on the question.
SUMMARY_MOST_SHARE = 4


#: Conversations whose fill level is tracked; for others the log must be read.
_TRACKED = 10_000
#: The watermark of a process that maintains checkpoints for others.
WATERMARK = "checkpoints"
_MOST_BEHIND = 1000
#: The form of a large turn that shows what matters for the question.
_PASSAGES = "passages"


#: A conversation of a tenant, whatever its user.
_Key = tuple[str, str | None]


def _key(scope: Scope) -> _Key:
    return scope.tenant, scope.conversation


@dataclass(eq=False, repr=False)
class History(OwnTier):
    """Turns and checkpoints of one conversation; checkpoints are made in the background when its window fills up."""

    name = "history"
    incognito = True
    pace = Pace(at_once=4)

    counter: Counter
    checkpoints: Checkpoints
    rules: WindowRules
    calls: WindowLog
    marks: Watermarks
    _: KW_ONLY
    mode: Literal["background", "sync", "manual"] = "manual"
    #: Whether this process maintains conversations that others write to.
    dedicated: bool = False

    def __post_init__(self) -> None:
        #: The window each conversation was last read with, and the tokens of its live turns.
        self._read_with: Lru[_Key, WindowRules] = Lru(_TRACKED)
        self._live: Lru[_Key, int] = Lru(_TRACKED)
        self._shown = lru_cache(_REMEMBERED)(partial(shown_summary, count=self.counter.count))

    # -- checkpoints ----------------------------------------------------------------------------------------------------

    async def absorb(self, turn: Turn) -> bool:
        if not turn.counts or self.mode != "background":
            return False
        known = self._live.get(_key(turn.scope))
        self._live[_key(turn.scope)] = (known or 0) + turn.tokens
        # Only the log can tell how full a conversation is that was not read here.
        return known is None or self._may_be_due(turn.scope)

    def shown(self, request: WindowRequest, window: Window) -> bool:
        if self.mode != "background":
            return False
        self._read_with[_key(request.scope)] = _rules(request)
        self._live[_key(request.scope)] = request.view.head.live_tokens
        return self._may_be_due(request.scope)

    def rules_of(self, scope: Scope) -> WindowRules:
        return self._read_with.get(_key(scope), self.rules)

    def _may_be_due(self, scope: Scope) -> bool:
        rules = self.rules_of(scope)
        return self._live[_key(scope)] >= PREPARE_AT * rules.threshold * rules.window_tokens

    async def reconsider(self, request: WindowRequest, window: Window) -> bool:
        if not window.should_checkpoint or self.mode != "sync":
            return False
        await self.checkpoints.maintain(request.scope, _rules(request), now=True)
        return True

    async def maintain(self, scope: Scope) -> None:
        rules = await self._rules_of(scope)
        # Turns that others write meanwhile are not included: they stay beyond the watermark.
        seen = (await self.checkpoints.view(scope)).head if self.dedicated else None
        with ExitStack() as unless_done:
            # Unless it is known how full the conversation is, the log is read again.
            unless_done.callback(self._live.clear)
            live_tokens = await self.checkpoints.maintain(scope, rules)
            unless_done.pop_all()
        self._live[_key(scope)] = live_tokens
        if seen is not None:
            # Erased meanwhile: a new conversation under that id is read from its beginning.
            with suppress(ErasedError):
                await self.marks.advance(scope, WATERMARK, seen.last_seq, epoch=seen.epoch)

    async def behind(self) -> Sequence[Scope]:
        if self.mode != "background":
            return ()
        return [one.scope for one in await self.marks.behind(WATERMARK, limit=_MOST_BEHIND)]

    async def make_checkpoint(self, scope: Scope, summary: str | None, recent_turns: int) -> Checkpoint:
        """On request: cover all but the last `recent_turns` turns, with the given summary or a generated one."""
        rules = await self._rules_of(scope)
        return await self.checkpoints.make(scope, summary, recent_turns, rules.window_tokens)

    async def _rules_of(self, scope: Scope) -> WindowRules:
        """The window a conversation was last read with, here or by another process."""
        rules = self.rules_of(scope)
        if not self.dedicated or _key(scope) in self._read_with:
            return rules
        if not (newest := await self.calls.list(scope, limit=1)):
            return rules
        given = cast("dict[str, Any]", newest[0].options)
        reserved = sum(cast("dict[str, Any]", newest[0].receipt).get("reserved", {}).values())
        return WindowRules(given["window_tokens"] - reserved, given["threshold"], given["recent_turns"])

    # -- the rest of a tier ---------------------------------------------------------------------------------------------

    async def forget(self, scope: Scope) -> Counts:
        self._shown.cache_clear()
        self.checkpoints.forget(scope)
        self._live.clear()
        return {}

    async def forget_part(self, receipt: ErasureReceipt) -> None:
        for home in homes(receipt):
            await self.forget(home)

    # -- windows --------------------------------------------------------------------------------------------------------

    async def offer(self, request: WindowRequest) -> Sequence[Candidate]:
        """The summary, the live turns that were read, and one line for those that were not."""
        view, wording = request.view, request.wording
        name = self.counter.name
        redone = sum([turn.counter != name for turn in view.turns])
        turns = [self._counted(turn) for turn in view.turns] if redone else view.turns
        turns = [self._worded(turn, wording) if turn.steps else turn for turn in turns]
        if redone:
            request.note(f"counted {redone} turns again: they were written with another tokenizer")
        _note_losses(turns, request)
        # Their counts include steps that are not shown.
        running = [recounted(turn, self.counter.count, name) for turn in view.running]
        shown = in_order(turns, running, view.head.last_seq, (request.query or "").strip())
        whole = view.head.live_turns == len(view.turns)
        lines = {} if request.at is None else date_lines(shown, request.at, whole=whole)
        recent_from = len(shown) - request.recent_turns
        candidates: list[Candidate] = []
        leaving, large, count = request.leaving, request.window_tokens // LARGE, self.counter.count
        for number, (turn, position) in enumerate(shown):
            block = "recent" if number >= recent_from else "older"
            if leaving.rewrites:
                turn = leaving.shortened(turn, self.counter.count, request.wording)  # noqa: PLW2901 - what is shown of it
            said_at = lines.get(turn.id, "")
            # The common case: there are hundreds of such turns in a window.
            plain = turn.status == "done" and not turn.steps and turn.layout is None
            if plain:
                forms = (lined_form(turn, said_at, count) if said_at else plain_form(turn),)
            else:
                forms = self._forms(turn, request, said_at)
            if turn.tokens > large and is_large(turn, request.window_tokens):
                forms = (
                    *forms,
                    *await self._excerpts(turn, request, said_at, forms, recent=block == "recent"),
                )
            left = range(-len(turn.layout or ()), len(turn.steps))
            note = leaving.note(turn.id, left) if leaving.reasons else ""
            stays = turn.status == "open"
            candidates.append(Candidate(turn.id, block, forms, position, note=note, stays=stays))
        unread = view.head.live_turns - len(view.turns)
        if unread > 0:
            tokens = max(0, view.head.live_tokens - sum(turn.tokens for turn in view.turns))
            name = f"{unread} older turns"
            candidates.append(Candidate(name, "older", (), position=-1, unread_tokens=tokens))
        # Allergies and medical history are in every window and never cut.
        safety = self._text("safety", safety_text(view.profile, wording))
        told = wording.whole_guide if self._needs_guide(request, candidates) else ""
        guide = self._text("guide", told)
        clock = self._clock(request, dated=bool(lines))
        return [*safety, *self._summary(request), *candidates, *guide, *clock]

    def _clock(self, request: WindowRequest, *, dated: bool) -> list[Candidate]:
        """The day; and beside the question the time, where turns carry theirs (`dated`) or the question is about a time."""
        if (at := request.at) is None:
            return []
        wording = WORDINGS[request.day_language or request.language]
        today = self._text("today", today_line(at, wording))
        if not request.query or not (dated or asks_for_time(request.searched)):
            return today
        return [*today, *self._text("now", now_line(at, request.wording))]

    def _forms(self, turn: Turn, request: WindowRequest, said_at: str) -> tuple[Form, ...]:
        """The turn from its fullest form to its shortest."""
        count, wording = self.counter.count, request.wording
        turn = with_lines(turn, said_at, status_line(turn, wording), count)
        return turn_forms(turn, request.pages, request.leaving.remains, count, wording, request.known_pages)

    async def _excerpts(
        self, turn: Turn, request: WindowRequest, said_at: str, forms: Sequence[Form], *, recent: bool
    ) -> list[Form]:
        """Shorter forms of a turn that may not fit at all: its passages."""
        count, wording = self.counter.count, request.wording
        told = status_line(turn, wording)
        # Further up, passages that change with the question would change the beginning of every prompt.
        query = request.searched if recent else ""

        def abridge() -> list[Form]:
            made = excerpts(turn, query, request.window_tokens, count, wording)
            lined = (with_lines(one, said_at, told, count) for one in made)
            return [Form(one.tokens, shown_turn(one, _PASSAGES, {}), name=_PASSAGES) for one in lined]

        shorter = await off_loop(abridge, len(turn.text), THREAD_FROM_CHARS)
        return [form for form in shorter if form.tokens < forms[-1].tokens]

    def current(self, turn: Turn, request: WindowRequest) -> list[Candidate]:
        """The open turn as the current message of its own window, with its tool results so far."""
        turn = self._worded(self._counted(turn), request.wording)
        _note_losses([turn], request)
        # Calls without a result, which no provider accepts.
        for step in (turn.steps[number] for number in sorted(waiting_steps(turn.messages))):
            request.note(
                f"the call {step.call_id!r} of {step.tool!r} in turn {turn.id} has no result yet: it is left out"
            )
        count, known = self.counter.count, request.known_pages
        turn = request.leaving.shortened(turn, count, request.wording)
        return running_turn(turn, request.running, request.leaving, count, request.wording, known)

    def question(self, query: str) -> Candidate:
        """A question that is not written yet, as the current message."""
        message = Form(MESSAGE_OVERHEAD + self.counter.count(query), ShownTurn("", "current", query))
        return Candidate("current", "current", (message,))

    def _needs_guide(self, request: WindowRequest, turns: Sequence[Candidate]) -> bool:
        """Whether this window, or one of the next, may contain a placeholder, so that the model must know how to load a page."""
        view = request.view
        away = any(step.page and not step.whole for turn in view.turns for step in turn.steps)
        covered = view.checkpoint is not None and bool(view.checkpoint.archive_refs)
        # A turn that is large because of its images has none: without them it is short enough.
        abridged = any(turn.forms and turn.forms[-1].name == _PASSAGES for turn in turns)
        leaving = request.leaving
        return bool(leaving.is_filling or leaving.reasons or away or covered or abridged)

    def _text(self, name: Literal["guide", "safety", "today", "now"], text: str) -> list[Candidate]:
        return [Candidate(name, name, (Form(self.counter.count(text), text=text),))] if text else []

    def _counted(self, turn: Turn) -> Turn:
        name = self.counter.name
        return turn if turn.counter == name else recounted(turn, self.counter.count, name)

    def _worded(self, turn: Turn, wording: Wording) -> Turn:
        """The turn with its placeholders in the language of the window, which may not be that of their time."""
        steps = [self._worded_step(step, wording) for step in turn.steps]
        if steps == [*turn.steps]:
            return turn
        added = sum(map(step_tokens, steps)) - sum(map(step_tokens, turn.steps))
        return replace(turn, steps=tuple(steps), tokens=turn.tokens + added)

    def _worded_step(self, step: Step, wording: Wording) -> Step:
        ours = step.page is not None and not step.whole
        if not ours and step.tool not in LOADING_TOOLS:
            return step
        text = reworded(step.result, wording)
        if text == step.result:
            return step
        return replace(step, result=text, result_tokens=self.counter.count(text))

    def _summary(self, request: WindowRequest) -> list[Candidate]:
        if (checkpoint := request.view.checkpoint) is None:
            return []
        size, wording = request.window_tokens, request.wording
        named = checkpoint.archive_refs, request.known_pages, self.counter.count
        pages = shown_pages(*named, size, wording)
        text, note = self._shown(checkpoint, pages, window_tokens=size, wording=wording)
        if self.counter.count(text) > size // SUMMARY_MOST_SHARE:
            # Made for a larger window: as much of it as one for this window would have.
            brief = fitting_sentences(checkpoint.summary, summary_tokens(size), self.counter.count)
            shorter = replace(checkpoint, summary=brief)
            text, note = self._shown(shorter, pages, window_tokens=size, wording=wording)
        form = Form(self.counter.count(text), text=text)
        covers = f"covers {checkpoint.covered_turns} turns up to {checkpoint.covered_through_seq}; {note}"
        return [Candidate(checkpoint.id, "summary", (form,), note=covers)]


def _rules(request: WindowRequest) -> WindowRules:
    return WindowRules(request.window_tokens, request.threshold, request.recent_turns)


def _note_losses(turns: Sequence[Turn], request: WindowRequest) -> None:
    for turn in turns:
        for step in turn.steps:
            if step.lost_chars:
                request.note(
                    f"the archive was down: {step.lost_chars} characters of a result of {step.tool!r} in turn {turn.id} are gone"
                )


def safety_text(profile: JsonObject | None, wording: Wording = ZH) -> str:
    """The safety data of a snapshot, one line per kind."""
    lines: list[str] = []
    for key, word in wording.safety.items():
        values = (profile or {}).get(key)
        if isinstance(values, Sequence) and not isinstance(values, str) and values:
            lines.append(f"{word}: " + wording.comma.join(escape(str(value)) for value in values))
    return "\n".join(lines)
