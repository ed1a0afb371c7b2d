"""Tool calls as messages show them: each with a call id of its own, and with the text that is shown for its result.

These are named tuples, because a window makes one for every form of every turn, and a frozen dataclass takes four times as long to make.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pagefile.content import JsonValue, Shape
from pagefile.records import Step

#: What Anthropic takes in a call id.
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


class ShownStep(NamedTuple):
    """A tool call, and the text that is shown for its result."""

    tool: str
    input: JsonValue
    #: Unique among the steps of its turn: providers refuse a request in which one comes twice.
    call_id: str
    result: str


def shown_steps(steps: Sequence[Step], results: Mapping[int, str]) -> dict[int, ShownStep]:
    """The steps of a turn by number, each with its own call id; `results` has other texts for some of them."""
    seen: set[str] = set()
    return {
        number: ShownStep(
            step.tool, step.input, _own_call_id(step.call_id, seen), results.get(number, step.result)
        )
        for number, step in enumerate(steps)
    }


def with_own_call_ids(
    steps: Mapping[int, ShownStep], shape: Shape, seen: set[str]
) -> Mapping[int, ShownStep]:
    """The steps with call ids that the provider takes and that are not among those seen; they are from now on."""
    if shape == "openai" or not steps:
        # The ids of a turn are unique already, and the chat API asks for no more.
        return steps
    return {
        number: step._replace(call_id=_own_call_id(_FOREIGN.sub("_", step.call_id), seen))
        for number, step in steps.items()
    }


def _own_call_id(call_id: str, seen: set[str]) -> str:
    number, own = 1, call_id
    while own in seen:
        number += 1
        own = f"{call_id}_{number}"
    seen.add(own)
    return own
