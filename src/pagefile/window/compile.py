"""Candidates and a budget in, a window and its receipt out: the one place that decides what a model sees.

The algorithm is greedy and follows the priorities. A candidate takes the fullest of its forms that fits what
is left. Candidates with a value (`window/value.py`) are packed by value per token instead, in a share of the window
that the others leave free, and in whatever else is left. Turns are taken from the newest backwards and stop at the first that does not fit, so that a
conversation never has gaps. If turns had to be left out, the oldest kept one advances in blocks of eight, so
that the beginning of the prompt stays the same for a while and prompt caches can use it.

This guarantees, and tests verify: never over budget; the same input gives the same bytes; a larger budget
never drops a candidate in favour of one of lower rank.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import cast

from pagefile.errors import BudgetError
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD
from pagefile.window import candidates as blocks
from pagefile.window import value
from pagefile.window.budget import SMALL_WINDOW, Budget, recall_room
from pagefile.window.candidates import REQUIRED, TURNS, Block, Candidate, Form, Message, ShownTurn, joined
from pagefile.window.measure import Count, media_tokens
from pagefile.window.parts import HEADINGS, Language, MemoryPart, Parts, Placement, chat, prefix_hash
from pagefile.window.receipt import Verdict
from pagefile.window.wording import WORDINGS

_position = attrgetter("position")
#: Turns leave the window in blocks of this size.
CUT_TURNS = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """How the kept candidates are assembled."""

    placement: Placement = "tail"
    language: Language = "en"


@dataclass(frozen=True, slots=True)
class Compiled:
    """The result of `compile_window`: the parts and their messages, exact tokens, and a verdict on every candidate."""

    parts: Parts
    messages: list[Message]
    tokens: int
    framing: int
    prefix_hash: str
    prefix_messages: int
    #: Tokens needed to keep every turn whole.
    wanted_tokens: int
    verdicts: tuple[Verdict, ...]

    def with_blobs(self, blobs: Mapping[str, bytes]) -> "Compiled":
        """The same window with the bytes of images and files in it."""
        parts = replace(self.parts, blobs=blobs)
        messages, prefix = chat(parts)
        return replace(self, parts=parts, messages=messages, prefix_hash=prefix_hash(messages[:prefix]))


@dataclass(slots=True)
class _Packing:
    """What is kept so far, and the reason for each candidate that is not."""

    budget: Budget
    count: Count
    #: Candidates that do not fit once the texts are joined.
    given_up: frozenset[str]
    left: int
    kept: dict[str, Form] = field(default_factory=dict[str, Form])
    reasons: dict[str, str] = field(default_factory=dict[str, str])
    spent: dict[Block, int] = field(default_factory=dict[Block, int])
    framed: set[str] = field(default_factory=set[str])

    def offer(self, candidate: Candidate) -> bool:
        """Take the fullest form that fits; False if none does."""
        if candidate.id in self.given_up:
            self.reasons[candidate.id] = "over budget"
            return False
        block = candidate.block
        if block in TURNS and block not in self.budget.caps:
            return self._take(candidate)
        frames = _FRAMES[block]
        # The first candidate of a shared message pays for the message, the tags, the note.
        frame = sum(_frame_cost(one, self.count) for one in frames if one not in self.framed) if frames else 0
        room = min(self.left - frame, self.unspent(block))
        heading = self._heading_tokens(candidate)
        for form in candidate.forms:
            if form.tokens + heading <= room:
                self.left -= form.tokens + frame + heading
                self.kept[candidate.id] = form
                if block in blocks.SHARED_CAPS and block not in self.framed:
                    shared = blocks.SHARED_CAPS[block]
                    self.spent[shared] = self.spent.get(shared, 0) + _frame_cost(block, self.count)
                self.framed.update(frames)
                if candidate.heading:
                    self.framed.add(_heading_key(candidate))
                self._spend(block, form.tokens + heading)
                return True
        whole_window = room == self.left - frame
        own = f"over its own budget of {self.budget.caps.get(block)} tokens"
        self.reasons[candidate.id] = "over budget" if whole_window else own
        return False

    def _take(self, candidate: Candidate) -> bool:
        """The same for a turn, which shares nothing with others: there are hundreds per window."""
        for form in candidate.forms:
            if form.tokens <= self.left:
                self.left -= form.tokens
                self.kept[candidate.id] = form
                return True
        self.reasons[candidate.id] = "over budget"
        return False

    def unspent(self, block: Block) -> int:
        """What is left of the limits of a block."""
        if not (capped := _caps(block, self.budget)):
            return self.left
        rooms = [self.budget.caps[one] - self.spent.get(one, 0) for one in capped]
        if block in blocks.SHARED_CAPS and block not in self.framed and len(rooms) > 1:
            rooms[-1] -= _frame_cost(block, self.count)
        return min(rooms)

    def _spend(self, block: Block, tokens: int) -> None:
        for one in _caps(block, self.budget):
            self.spent[one] = self.spent.get(one, 0) + tokens

    def upgrade(self, candidate: Candidate, kept: Form) -> None:
        """Replace a kept form by the fullest one that fits and is worth the difference."""
        room = min(self.left, self.unspent(candidate.block))
        for form in candidate.forms[:-1]:
            if (more := form.tokens - kept.tokens) <= room and value.worth_more(candidate, kept, form):
                self.left -= more
                self.kept[candidate.id] = form
                self._spend(candidate.block, more)
                return

    def _heading_tokens(self, candidate: Candidate) -> int:
        """The cost of a heading that no candidate has paid for yet."""
        if not candidate.heading or _heading_key(candidate) in self.framed:
            return 0
        return self.count(f"{candidate.heading}\n")


#: The shared messages and tags around a candidate of a block; none for one that has its own messages.
_FRAMES: dict[Block, tuple[str, ...]] = {
    **dict.fromkeys(blocks.PRIORITY, ()),
    **{block: ("memory", block) for block in blocks.MEMORY},
    **{block: ("system", block) for block in blocks.TAGGED},
    **dict.fromkeys(blocks.INSTRUCTIONS, ("system",)),
}


def _caps(block: Block, budget: Budget) -> list[Block]:
    """The blocks whose limits hold for a block: its own, and the one it shares."""
    shared = blocks.SHARED_CAPS.get(block)
    if shared is None:
        # The common case, with hundreds of turns per window.
        return [block] if block in budget.caps else []
    return [one for one in (block, shared) if one in budget.caps]


def _heading_key(candidate: Candidate) -> str:
    return f"{candidate.block} {candidate.heading}"


def _frame_cost(name: str, count: Count) -> int:
    if name == "system":
        return MESSAGE_OVERHEAD
    if name == "memory":
        longest = max(count(MemoryPart({"facts": ("",)}, tongue).text) for tongue in WORDINGS)
        return MESSAGE_OVERHEAD + longest
    headings = HEADINGS.get(cast("Block", name), {}).values()
    heading = max((count(f"\n{one}") for one in headings), default=0)
    return heading + count(f"\n\n<{name}>\n\n</{name}>")


def compile_window(
    candidates: Sequence[Candidate], budget: Budget, count: Count, layout: Layout | None = None
) -> Compiled:
    """The window for these candidates. Raises `BudgetError` if what must never be cut does not fit."""
    layout = layout or Layout()
    ordered = sorted(candidates, key=_keeping_order)
    given_up: frozenset[str] = frozenset()
    required = [candidate for candidate in ordered if candidate.block in REQUIRED]
    while True:
        packing = _Packing(budget, count, given_up, left=budget.tokens - REPLY_OVERHEAD)
        if not all(packing.offer(candidate) for candidate in required):
            raise BudgetError(_too_large(required, budget, count))
        _pack_steps(packing, [c for c in ordered if c.block == "steps"])
        rest = [c for c in ordered if c.block not in REQUIRED and c.block != "steps"]
        valued = value.by_value([c for c in rest if c.value is not None])
        reserve = _reserve(packing, valued)
        packing.left -= reserve
        _pack_staying(packing, [c for c in rest if c.stays])
        _pack_rest(packing, [c for c in rest if c.value is None])
        _cut_in_blocks(packing, [c for c in ordered if c.block in TURNS and not c.stays])
        packing.left += reserve
        left_out = [c for c in rest if c.block == "summary" and c.id not in packing.kept]
        # In a small window the summary may not use the reserve for what matches the question.
        if budget.tokens >= SMALL_WINDOW:
            # Nothing else in the window covers those turns: the summary comes before single memories.
            left_out = [summary for summary in left_out if not packing.offer(summary)]
        _pack_by_value(packing, valued)
        if reserve and packing.kept.keys().isdisjoint(one.id for one in valued):
            # Not one of them fits with its frame: what was reserved belongs to the conversation.
            given_up |= {one.id for one in valued}
            continue
        for summary in left_out:
            packing.offer(summary)
        compiled = _assemble(packing, ordered, layout)
        if compiled.tokens <= budget.tokens:
            return compiled
        # Joined texts cost more than their parts: drop the lowest in rank, and see what fits in its place.
        given_up |= _last_in_rank(packing, [*ordered, *valued], compiled.tokens)


def _keeping_order(candidate: Candidate) -> tuple[int, float]:
    newest_first = candidate.block in TURNS or candidate.block == "steps"
    return blocks.RANK[candidate.block], -candidate.position if newest_first else candidate.position


def _too_large(required: Iterable[Candidate], budget: Budget, count: Count) -> str:
    sizes: dict[Block, int] = {}
    media = 0
    for candidate in required:
        sizes[candidate.block] = sizes.get(candidate.block, 0) + candidate.tokens
        shown = candidate.forms[0].shown
        media += 0 if shown is None or shown.layout is None else media_tokens(shown.layout, count)
    parts = ", ".join(f"{block} {tokens}" for block, tokens in sizes.items())
    what, advice = f"{parts} tokens", "raise window_tokens or shorten it."
    if media:
        # Without its image a question would be a different one, so the image is not dropped.
        what = f"{what}, {media} of them for images and files"
        advice = "raise window_tokens, give smaller images or files, or shorten it."
    return f"What must never be cut ({what}) does not fit into {budget.says}: {advice}"


def _pack_steps(packing: _Packing, steps: Sequence[Candidate]) -> None:
    """Tool results of the running turn: the newest as full as half of the room allows, the others in their shortest form, and
    then as full as what is left allows."""
    admitted: list[Candidate] = []
    half = packing.left // 2
    for step in steps:
        forms = step.forms[-1:] if admitted else [form for form in step.forms if form.tokens <= half]
        if not packing.offer(step._replace(forms=tuple(forms) or step.forms[-1:])):
            break
        admitted.append(step)
    for step in steps[len(admitted) :]:
        packing.reasons[step.id] = "over budget"
    for step in admitted:
        _unfold(packing, step)


def _unfold(packing: _Packing, kept: Candidate) -> None:
    """Show a kept candidate as full as what is left allows."""
    extra = packing.left + packing.kept[kept.id].tokens
    if (fuller := next((form for form in kept.forms if form.tokens <= extra), None)) is not None:
        packing.left = extra - fuller.tokens
        packing.kept[kept.id] = fuller


def _reserve(packing: _Packing, valued: Sequence[Candidate]) -> int:
    """The tokens reserved for candidates with a value: what those ask for that turns may leave for, up to their share.

    It depends on nothing that is kept, so that a larger window never holds less of the conversation.
    """
    budget = packing.budget
    room = min(packing.left, recall_room(budget.tokens, budget.max_share))
    price = value.PRICE if budget.tokens < SMALL_WINDOW else value.PRICE_OF_TURNS
    wanted = [c for c in valued if value.shortest_is_worth(c, price) and c.id not in packing.given_up]
    names = {name for c in wanted for name in _FRAMES[c.block]} - packing.framed
    frames = sum(_frame_cost(name, packing.count) for name in names)
    headings = {_heading_key(c): c.heading for c in wanted if c.heading}
    tokens: dict[Block, int] = {}
    for one in wanted:
        tokens[one.block] = tokens.get(one.block, 0) + one.forms[-1].tokens
    # More than its own limit a block cannot take.
    needs = frames + sum([min(asked, packing.unspent(block)) for block, asked in tokens.items()])
    needs += sum([packing.count(f"{heading}\n") for heading in headings.values()])
    return max(0, min(needs, room)) if room > frames else 0


def _pack_by_value(packing: _Packing, valued: Sequence[Candidate]) -> None:
    """The most per token first, in the shortest form; then, with the room that is left, what a fuller form is worth."""
    for candidate in valued:
        if not candidate.forms:
            packing.reasons[candidate.id] = "over budget" if candidate.unread_tokens else "only mentioned"
        elif not value.shortest_is_worth(candidate):
            packing.reasons[candidate.id] = (
                f"not worth its tokens: {value.explained(candidate, candidate.forms[-1].tokens)}"
            )
        else:
            packing.offer(candidate._replace(forms=candidate.forms[-1:]))
    for candidate in valued:
        if (kept := packing.kept.get(candidate.id)) is not None:
            packing.upgrade(candidate, kept)


def _pack_staying(packing: _Packing, turns: Iterable[Candidate]) -> None:
    """Turns that nothing else would bring back, the newest first, in up to half of the room; the others are turns like any other."""
    half = packing.left // 2
    for turn in turns:
        if packing.left - min(form.tokens for form in turn.forms) >= half:
            packing.offer(turn._replace(forms=turn.forms[-1:]))


def _pack_rest(packing: _Packing, rest: Iterable[Candidate]) -> None:
    turns_ended = False
    for candidate in rest:
        if not candidate.forms:
            packing.reasons[candidate.id] = "not read: older than what fits"
        elif candidate.id in packing.kept:
            _unfold(packing, candidate)
        elif candidate.block not in TURNS:
            packing.offer(candidate)
        elif turns_ended:
            packing.reasons[candidate.id] = "behind a newer turn that did not fit"
        else:
            turns_ended = not packing.offer(candidate)


def _cut_in_blocks(packing: _Packing, turns: Sequence[Candidate]) -> None:
    """Move the beginning of the history to a multiple of eight, once something had to be left out."""
    if all(turn.id in packing.kept for turn in turns):
        return
    kept = sorted((turn for turn in turns if turn.id in packing.kept), key=_position)
    for turn in kept:
        if turn.block != "older" or turn.position % CUT_TURNS == 0:
            return
        packing.left += packing.kept.pop(turn.id).tokens
        packing.reasons[turn.id] = (
            f"cut in blocks of {CUT_TURNS} turns, so that the prompt's beginning stays the same"
        )


def _last_in_rank(packing: _Packing, ordered: Sequence[Candidate], tokens: int) -> set[str]:
    """The lowest-ranked kept candidates whose tokens make up the excess."""
    excess, last = tokens - packing.budget.tokens, set[str]()
    for candidate in reversed(ordered):
        fits = candidate.id not in packing.kept or candidate.id in last or candidate.block in REQUIRED
        if excess > 0 and not fits:
            last.add(candidate.id)
            excess -= packing.kept[candidate.id].tokens
    if not last:
        raise BudgetError(
            f"instructions and the current message need {tokens} tokens, and there is {packing.budget.says}: "
            "raise window_tokens or shorten them."
        )
    return last


def _assemble(packing: _Packing, ordered: Sequence[Candidate], layout: Layout) -> Compiled:
    kept = [candidate for candidate in ordered if candidate.id in packing.kept]
    parts = _parts(packing, kept, layout)
    messages, prefix = chat(parts)
    shared = sum(MESSAGE_OVERHEAD + packing.count(text) for text in (parts.system, parts.beside) if text)
    own = sum([packing.kept[c.id].tokens for c in kept if not _FRAMES[c.block]])
    texts = sum([packing.kept[c.id].tokens for c in kept if _FRAMES[c.block]])
    tokens = REPLY_OVERHEAD + shared + own
    turns = [candidate for candidate in ordered if candidate.block in TURNS]
    turns_kept = sum([packing.kept[turn.id].tokens for turn in turns if turn.id in packing.kept])
    return Compiled(
        parts=parts,
        messages=messages,
        tokens=tokens,
        framing=tokens - own - texts,
        prefix_hash=prefix_hash(messages[:prefix]),
        prefix_messages=prefix,
        wanted_tokens=tokens + sum([turn.tokens for turn in turns]) - turns_kept,
        verdicts=tuple([_verdict(packing, candidate) for candidate in ordered]),
    )


def _parts(packing: _Packing, kept: Sequence[Candidate], layout: Layout) -> Parts:
    texts: dict[Block, list[str]] = {}
    headed: set[str] = set()
    for candidate in kept:
        if _FRAMES[candidate.block]:
            text = packing.kept[candidate.id].text
            if candidate.heading and (key := _heading_key(candidate)) not in headed:
                headed.add(key)
                text = f"{candidate.heading}\n{text}"
            texts.setdefault(candidate.block, []).append(text)
    running = _shown(packing, [c for c in kept if c.block in blocks.RUNNING])
    return Parts(
        instructions="\n\n".join(texts.get("instructions", ())),
        guide="\n\n".join(texts.get("guide", ())),
        profile="\n".join(texts.get("safety", ())),
        summary="\n".join(texts.get("summary", ())),
        today="\n".join(texts.get("today", ())),
        turns=tuple(_shown(packing, [c for c in kept if c.block in TURNS])),
        memory=MemoryPart({b: tuple(texts[b]) for b in blocks.MEMORY if b in texts}, layout.language),
        current=joined(running) if running else None,
        placement=layout.placement,
    )


def _shown(packing: _Packing, wanted: list[Candidate]) -> list[ShownTurn]:
    wanted.sort(key=_position)
    return [shown for candidate in wanted if (shown := packing.kept[candidate.id].shown) is not None]


def _verdict(packing: _Packing, candidate: Candidate) -> Verdict:
    form = packing.kept.get(candidate.id)
    name, tokens = (None, candidate.tokens) if form is None else (form.name, form.tokens)
    if form is None:
        reason = packing.reasons[candidate.id]
    elif candidate.block in REQUIRED:
        reason = "never cut"
    else:
        reason = "fits" if form is candidate.forms[0] else f"fits as {name}"
        if candidate.value is not None:
            reason = f"{reason}, {value.explained(candidate, tokens)}"
    # Positional: there is one per turn, and keywords would take twice as long.
    return Verdict(
        candidate.id, candidate.block, form is not None, name, tokens, reason, candidate.score, candidate.note
    )
