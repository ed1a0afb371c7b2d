"""Candidates and a budget in, a window and its receipt out: the one place that decides what a model sees.

The algorithm is greedy and follows the priorities. A candidate takes the fullest of its forms that fits what
is left. Turns are taken from the newest backwards and stop at the first that does not fit, so that a
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
from pagefile.window.budget import Budget
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
        frames = _FRAMES[block]
        # The first candidate of a shared message pays for the message, the tags, the note.
        frame = sum(_frame_cost(one, self.count) for one in frames if one not in self.framed) if frames else 0
        cap = self.budget.caps.get(block)
        room = self.left - frame
        if cap is not None:
            room = min(room, cap - self.spent.get(block, 0))
        for form in candidate.forms:
            if form.tokens <= room:
                self.left -= form.tokens + frame
                self.kept[candidate.id] = form
                self.framed.update(frames)
                if cap is not None:
                    self.spent[block] = self.spent.get(block, 0) + form.tokens
                return True
        whole_window = cap is None or room == self.left - frame
        self.reasons[candidate.id] = "over budget" if whole_window else f"over its own budget of {cap} tokens"
        return False


#: The shared messages and tags around a candidate of a block; none for one that has its own messages.
_FRAMES: dict[Block, tuple[str, ...]] = {
    **dict.fromkeys(blocks.PRIORITY, ()),
    **{block: ("memory", block) for block in blocks.MEMORY},
    **{block: ("system", block) for block in blocks.TAGGED},
    **dict.fromkeys(blocks.INSTRUCTIONS, ("system",)),
}


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
        _pack_rest(packing, [c for c in ordered if c.block not in REQUIRED and c.block != "steps"])
        _cut_in_blocks(packing, [c for c in ordered if c.block in TURNS])
        compiled = _assemble(packing, ordered, layout)
        if compiled.tokens <= budget.tokens:
            return compiled
        # Joined texts cost more than their parts: drop the lowest in rank, and see what fits in its place.
        given_up |= {_last_in_rank(packing, ordered, compiled.tokens)}


def _keeping_order(candidate: Candidate) -> tuple[int, int]:
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
        extra = packing.left + packing.kept[step.id].tokens
        if (fuller := next((form for form in step.forms if form.tokens <= extra), None)) is not None:
            packing.left = extra - fuller.tokens
            packing.kept[step.id] = fuller


def _pack_rest(packing: _Packing, rest: Iterable[Candidate]) -> None:
    turns_ended = False
    for candidate in rest:
        if not candidate.forms:
            packing.reasons[candidate.id] = "not read: older than what fits"
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


def _last_in_rank(packing: _Packing, ordered: Sequence[Candidate], tokens: int) -> str:
    last = next((c for c in reversed(ordered) if c.id in packing.kept and c.block not in REQUIRED), None)
    if last is None:
        raise BudgetError(
            f"instructions and the current message need {tokens} tokens, and there is {packing.budget.says}: "
            "raise window_tokens or shorten them."
        )
    return last.id


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
    for candidate in kept:
        if _FRAMES[candidate.block]:
            texts.setdefault(candidate.block, []).append(packing.kept[candidate.id].text)
    running = _shown(packing, [c for c in kept if c.block in blocks.RUNNING])
    return Parts(
        instructions="\n\n".join(texts.get("instructions", ())),
        guide="\n\n".join(texts.get("guide", ())),
        profile="\n".join(texts.get("safety", ())),
        summary="\n".join(texts.get("summary", ())),
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
    # Positional: there is one per turn, and keywords would take twice as long.
    return Verdict(
        candidate.id, candidate.block, form is not None, name, tokens, reason, candidate.score, candidate.note
    )
