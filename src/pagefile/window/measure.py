"""What things cost in a window, so that counts can be stored when a text is written and need not be repeated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pagefile.content import (
    JsonValue,
    Media,
    Message,
    Other,
    Part,
    Reasoning,
    Shape,
    Text,
    ToolCall,
    ToolResult,
)
from pagefile.records import Step, Turn
from pagefile.shapes.call_order import prepared
from pagefile.shapes.media import shown_tokens
from pagefile.shapes.openai import laid_out
from pagefile.shapes.renderer import is_sent
from pagefile.shapes.steps import fitted_tool
from pagefile.shapes.tool_arguments import compact
from pagefile.text.tokens import MESSAGE_OVERHEAD

#: Fields of reasoning that are sent back beside its text, and are as long as the actual reasoning.
_SEALS = ("signature", "data", "encrypted_content")

#: The line that remains of a result which left, about.
NOTE_TOKENS = 60

Count = Callable[[str], int]


def measured_step(step: Step, count: Count) -> Step:
    return replace(measured_call(step, step.input, count), result_tokens=count(step.result))


def measured_call(step: Step, value: JsonValue, count: Count) -> Step:
    """The step with these arguments."""
    call_tokens = count(fitted_tool(step.tool, "openai")) + count(compact(value))
    return replace(step, input=value, call_tokens=call_tokens)


def step_tokens(step: Step) -> int:
    return 2 * MESSAGE_OVERHEAD + step.call_tokens + step.result_tokens


def resting_tokens(turn: Turn) -> int:
    """A turn after all its results that can leave have left: about what it costs for good."""
    if not turn.steps:
        # The common case, with hundreds of such turns per window.
        return turn.tokens
    return turn.tokens - sum(
        max(0, step.result_tokens - NOTE_TOKENS) for step in turn.steps if step.page and step.whole
    )


def side_tokens(text: str | None, tokens: int) -> int:
    """One side of a turn as a message; 0 if it is missing."""
    return MESSAGE_OVERHEAD + tokens if text else 0


def turn_tokens(
    user: str | None, user_tokens: int, assistant: str | None, assistant_tokens: int, steps: Sequence[Step]
) -> int:
    sides = side_tokens(user, user_tokens) + side_tokens(assistant, assistant_tokens)
    return sides + sum(step_tokens(step) for step in steps)


def layout_tokens(
    layout: Sequence[Message], steps: Mapping[int, tuple[int, int]], count: Count, *, running: bool = False
) -> int:
    """Messages with parts, as they are sent; `steps` has the tokens of each call and of the text shown for its result.

    Parts that only one provider can read are counted in the messages that came from it. Reasoning counts only
    in the running turn: afterwards it is no longer sent.
    """
    return sum(_message_tokens(message, steps, count, running) for message in laid_out(layout))


def media_tokens(layout: Sequence[Message], count: Count) -> int:
    """Tokens of the images, sounds and files of prepared messages, each as it is shown or named."""
    media = [(one, part) for one in laid_out(layout) for part in one.parts if isinstance(part, Media)]
    return sum(shown_tokens(part, _own_shape(message), count) for message, part in media)


def _own_shape(message: Message) -> Shape:
    return "openai" if message.shape == "plain" else message.shape


def _message_tokens(
    message: Message, steps: Mapping[int, tuple[int, int]], count: Count, running: bool
) -> int:
    own = _own_shape(message)
    parts = [part for part in message.parts if is_sent(part, message, own, reasoning=running)]
    texts = [part.text for part in parts if isinstance(part, Text) and part.text.strip()]
    if message.role != "user":
        # They are joined into one text in the message.
        texts = ["\n".join(texts)]
    tokens = sum(map(count, texts)) + sum(_part_tokens(part, own, steps, count) for part in parts)
    framed = any(texts) or any(not isinstance(part, (Text, Reasoning)) for part in parts)
    return tokens + MESSAGE_OVERHEAD * framed


def _part_tokens(part: Part, shape: Shape, steps: Mapping[int, tuple[int, int]], count: Count) -> int:
    match part:
        case ToolCall(step):
            return steps[step][0]
        case ToolResult(step):
            return steps[step][1]
        case Media():
            return shown_tokens(part, shape, count)
        case Reasoning(text, sealed):
            seals = (sealed.get(key) for key in _SEALS)
            return count(text) + sum(count(seal) for seal in seals if isinstance(seal, str))
        case Other(value):
            return count(compact(value))
        case Text():
            return 0


def recounted(turn: Turn, count: Count, counter: str) -> Turn:
    """The turn with the counts of a different tokenizer."""
    said, answered = (count(side) if side else 0 for side in (turn.user, turn.assistant))
    steps = tuple(measured_step(step, count) for step in turn.steps)
    if turn.layout is None:
        tokens = turn_tokens(turn.user, said, turn.assistant, answered, steps)
    else:
        counts = {number: (step.call_tokens, step.result_tokens) for number, step in enumerate(steps)}
        tokens = layout_tokens(prepared(turn.layout), counts, count)
    counted = {"user_tokens": said, "assistant_tokens": answered, "tokens": tokens}
    return replace(turn, **counted, steps=steps, counter=counter)
