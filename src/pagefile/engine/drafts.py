"""From what a caller passes to what a store can hold, checked once and in one place."""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TypeAlias, cast
from zoneinfo import available_timezones

from pagefile.engine.shield import catching
from pagefile.errors import InvalidArgumentError
from pagefile.json_depth import MAX_JSON_DEPTH, is_shallow, texts_in
from pagefile.ports import NO_LABELS, Labels
from pagefile.records import JsonObject, JsonValue, Step, checked_id, checked_text
from pagefile.shapes import MAX_TOOL_CHARS, cleaned
from pagefile.tiers.workspace.results import to_json

#: A step as callers may pass it.
StepLike: TypeAlias = "Step | Mapping[str, object]"

_NOT_ALL = "[结果未能完整写成 JSON / not all of this result could be written as JSON]\n"
_STEP_KEYS = frozenset({"tool", "input", "result", "call_id"})


#: "auto" is the language the user writes in.
LANGUAGES = ("auto", "zh", "en")


def checked_message(text: object, name: str, max_chars: int) -> str | None:
    """One side of a turn; a blank one counts as missing."""
    if text is None:
        return None
    value = checked_text(text, name)
    if len(value) > max_chars:
        raise InvalidArgumentError(
            f"{name} has {len(value):,} characters, at most {max_chars:,} are allowed: record large material as a step "
            "(it is archived and can be loaded in parts), split it, or raise the setting max_message_chars."
        )
    return value if value.strip() else None


def checked_metadata(value: object) -> JsonObject:
    """Metadata that survives a JSON round trip."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(f"metadata must be a mapping, not {type(value).__name__}.")
    return cast("JsonObject", checked_json(cast("object", value), "metadata"))


def checked_labels(*, project: object = None, language: object = None, timezone: object = None) -> Labels:
    """A conversation's project, and its user's language and time zone."""
    if project is language is timezone is None:
        return NO_LABELS
    if language not in (None, *LANGUAGES):
        raise InvalidArgumentError(f"language is {language!r}: use one of {', '.join(LANGUAGES)}.")
    if timezone is not None and timezone not in _timezones():
        raise InvalidArgumentError(
            f"timezone is {timezone!r}, which is not known here: name one such as 'Asia/Shanghai' or 'UTC'."
        )
    own = None if project is None else checked_id(project, "project")
    return Labels(own, cast("str | None", language), cast("str | None", timezone))


@cache
def _timezones() -> frozenset[object]:
    return frozenset(available_timezones())


def checked_steps(steps: Iterable[StepLike], turn_id: str, max_chars: int) -> tuple[Step, ...]:
    """The steps of a turn, each with its own call id."""
    return tuple(checked_step(step, turn_id, number, max_chars) for number, step in enumerate(steps))


def checked_step(step: StepLike, turn_id: str, number: int, max_chars: int) -> Step:
    """One tool call and its result; results other than text become JSON."""
    given = _fields(step)
    tool = checked_text(given.get("tool"), "step tool").strip()
    if not 0 < len(tool) <= MAX_TOOL_CHARS:
        raise InvalidArgumentError(
            f"A step's tool name must have 1 to {MAX_TOOL_CHARS} characters, not {len(tool)}."
        )
    result = result_text(given.get("result"))
    check_result(tool, result, max_chars)
    call_id = given.get("call_id")
    return Step(
        tool=tool,
        input=checked_json(given.get("input"), f"input of {tool!r}"),
        result=result,
        call_id=checked_text(call_id, "call_id") if call_id else made_call_id(turn_id, number),
    )


def check_result(tool: str, result: str, max_chars: int) -> None:
    """Refuse a result that is too long."""
    if len(result) > max_chars:
        raise InvalidArgumentError(
            f"The result of {tool!r} has {len(result):,} characters, at most {max_chars:,} are allowed: "
            "store it elsewhere and record where, or raise the setting max_result_chars."
        )


def made_call_id(turn_id: str, number: int) -> str:
    """A deterministic call id that every provider accepts."""
    return f"call_{hashlib.sha256(turn_id.encode()).hexdigest()[:12]}_{number}"


def result_text(result: object) -> str:
    """A tool's result as text that a database can hold."""
    if result is None:
        return ""
    if isinstance(result, (bytes, bytearray, memoryview)):
        return _bytes_text(bytes(cast("bytes", result)))
    text = result if isinstance(result, str) else _json_text(result)
    # Callers do not control what tools return: what no database can hold is replaced visibly.
    return cleaned(text)


def _bytes_text(data: bytes) -> str:
    try:
        return data.decode().replace("\0", "␀")
    except UnicodeDecodeError:
        return f"[{len(data)} bytes, base64]\n{base64.b64encode(data).decode()}"


def _json_text(value: object) -> str:
    failures: list[Exception] = []
    with catching(failures.append):
        return json.dumps(value, ensure_ascii=False, default=str)
    # The value is circular, too deep, has numbers or keys that JSON lacks, or raises when inspected.
    return _NOT_ALL + json.dumps(to_json(value), ensure_ascii=False)


def _fields(step: StepLike) -> Mapping[str, object]:
    if isinstance(step, Step):
        return {"tool": step.tool, "input": step.input, "result": step.result, "call_id": step.call_id}
    if not isinstance(step, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not type-checked
        raise InvalidArgumentError(f"A step must be a Step or a mapping, not {type(step).__name__}.")
    unknown = set(step) - _STEP_KEYS
    if unknown:
        raise InvalidArgumentError(
            f"A step has unknown keys {sorted(unknown)!r}: it takes {sorted(_STEP_KEYS)!r}."
        )
    return step


def checked_json(value: object, name: str) -> JsonValue:
    """The value after a JSON round trip, so that what is returned now equals what is read later."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except RecursionError as error:
        raise _too_deep(name) from error
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"{name} cannot be written as JSON ({error}): use texts, numbers, lists and mappings."
        ) from error
    checked_text(text, name)
    copy = cast("JsonValue", json.loads(text))
    if text.count("[") + text.count("{") > MAX_JSON_DEPTH and not is_shallow(copy):
        raise _too_deep(name)
    if "\\u0000" in text:
        for found in texts_in(copy):
            checked_text(found, name)
    return copy


def _too_deep(name: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{name} is nested more than {MAX_JSON_DEPTH} deep: give it as a text, for instance with json.dumps(…)."
    )
