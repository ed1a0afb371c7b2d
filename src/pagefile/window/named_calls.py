"""A turn whose oldest calls are only named: a line leads back to each result, and calls and results themselves are not shown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from pagefile.content import Message, Part, Reasoning, Text, ToolCall, ToolResult
from pagefile.records import Turn
from pagefile.shapes.call_order import calls_of, prepared
from pagefile.window.measure import Count, layout_tokens


def with_named(turn: Turn, named: Mapping[int, str], heading: Sequence[str], count: Count) -> Turn:
    """The turn with these steps only named, those without a line not even that; the heading is above the first."""
    shown: list[Message | str] = []
    above = [*heading]
    for message in turn.messages:
        gone = sorted(calls_of(message) & named.keys())
        if kept := _kept(message.parts, named, has_gone=bool(gone)):
            same = len(kept) == len(message.parts)
            shown.append(message if same else replace(message, parts=kept, given=None))
        if gone:
            shown += [*above, *filter(None, (named[step] for step in gone))]
            above.clear()
    layout = tuple(_joined(shown))
    costs = {n: (step.call_tokens, step.result_tokens) for n, step in enumerate(turn.steps)}
    return replace(turn, layout=layout, tokens=layout_tokens(prepared(layout), costs, count))


def _kept(parts: Sequence[Part], named: Mapping[int, str], *, has_gone: bool) -> tuple[Part, ...]:
    """What is left of a message. Reasoning goes with the last of the calls that it led to."""
    kept = tuple(p for p in parts if not (isinstance(p, (ToolCall, ToolResult)) and p.step in named))
    if has_gone and not any(isinstance(part, ToolCall) for part in kept):
        return tuple(part for part in kept if not isinstance(part, Reasoning))
    return kept


def _joined(shown: Sequence[Message | str]) -> Iterator[Message]:
    """Lines that follow one another, as one message."""
    for is_line, group in groupby(shown, key=lambda one: isinstance(one, str)):
        if is_line:
            yield Message("user", (Text("\n".join(map(str, group))),))
        else:
            yield from (one for one in group if isinstance(one, Message))
