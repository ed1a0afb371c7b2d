"""What things cost in a window, so that counts can be stored when a text is written and never made again."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from pagefile.records import Step, Turn
from pagefile.text.tokens import MESSAGE_OVERHEAD
from pagefile.window.render import step_arguments

Count = Callable[[str], int]


def measured_step(step: Step, count: Count) -> Step:
    """The step with its counts."""
    call_tokens = count(step.tool) + count(step_arguments(step.input))
    return replace(step, call_tokens=call_tokens, result_tokens=count(step.result))


def step_tokens(step: Step) -> int:
    """A tool call and its result as two messages."""
    return 2 * MESSAGE_OVERHEAD + step.call_tokens + step.result_tokens


def side_tokens(text: str | None, tokens: int) -> int:
    """One side of a turn as a message; nothing when it is missing."""
    return MESSAGE_OVERHEAD + tokens if text else 0


def turn_tokens(
    user: str | None, user_tokens: int, assistant: str | None, assistant_tokens: int, steps: Sequence[Step]
) -> int:
    """A whole turn as messages."""
    sides = side_tokens(user, user_tokens) + side_tokens(assistant, assistant_tokens)
    return sides + sum(step_tokens(step) for step in steps)


def recounted(turn: Turn, count: Count, counter: str) -> Turn:
    """The turn with the counts of another tokenizer."""
    user_tokens = count(turn.user) if turn.user else 0
    assistant_tokens = count(turn.assistant) if turn.assistant else 0
    steps = tuple(measured_step(step, count) for step in turn.steps)
    return replace(
        turn,
        user_tokens=user_tokens,
        assistant_tokens=assistant_tokens,
        steps=steps,
        tokens=turn_tokens(turn.user, user_tokens, turn.assistant, assistant_tokens, steps),
        counter=counter,
    )
