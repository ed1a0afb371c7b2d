"""What things cost in a window, so that counts can be stored when a text is written and never made again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pagefile.content import Media, Message, Other, Part, Reasoning, Text, ToolCall, ToolResult
from pagefile.records import JsonValue, Step, Turn
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


def layout_tokens(
    layout: Sequence[Message],
    steps: Mapping[int, tuple[int, int]],
    count: Count,
    *,
    running: bool = False,
) -> int:
    """Messages with parts; `steps` has the tokens of each call and of the text that is shown for its result.

    Reasoning costs something only in the running turn: afterwards it is not sent any more.
    """
    tokens, media = 0, False
    for message in layout:
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        tokens += sum(MESSAGE_OVERHEAD + steps[part.step][1] for part in results)
        # What came with results follows them in one message of its own.
        began = any(part.media for part in results) and not media
        media = bool(results) and (media or began)
        tokens += MESSAGE_OVERHEAD * began + sum(one.tokens for part in results for one in part.media)
        tokens += _said_tokens(message, steps, count)
        if running:
            tokens += sum(
                count(part.text) for part in message.parts if isinstance(part, Reasoning) and part.text
            )
    return tokens


def _said_tokens(message: Message, steps: Mapping[int, tuple[int, int]], count: Count) -> int:
    """A message without its results; nothing when it has nothing else to say."""
    calls = [steps[part.step][0] for part in message.parts if isinstance(part, ToolCall)]
    if message.role == "assistant":
        text = message.text
        said = [count(text)] if calls or text.strip() else []
    else:
        said = [_content_tokens(part, count) for part in message.parts if _is_content(part)]
    return MESSAGE_OVERHEAD + sum(said) + sum(calls) if said or calls else 0


def _is_content(part: Part) -> bool:
    return bool(part.text.strip()) if isinstance(part, Text) else isinstance(part, Media | Other)


def _content_tokens(part: Part, count: Count) -> int:
    if isinstance(part, Media):
        return part.tokens
    return count(part.text if isinstance(part, Text | Reasoning) else step_arguments(_value(part)))


def _value(part: Part) -> JsonValue:
    return part.value if isinstance(part, Other) else None


def recounted(turn: Turn, count: Count, counter: str) -> Turn:
    """The turn with the counts of another tokenizer."""
    user_tokens = count(turn.user) if turn.user else 0
    assistant_tokens = count(turn.assistant) if turn.assistant else 0
    steps = tuple(measured_step(step, count) for step in turn.steps)
    if turn.layout is None:
        tokens = turn_tokens(turn.user, user_tokens, turn.assistant, assistant_tokens, steps)
    else:
        counts = {number: (step.call_tokens, step.result_tokens) for number, step in enumerate(steps)}
        tokens = layout_tokens(turn.layout, counts, count)
    return replace(
        turn,
        user_tokens=user_tokens,
        assistant_tokens=assistant_tokens,
        steps=steps,
        tokens=tokens,
        counter=counter,
    )
