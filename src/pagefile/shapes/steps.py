"""Tool calls as messages show them: each with a unique call id, and the text shown for its result.

Named tuples, because a window creates one for every form of every turn: a frozen dataclass takes four times as long.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from pagefile.content import JsonValue, Shape
from pagefile.records import Step

#: Characters that no provider accepts in the name of a tool, and only the chat API accepts in a call id.
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")
#: The maximum length of a tool's name, and of a call id, by provider.
_MOST_NAME_CHARS: Mapping[Shape, int] = {"plain": 64, "openai": 64, "responses": 64, "anthropic": 128}
_MOST_ID_CHARS: Mapping[Shape, int] = {"plain": 40, "openai": 40, "responses": 64, "anthropic": 128}


class ShownStep(NamedTuple):
    tool: str
    input: JsonValue
    #: Unique among the steps of its turn: providers refuse duplicates in a request.
    call_id: str
    result: str


#: The steps of a turn, by index.
ShownSteps: TypeAlias = Mapping[int, ShownStep]


def shown_steps(steps: Sequence[Step], results: Mapping[int, str]) -> dict[int, ShownStep]:
    """The steps of a turn by index, each with a unique call id; `results` replaces the texts of some."""
    seen: set[str] = set()
    return {
        number: ShownStep(
            step.tool, step.input, _own_call_id(step.call_id, seen), results.get(number, step.result)
        )
        for number, step in enumerate(steps)
    }


def with_own_call_ids(steps: ShownSteps, shape: Shape, seen: set[str]) -> ShownSteps:
    """The steps with names and call ids that the provider accepts; ids avoid those in `seen` and are added to it."""
    if shape == "openai":
        # The ids of a turn are already unique, and the chat API requires no more.
        seen = set()
    return {
        number: step._replace(
            tool=fitted_tool(step.tool, shape), call_id=_own_call_id(step.call_id, seen, shape)
        )
        for number, step in steps.items()
    }


@lru_cache(maxsize=1024)
def fitted_tool(name: str, shape: Shape) -> str:
    """The name of a tool as a provider accepts it, always the same for the same name."""
    fitted = _FOREIGN.sub("_", name) or "_"
    # "f.g" is still recognisable as "f_g"; too little would be left of a Chinese or a long name to tell it
    # from others.
    return _fitted(name, fitted, _MOST_NAME_CHARS[shape], distinct=not name.isascii())


@lru_cache(maxsize=1024)
def fitted_id(call_id: str, shape: Shape) -> str:
    fitted = call_id if shape in {"openai", "plain"} else _FOREIGN.sub("_", call_id)
    return _fitted(call_id, fitted, _MOST_ID_CHARS[shape])


def _fitted(text: str, fitted: str, most: int, *, distinct: bool = False) -> str:
    if len(fitted) <= most and not distinct:
        return fitted
    return f"{fitted[: most - 9]}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _own_call_id(call_id: str, seen: set[str], shape: Shape | None = None) -> str:
    number, tried = 1, call_id
    while (own := tried if shape is None else fitted_id(tried, shape)) in seen:
        number += 1
        tried = f"{call_id}_{number}"
    seen.add(own)
    return own
