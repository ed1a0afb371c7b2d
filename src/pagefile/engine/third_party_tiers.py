"""Validates what third-party tiers return: a window must be compiled whatever they do. Our own bypass it, at no cost."""

from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import isawaitable
from math import isfinite
from reprlib import repr as shortened
from typing import Any, TypeVar, cast

import anyio

from pagefile.engine.arguments import checked_json
from pagefile.records import JsonObject, JsonValue, Step, checked_text
from pagefile.tiers.base import Counts, PastWindow, Tier
from pagefile.window.candidates import MEMORY, REQUIRED, SYSTEM, Block, Candidate, Form

T = TypeVar("T")

#: How long a window waits for a third-party tier. The embedder has its own limit, `embedder.query_timeout_s`.
TIMEOUT_S = 2.0
#: How long erasing our own rows waits for a third-party tier.
ERASING_S = 30.0
#: Blocks whose texts may be cut. Turns belong to the log, and what is never cut could leave no room for the
#: question.
BLOCKS: tuple[Block, ...] = tuple(block for block in (*SYSTEM, *MEMORY) if block not in REQUIRED)
#: How many invalid candidates a note names.
_NAMED = 3


async def answered(tier: Tier, verb: str, *given: object, timeout_s: float | None = None) -> Any:
    """What a verb of a tier returns, within the time limit; nothing is known about it yet."""
    with anyio.move_on_after(timeout_s):
        asked = getattr(tier, verb)(*given)
        if not isawaitable(asked):
            raise TypeError(f"{verb}() is not a coroutine: write async def {verb}")
        return await asked
    raise TimeoutError(f"{verb}() took longer than {timeout_s:g} s")


def decided(verb: str, answer: object) -> bool:
    """A yes or no; a function without a `return` means no."""
    if answer is None or isinstance(answer, bool):
        return bool(answer)
    raise TypeError(f"{verb}() returned {shortened(answer)}: return True or False")


# -- candidates ---------------------------------------------------------------------------------------------------


def sound_candidates(
    offered: object, taken: Callable[[str], bool]
) -> tuple[list[Candidate], ValueError | None]:
    """The valid candidates, and one error about all the others."""
    # A candidate is itself a sequence, but not a sequence of candidates.
    if not isinstance(offered, Sequence) or isinstance(offered, str | bytes | Candidate):
        raise TypeError(f"offer() returned {shortened(offered)}: return a list of candidates")
    sound: dict[str, Candidate] = {}
    wrong: list[str] = []
    given = cast("Sequence[object]", offered)
    for one in given:
        try:
            candidate = _checked(one, lambda name: name in sound or taken(name))
        except (TypeError, ValueError) as error:
            wrong.append(f"{shortened(getattr(one, 'id', one))}: {error}")
        else:
            sound[candidate.id] = candidate
    if not wrong:
        return list(sound.values()), None
    more = f"; and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
    what = f"{len(wrong)} of {len(given)} candidates left out: {'; '.join(wrong[:_NAMED])}{more}"
    return list(sound.values()), ValueError(what)


def _checked(one: object, taken: Callable[[str], bool]) -> Candidate:
    if not isinstance(one, Candidate):
        raise TypeError(f"{type(one).__name__} is not a Candidate")
    if not checked_text(one.id, "id").strip():
        raise ValueError("id is empty: give it at least one visible character")
    if taken(one.id):
        raise ValueError("another candidate has this id: give each one of its own")
    _check_block(one.block)
    checked_text(one.note, "note")
    if not isinstance(one.position, int):
        raise TypeError(f"position is {shortened(one.position)}: give a whole number")
    _check_tokens(one.unread_tokens, "unread_tokens")
    score = cast("object", one.score)
    if score is not None and not (isinstance(score, int | float) and isfinite(score)):
        raise ValueError(f"score is {shortened(score)}: give a finite number, or None")
    _check_forms(one.forms)
    return one


def _check_forms(forms: object) -> None:
    if not isinstance(forms, tuple | list) or isinstance(forms, Form):
        raise TypeError(f"forms is {shortened(forms)}: give a tuple of forms")
    for form in cast("Sequence[object]", forms):
        if not isinstance(form, Form):
            raise TypeError(f"{type(form).__name__} is not a Form")
        _check_tokens(form.tokens, "tokens")
        checked_text(form.text, "text")
        checked_text(form.name, "name")


def _check_block(block: object, name: str = "block") -> None:
    if block not in BLOCKS:
        raise ValueError(f"{name} is {shortened(block)}: tiers from outside have {', '.join(BLOCKS)}")


def _check_tokens(value: object, name: str) -> None:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} is {shortened(value)}: give a whole number, at least 0")


def sound_traces(
    tier: Tier, own: Mapping[str, JsonValue], offered: Sequence[Candidate]
) -> dict[str, JsonValue]:
    """What the tier recorded itself plus its `trace`, as JSON that a store can hold, or an error."""
    trace = tier.trace(offered)
    traces = own if trace is None else {**own, tier.name: trace}
    return cast("dict[str, JsonValue]", checked_json(traces, "what trace() returned"))


# -- other return values: the value if it is valid, or an error ---------------------------------------------------


def sound_limits(given: object) -> Mapping[Block, int]:
    limits = _mapping(given, "limits", 'a dict, such as {"extra": 500}')
    for block, tokens in limits.items():
        _check_block(block, "a block of limits()")
        _check_tokens(tokens, f"what limits() gives {block}")
    return limits


def sound_step(given: object) -> Step:
    return _instance(given, Step, "absorb_step", "a step, such as `kept`")


def sound_counts(given: object) -> Counts:
    counts = _mapping(given, "forget", 'counts, such as {"reminders": 2}')
    for name, count in counts.items():
        checked_text(name, "what forget() counts")
        _check_tokens(count, f"what forget() counts as {name}")
    return counts


def sound_description(given: object, known: Collection[str]) -> JsonObject:
    """The description, or an error; `known` are the keys already taken."""
    found = dict(_mapping(given, "describe", "a dict with texts as keys"))
    for key in found:
        checked_text(key, "a key of what describe() returned")
    described = cast("JsonObject", checked_json(found, "what describe() returned"))
    if twice := sorted(described.keys() & set(known)):
        raise ValueError(f"describe() has the keys of others: {', '.join(twice)}")
    return described


async def replayed_by(tier: Tier, past: PastWindow) -> Tier:
    then = await answered(tier, "replay", past, timeout_s=TIMEOUT_S)
    return _instance(then, Tier, "replay", "a Tier")


def _mapping(given: object, verb: str, wanted: str) -> Mapping[Any, Any]:
    return cast("Mapping[Any, Any]", _instance(given, Mapping, verb, wanted))


def _instance(given: object, kind: type[T], verb: str, wanted: str) -> T:
    if not isinstance(given, kind):
        raise TypeError(f"{verb}() returned {shortened(given)}: return {wanted}")
    return given
