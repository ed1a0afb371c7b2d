"""How turns and checkpoints can be shown in a window, from the fullest form to the shortest."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, takewhile, zip_longest
from typing import Any, NamedTuple

from pagefile.content import Media, Message, media_in, with_media
from pagefile.content import Text as Said
from pagefile.records import Checkpoint, Page, Step, Turn
from pagefile.shapes.call_order import calls_of, prepared
from pagefile.shapes.media import named
from pagefile.shapes.steps import ShownStep, shown_steps
from pagefile.shapes.tool_arguments import with_values
from pagefile.text.corrections import Statement, overruled
from pagefile.text.extract import says_anchors
from pagefile.text.sentences import sentences
from pagefile.text.tokens import MESSAGE_OVERHEAD
from pagefile.window.candidates import Candidate, Form, ShownTurn, shown_turn, slim_turn
from pagefile.window.measure import Count, layout_tokens, measured_call, media_tokens, side_tokens
from pagefile.window.named_calls import with_named
from pagefile.window.parts import escape
from pagefile.window.placeholder import (
    ABOUT_SHOWN,
    ABOUT_TIGHT,
    LOAD_TOOL,
    SEARCH_TOOL,
    answer_note,
    described,
    step_note,
)
from pagefile.window.wording import ZH, Wording

_NOTHING: Mapping[int, Any] = {}
_NOTHING_KNOWN: Mapping[str, Page] = {}
#: Limits for anchors beside a summary, newest first: tokens, and the window divided by this.
ANCHOR_TOKENS, ANCHOR_SHARE = 300, 16
#: Limits for the pages named beside a summary, newest first: tokens, the window divided by this, and their number.
PAGES_TOKENS, PAGES_SHARE = 2000, 8
#: The tokens of a line that names a page, about.
PAGE_LINE_TOKENS = 60
MOST_NAMED = 200


class Text(NamedTuple):
    """An alternative text for a result, and its tokens."""

    name: str
    text: str
    tokens: int


@dataclass(slots=True)
class Leaving:
    """Which results left a window."""

    #: What remains of them, by turn and index of the step.
    remains: dict[tuple[str, int], Text]
    #: What remains of large values in the arguments of calls, by the same key and JSON pointer.
    inputs: dict[tuple[str, int], dict[str, str]] = field(
        default_factory=dict[tuple[str, int], dict[str, str]]
    )
    #: What remains of long messages of the agent, by turn and index of the message.
    speech: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    #: The calls that are only named, by turn and index of the step, with the lines in their place; "" where there is not even one.
    named: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    #: Why, by the same keys; a message has the complement of its index (~0 is the first).
    reasons: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    #: Tokens of results that are shown and could leave, too.
    pageable_tokens: int = 0
    #: Whether results will probably leave soon.
    is_filling: bool = False

    def shortened(self, turn: Turn, count: Count, wording: Wording) -> Turn:
        """The turn with what remains of its calls, of their arguments, and of long messages of the agent."""
        turn = self._without_inputs(self._without_speech(turn, count), count)
        named = {n: self.named[turn.id, n] for n in range(len(turn.steps)) if (turn.id, n) in self.named}
        if not named:
            return turn
        missing = sum(not line for line in named.values())
        more = [wording.more_pages.format(count=missing)] if missing else []
        return with_named(turn, named, [wording.named, *more], count)

    def _without_inputs(self, turn: Turn, count: Count) -> Turn:
        if not self.inputs or not any((turn.id, n) in self.inputs for n in range(len(turn.steps))):
            return turn
        steps = tuple(
            measured_call(step, with_values(step.input, self.inputs[turn.id, n]), count)
            if (turn.id, n) in self.inputs
            else step
            for n, step in enumerate(turn.steps)
        )
        saved = sum(a.call_tokens - b.call_tokens for a, b in zip(turn.steps, steps, strict=True))
        return replace(turn, steps=steps, tokens=turn.tokens - saved)

    def _without_speech(self, turn: Turn, count: Count) -> Turn:
        numbers = [n for n in range(len(turn.layout or ())) if (turn.id, n) in self.speech]
        if turn.layout is None or not numbers:
            return turn
        layout, saved = list(turn.layout), 0
        for n in numbers:
            message, note = layout[n], Said(self.speech[turn.id, n])
            saved += count(message.text) - count(note.text)
            kept = (note, *(part for part in message.parts if not isinstance(part, Said)))
            # How it was given names its parts by number.
            layout[n] = replace(message, parts=kept, given=None)
        return replace(turn, layout=tuple(layout), tokens=turn.tokens - saved)

    @property
    def rewrites(self) -> bool:
        """Whether turns themselves read otherwise than they were written, and not only their results."""
        return bool(self.inputs or self.speech or self.named)

    def note(self, turn_id: str, steps: Iterable[int]) -> str:
        """Why results of these steps left, or messages, for the receipt."""
        found = [self.reasons[turn_id, n] for n in steps if (turn_id, n) in self.reasons]
        return "; ".join(dict.fromkeys(found))


def turn_forms(
    turn: Turn,
    pages: Mapping[tuple[str, int], Sequence[Text]],
    paged_out: Mapping[tuple[str, int], Text],
    count: Count,
    wording: Wording = ZH,
    known: Mapping[str, Page] = _NOTHING_KNOWN,
) -> tuple[Form, ...]:
    """A done turn: with loaded pages, placeholders, one-line notes, or without its tools; media shown, or only named.

    `paged_out` is what remains of results that left. What our own tools found was meant for that turn: afterwards
    only the placeholders remain.
    """
    if not turn.steps:
        if turn.layout is None:
            return (plain_form(turn),)
        return with_media_named([_with_results(turn, _NOTHING, "full", count)], count)
    notes = {n: note for n, step in enumerate(turn.steps) if (note := note_of(step, count, wording, known))}
    gone = {n for n, step in enumerate(turn.steps) if not step.whole and _is_purged(step, known)}
    resting = {n: note for n, note in notes.items() if n in gone or not turn.steps[n].page}
    left = {n: paged_out[turn.id, n] for n in notes if (turn.id, n) in paged_out}
    resting |= left
    notes |= {n: text for n, text in left.items() if text.tokens < notes[n].tokens}
    shown_again = [n for n in range(len(turn.steps)) if (turn.id, n) in pages]
    back = [[(n, text) for text in pages[turn.id, n]] for n in shown_again]
    # The first form shows every page at its fullest, the next one at its second fullest, and so on.
    forms: list[Form] = []
    for shown in zip_longest(*back):
        name = shown[0][1].name if shown[0] else "loaded"
        forms.append(_with_results(turn, {**resting, **dict(filter(None, shown))}, name, count))
    forms.append(_with_results(turn, resting, "paged out" if resting else "full", count))
    if notes:
        forms.append(_with_results(turn, notes, "notes", count))
    forms.append(_slim(turn, count))
    return with_media_named(forms, count)


def plain_form(turn: Turn) -> Form:
    """The only form of a turn that has neither steps nor parts."""
    return Form(turn.tokens, ShownTurn(turn.id, "full", turn.user, turn.assistant))


def with_media_named(forms: Iterable[Form], count: Count) -> tuple[Form, ...]:
    """The forms from the fullest to the shortest; if it saves tokens, each also with its images and files only named."""
    found: list[Form] = []
    for form in forms:
        found.append(form)
        short = media_named(form, count)
        if short.tokens < form.tokens and (shown := short.shown) is not None:
            name = f"{form.name}, media named"
            shown = shown._replace(form=name if shown.form == form.name else shown.form)
            found.append(short._replace(name=name, shown=shown))
    return tuple(sorted(found, key=lambda form: -form.tokens))


def media_named(form: Form, count: Count, blobs: Container[str | None] | None = None) -> Form:
    """The form with its images and files named instead of shown; with `blobs`, only those whose bytes are among them."""
    shown = form.shown
    if shown is None or shown.layout is None or not any(media_in(shown.layout)):
        return form

    def change(media: Media) -> Media:
        return named(media) if blobs is None or media.blob in blobs else media

    layout = with_media(shown.layout, change)
    saved = media_tokens(shown.layout, count) - media_tokens(layout, count)
    return form._replace(tokens=form.tokens - saved, shown=shown._replace(layout=layout))


def _with_results(turn: Turn, results: Mapping[int, Text], name: str, count: Count) -> Form:
    shown = shown_turn(turn, name, {n: text.text for n, text in results.items()} if results else _NOTHING)
    if shown.layout is not None:
        costs = {n: (step.call_tokens, step.result_tokens) for n, step in enumerate(turn.steps)}
        costs |= {n: (turn.steps[n].call_tokens, text.tokens) for n, text in results.items()}
        return Form(layout_tokens(shown.layout, costs, count), shown, name=name)
    saved = sum([turn.steps[n].result_tokens - text.tokens for n, text in results.items()])
    return Form(turn.tokens - saved, shown, name=name)


def _slim(turn: Turn, count: Count) -> Form:
    shown = slim_turn(turn)
    if shown.layout is not None:
        return Form(layout_tokens(shown.layout, {}, count), shown, name="slim")
    sides = side_tokens(turn.user, turn.user_tokens) + side_tokens(turn.assistant, turn.assistant_tokens)
    return Form(sides, shown, name="slim")


def _is_purged(step: Step, known: Mapping[str, Page]) -> bool:
    """Whether the text that a placeholder invites to load is gone."""
    page = known.get(step.page or "")
    return page is not None and page.purged is not None


def note_of(
    step: Step, count: Count, wording: Wording, known: Mapping[str, Page] = _NOTHING_KNOWN
) -> Text | None:
    """The shortest text for a result that leads back to all of it; None if there is only the result itself."""
    if step.page:
        text = step_note(step, wording, known.get(step.page))
    elif step.tool in {LOAD_TOOL, SEARCH_TOOL}:
        text = answer_note(step)
        if len(text) >= len(step.result):
            return None
    else:
        return None
    return Text("note", text, count(text))


# -- checkpoints --------------------------------------------------------------------------------------------------------


def shown_summary(
    checkpoint: Checkpoint, pages: str, count: Count, window_tokens: int, wording: Wording = ZH
) -> tuple[str, str]:
    """The summary, then what it does not say itself, its pages last; and a note on what became of the anchors."""
    missing = [anchor for anchor in checkpoint.anchors if not says_anchors(checkpoint.summary, anchor)]
    # The newest within their budget, in the order in which they were said.
    room = min(ANCHOR_TOKENS, window_tokens // ANCHOR_SHARE)
    spent = accumulate(count(anchor) + 1 for anchor in reversed(missing))
    fitting = sum(1 for _ in takewhile(lambda tokens: tokens <= room, spent))
    beside = _current(missing[len(missing) - fitting :], checkpoint.summary)
    lines = [wording.so_far + escape(checkpoint.summary)]
    if beside:
        lines.append(wording.anchors + escape(wording.semicolon.join(beside)))
    if pages:
        lines.append(pages)
    total = len(checkpoint.anchors)
    survive = total - len(missing) + len(beside)
    note = f"{survive} of {total} anchors survive, {len(beside)} of them beside the summary"
    return "\n".join(lines), note


def summary_most(checkpoint: Checkpoint | None, window_tokens: int) -> int:
    """The most tokens that a summary takes, with what is beside it."""
    if checkpoint is None:
        return 0
    anchors = min(ANCHOR_TOKENS, window_tokens // ANCHOR_SHARE) if checkpoint.anchors else 0
    named = PAGE_LINE_TOKENS * len(checkpoint.archive_refs)
    return checkpoint.tokens + anchors + min(named, PAGES_TOKENS, window_tokens // PAGES_SHARE)


def _current(anchors: Sequence[str], summary: str) -> list[str]:
    """The anchors that neither a later one nor the summary supersedes."""
    later = sentences(summary)
    said = [Statement(text.strip(), turn) for turn, text in enumerate([*anchors, *later])]
    gone = overruled(said)
    return [anchor for at, anchor in enumerate(anchors) if at not in gone]


def shown_pages(
    refs: Sequence[str], known: Mapping[str, Page], count: Count, window_tokens: int, wording: Wording = ZH
) -> str:
    """The pages of a summary, newest first: which is which, as many as fit, and how the others are found."""
    living = [uuid for uuid in reversed(refs) if uuid not in known or not known[uuid].purged]
    if not living:
        return ""
    pages = [known[uuid] for uuid in living if uuid in known]
    room = min(PAGES_TOKENS, window_tokens // PAGES_SHARE)
    lines: list[str] = []
    for size in (ABOUT_SHOWN, ABOUT_TIGHT):
        lines = [f"- {page.uuid} {escape(described(page, size))}" for page in pages]
        spent = accumulate(count(line) + 1 for line in lines)
        fitting = sum(1 for _ in takewhile(lambda tokens: tokens <= room, spent))
        if fitting == len(lines):
            break
    else:
        lines = lines[:fitting]
    others = len(living) - len(lines)
    more = [wording.more_pages.format(count=others)] if others else []
    return "\n".join([wording.pages, *lines, *more])


# -- the running turn in its own window --------------------------------------------------------------------------------
#
# Speech is never cut; calls and their results stay or go together.


def running_turn(
    turn: Turn,
    texts: Mapping[int, Sequence[Text]],
    leaving: Leaving,
    count: Count,
    wording: Wording = ZH,
    known: Mapping[str, Page] = _NOTHING_KNOWN,
) -> list[Candidate]:
    """A running turn as candidates of its own window: what was said, and each exchange of calls with their results.

    `texts` are those of loaded pages, by index of the step; `leaving` has what remains of results that left.
    """
    shown = shown_steps(turn.steps, {})
    choices: dict[int, list[Text]] = {}
    for n, step in enumerate(turn.steps):
        result = Text("full" if step.whole else "placeholder", step.result, step.result_tokens)
        remains = leaving.remains.get((turn.id, n))
        shown_texts = [*texts.get(n, ())] if remains is None else [remains]
        # Only what is shorter: of a page that is mostly base64, what can be read may be shorter than what leads back to it.
        for shorter in (result if remains is None else None, note_of(step, count, wording, known)):
            if shorter and all(shorter.tokens < text.tokens for text in shown_texts):
                shown_texts.append(shorter)
        choices[n] = sorted(shown_texts, key=lambda text: -text.tokens)
    if turn.layout is None:
        said = Form(side_tokens(turn.user, turn.user_tokens), ShownTurn(turn.id, "current", turn.user))
        question = [Candidate(turn.id, "current", (said,))] if turn.user else []
        forms = {n: _exchange_forms(turn, None, shown, {n: these}, count) for n, these in choices.items()}
        notes = {n: leaving.note(turn.id, [n]) for n in forms}
        steps = [Candidate(f"{turn.id}/step/{n}", "steps", forms[n], n, note=notes[n]) for n in forms]
        return [*question, *steps]
    candidates: list[Candidate] = []
    named = (n for turn_id, n in leaving.named if turn_id == turn.id)
    told = leaving.note(turn.id, [*range(-len(turn.layout), 0), *named])
    at = 0
    for messages in _stretches(turn.layout):
        calls = sorted(step for message in messages for step in calls_of(message))
        if calls:
            forms = _exchange_forms(turn, messages, shown, {n: choices[n] for n in calls}, count)
            note = leaving.note(turn.id, calls)
            candidates.append(Candidate(f"{turn.id}/step/{calls[0]}", "steps", forms, at, note=note))
        else:
            name = f"{turn.id}/message/{at}" if at else turn.id
            tokens = layout_tokens(messages, {}, count, running=True)
            said = Form(tokens, ShownTurn(turn.id, "current", turn.user, layout=messages))
            candidates.append(Candidate(name, "current", (said,), at, note="" if at else told))
        at += len(messages)
    return candidates


def _stretches(layout: tuple[Message, ...]) -> list[tuple[Message, ...]]:
    """The messages that are shown or left out together: a new stretch starts when the speaker changes, and after results."""
    groups: list[list[Message]] = []
    before = ""
    for message in prepared(layout):
        if (before, message.role) in {("assistant", "assistant"), ("assistant", "tool"), ("tool", "tool")}:
            groups[-1].append(message)
        else:
            groups.append([message])
        before = message.role
    return [tuple(group) for group in groups]


def _exchange_forms(
    turn: Turn,
    messages: tuple[Message, ...] | None,
    shown: Mapping[int, ShownStep],
    choices: Mapping[int, Sequence[Text]],
    count: Count,
) -> tuple[Form, ...]:
    """An exchange of the running turn, from every result at its fullest to the shortest; media shown, or only named.

    Without messages it is one step of a turn in the short form.
    """
    forms: list[Form] = []
    for level in range(max(map(len, choices.values()))):
        texts = {n: these[min(level, len(these) - 1)] for n, these in choices.items()}
        name = next(texts[n].name for n, these in choices.items() if level < len(these))
        steps = {n: shown[n]._replace(result=text.text) for n, text in texts.items()}
        costs = {n: (turn.steps[n].call_tokens, text.tokens) for n, text in texts.items()}
        if messages is None:
            user, tokens = None, sum(2 * MESSAGE_OVERHEAD + call + result for call, result in costs.values())
        else:
            user, tokens = turn.user, layout_tokens(messages, costs, count, running=True)
        form = ShownTurn(turn.id, "current", user, steps=steps, layout=messages)
        forms.append(Form(tokens, form, name=name))
    return tuple(forms) if messages is None else with_media_named(forms, count)
