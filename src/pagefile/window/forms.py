"""The forms in which a turn or a tool result can stand in a window, from the fullest to the shortest."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import zip_longest

from pagefile.records import Step, Turn
from pagefile.text.tokens import MESSAGE_OVERHEAD
from pagefile.window.candidates import Form
from pagefile.window.measure import side_tokens, step_tokens
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL, answer_note, step_note
from pagefile.window.render import step_messages, turn_messages
from pagefile.window.wording import ZH, Wording

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Text:
    """Another text for a result, and its tokens."""

    name: str
    text: str
    tokens: int


def turn_forms(
    turn: Turn,
    pages: Mapping[tuple[str, int], Sequence[Text]],
    demoted: AbstractSet[int],
    count: Count,
    wording: Wording = ZH,
) -> tuple[Form, ...]:
    """A done turn: with the pages that are back, with placeholders, with one-line notes, without its tools.

    What our own tools found for it was for that turn: of it only the placeholders are left.
    """
    if not turn.steps:
        return (Form(turn.tokens, turn_messages(turn)),)
    notes = {n: note for n, step in enumerate(turn.steps) if (note := _note(step, count, wording))}
    resting = {n: note for n, note in notes.items() if n in demoted or not turn.steps[n].page}
    back = [
        [(n, text) for text in pages[turn.id, n]] for n in range(len(turn.steps)) if (turn.id, n) in pages
    ]
    # The first form shows every page at its fullest, the next one at its second, and so on.
    forms = [
        _with_results(
            turn,
            {**resting, **dict(pair for pair in shown if pair)},
            shown[0][1].name if shown[0] else "loaded",
        )
        for shown in zip_longest(*back)
    ]
    forms.append(_with_results(turn, resting, "demoted" if resting else "full"))
    if notes:
        forms.append(_with_results(turn, notes, "notes"))
    slim = side_tokens(turn.user, turn.user_tokens) + side_tokens(turn.assistant, turn.assistant_tokens)
    forms.append(Form(slim, turn_messages(turn, steps=False), name="slim"))
    return tuple(sorted(forms, key=lambda form: -form.tokens))


def step_forms(
    step: Step, texts: Sequence[Text], count: Count, wording: Wording = ZH, *, demoted: bool = False
) -> tuple[Form, ...]:
    """A step of the running turn: its page as it is back, its placeholder, a one-line note; only these if demoted."""
    frame = 2 * MESSAGE_OVERHEAD + step.call_tokens
    shown = () if demoted else texts
    forms = [Form(frame + text.tokens, step_messages(step, text.text), name=text.name) for text in shown]
    if not (demoted and step.whole):
        forms.append(
            Form(step_tokens(step), step_messages(step), name="full" if step.whole else "placeholder")
        )
    note = _note(step, count, wording)
    if note:
        forms.append(Form(frame + note.tokens, step_messages(step, note.text), name="note"))
    return tuple(sorted(forms, key=lambda form: -form.tokens))


def _note(step: Step, count: Count, wording: Wording) -> Text | None:
    """The shortest text for a result that leads back to all of it; None when there is none but the result."""
    if step.page:
        text = step_note(step, wording)
    elif step.tool in {LOAD_TOOL, SEARCH_TOOL}:
        text = answer_note(step)
        if len(text) >= len(step.result):
            return None
    else:
        return None
    return Text("note", text, count(text))


def _with_results(turn: Turn, results: Mapping[int, Text], name: str) -> Form:
    saved = sum(turn.steps[n].result_tokens - text.tokens for n, text in results.items())
    messages = turn_messages(turn, results={n: text.text for n, text in results.items()})
    return Form(turn.tokens - saved, messages, name=name)
