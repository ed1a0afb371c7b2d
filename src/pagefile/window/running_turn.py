"""The running turn in its own window: speech is never cut; calls and their results stay or go together."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby

from pagefile.content import Message
from pagefile.records import Step, Turn
from pagefile.shapes import ShownStep, calls_of, prepared, shown_steps
from pagefile.text.tokens import MESSAGE_OVERHEAD
from pagefile.window.candidates import Candidate, Form
from pagefile.window.forms import Text, note_of, with_media_named
from pagefile.window.measure import Count, layout_tokens, side_tokens
from pagefile.window.shown import ShownTurn
from pagefile.window.wording import ZH, Wording


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages of a running turn that are shown or left out together."""

    #: Its position among the messages.
    at: int
    messages: tuple[Message, ...]
    #: The steps called and answered in it; empty for plain messages.
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RunningStep:
    """A step of the running turn, and the texts of its page that can be shown for it."""

    step: Step
    shown: ShownStep
    texts: Sequence[Text] = ()
    #: Whether its result gives way to newer ones.
    demoted: bool = False

    def choices(self, count: Count, wording: Wording) -> list[Text]:
        """The texts that can be shown for the result, from the fullest to the shortest."""
        step = self.step
        found = [] if self.demoted else list(self.texts)
        if not (self.demoted and step.whole):
            found.append(Text("full" if step.whole else "placeholder", step.result, step.result_tokens))
        note = note_of(step, count, wording)
        if note:
            found.append(note)
        return sorted(found, key=lambda text: -text.tokens)


def running_turn(
    turn: Turn,
    texts: Mapping[int, Sequence[Text]],
    demoted: AbstractSet[int],
    count: Count,
    wording: Wording = ZH,
) -> list[Candidate]:
    """A running turn as candidates of its own window: what was said, and each exchange of calls with their results.

    `texts` are those of loaded pages, by index of the step; results of steps in `demoted` give way to newer
    ones.
    """
    steps = {
        number: RunningStep(turn.steps[number], shown, texts.get(number, ()), demoted=number in demoted)
        for number, shown in shown_steps(turn.steps, {}).items()
    }
    if turn.layout is not None:
        return [_candidate(turn, stretch, steps, count, wording) for stretch in stretches(turn.layout)]
    said = Form(side_tokens(turn.user, turn.user_tokens), ShownTurn(turn.id, "current", turn.user))
    found = [Candidate(turn.id, "current", (said,))] if turn.user else []
    for number, step in steps.items():
        forms = exchange_forms(turn, None, {number: step}, count, wording)
        found.append(Candidate(f"{turn.id}/step/{number}", "steps", forms, number))
    return found


def _candidate(
    turn: Turn, stretch: Stretch, steps: Mapping[int, RunningStep], count: Count, wording: Wording
) -> Candidate:
    if not stretch.steps:
        name = f"{turn.id}/message/{stretch.at}" if stretch.at else turn.id
        return Candidate(name, "current", (said_form(turn, stretch, count),), stretch.at)
    held = {number: steps[number] for number in stretch.steps}
    forms = exchange_forms(turn, stretch, held, count, wording)
    return Candidate(f"{turn.id}/step/{stretch.steps[0]}", "steps", forms, stretch.at)


def stretches(layout: tuple[Message, ...]) -> list[Stretch]:
    """A layout in order: what was said, and exchanges of calls with their results."""
    found: list[Stretch] = []
    at = 0
    for _, group in groupby(_numbered(prepared(layout)), key=lambda pair: pair[0]):
        messages = tuple(message for _, message in group)
        steps = sorted(step for message in messages for step in calls_of(message))
        found.append(Stretch(at, messages, tuple(steps)))
        at += len(messages)
    return found


def _numbered(layout: Sequence[Message]) -> Iterator[tuple[int, Message]]:
    """Each message with the number of its stretch: a new one starts when the speaker changes, and after results."""
    number, before = 0, ""
    for message in layout:
        who = "model" if message.role == "assistant" else "results" if message.role == "tool" else "said"
        joined = (before, who) in {("model", "model"), ("model", "results"), ("results", "results")}
        number += not joined
        before = who
        yield number, message


def said_form(turn: Turn, stretch: Stretch, count: Count) -> Form:
    """Plain messages of the running turn."""
    tokens = layout_tokens(stretch.messages, {}, count, running=True)
    return Form(tokens, ShownTurn(turn.id, "current", turn.user, layout=stretch.messages))


def exchange_forms(
    turn: Turn,
    stretch: Stretch | None,
    steps: Mapping[int, RunningStep],
    count: Count,
    wording: Wording = ZH,
) -> tuple[Form, ...]:
    """An exchange of the running turn: the first form shows every result at its fullest, the next one at its
    second fullest, and so on, each with its images and with these only named.

    Without a stretch it is one step of a turn in the short form.
    """
    choices = {number: step.choices(count, wording) for number, step in steps.items()}
    forms: list[Form] = []
    for level in range(max(map(len, choices.values()))):
        texts = {number: these[min(level, len(these) - 1)] for number, these in choices.items()}
        name = next(texts[number].name for number, these in choices.items() if level < len(these))
        shown = ShownTurn(
            turn.id,
            "current",
            None if stretch is None else turn.user,
            steps={n: step.shown._replace(result=texts[n].text) for n, step in steps.items()},
            layout=None if stretch is None else stretch.messages,
        )
        costs = {n: (step.step.call_tokens, texts[n].tokens) for n, step in steps.items()}
        forms.append(Form(_tokens(stretch, costs, count), shown, name=name))
    return tuple(forms) if stretch is None else with_media_named(forms, count)


def _tokens(stretch: Stretch | None, costs: Mapping[int, tuple[int, int]], count: Count) -> int:
    if stretch is not None:
        return layout_tokens(stretch.messages, costs, count, running=True)
    return sum(2 * MESSAGE_OVERHEAD + call + result for call, result in costs.values())
