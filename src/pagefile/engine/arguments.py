"""The arguments of a call, checked once: each error says what to pass instead."""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import TypeAlias, TypeVar, cast
from zoneinfo import available_timezones

from pagefile.content import Shape
from pagefile.errors import InvalidArgumentError, SettingsError
from pagefile.json_values import MAX_JSON_DEPTH, is_shallow, texts_in
from pagefile.ports import NO_LABELS, Labels
from pagefile.records import (
    BEYOND_TIME,
    EARLIEST,
    LATEST,
    MAX_INT,
    JsonObject,
    JsonValue,
    Step,
    Turn,
    checked_id,
    checked_text,
    utc,
)
from pagefile.settings import Settings
from pagefile.shapes.message_reader import MAX_TOOL_CHARS
from pagefile.shapes.parser import cleaned
from pagefile.text.sentences import language
from pagefile.tiers.base import guarded
from pagefile.tiers.page_in import checked_uuid
from pagefile.tiers.workspace.results import to_json
from pagefile.window.budget import UNPUBLISHED, Beside, model_limits
from pagefile.window.parts import Placement

T = TypeVar("T")

#: A step as callers may pass it.
StepLike: TypeAlias = Step | Mapping[str, object]

_NOT_ALL = {
    "zh": "[结果未能完整写成 JSON]\n",
    "en": "[not all of this result could be written as JSON]\n",
}
_STEP_KEYS = frozenset({"tool", "input", "result", "call_id"})


#: "auto" is the language of the first messages.
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
    if project is language is timezone is None:
        return NO_LABELS
    if timezone is not None and timezone not in _timezones():
        raise InvalidArgumentError(
            f"timezone is {timezone!r}, which is not known here: name one such as 'Asia/Shanghai' or 'UTC'."
        )
    own = None if project is None else checked_id(project, "project")
    return Labels(own, one_of(language, LANGUAGES, "language"), cast("str | None", timezone))


@cache
def _timezones() -> frozenset[object]:
    return frozenset(available_timezones())


def checked_steps(steps: Iterable[StepLike], turn_id: str, max_chars: int) -> tuple[Step, ...]:
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
    call_id, asked = given.get("call_id"), checked_json(given.get("input"), f"input of {tool!r}")
    own = checked_text(call_id, "call_id") if call_id else made_call_id(turn_id, number)
    return Step(tool, asked, result, own)


def check_result(tool: str, result: str, max_chars: int) -> None:
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
        data = bytes(cast("bytes", result))
        try:
            return data.decode().replace("\0", "␀")
        except UnicodeDecodeError:
            return f"[{len(data)} bytes, base64]\n{base64.b64encode(data).decode()}"
    text = result if isinstance(result, str) else _json_text(result)
    # Callers do not control what tools return: what no database can hold is replaced visibly.
    return cleaned(text)


def _json_text(value: object) -> str:
    failures: list[Exception] = []
    with guarded(failures.append):
        return json.dumps(value, ensure_ascii=False, default=str)
    # The value is circular, too deep, has numbers or keys that JSON lacks, or raises when inspected.
    text = json.dumps(to_json(value), ensure_ascii=False)
    return _NOT_ALL[language(text[:2000])] + text


def _fields(step: StepLike) -> Mapping[str, object]:
    if isinstance(step, Step):
        return {"tool": step.tool, "input": step.input, "result": step.result, "call_id": step.call_id}
    if not isinstance(step, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not type-checked
        raise InvalidArgumentError(f"A step must be a Step or a mapping, not {type(step).__name__}.")
    if unknown := set(step) - _STEP_KEYS:
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


_MAX_DIGITS = 20
#: The supported shapes of messages.
SHAPES: tuple[Shape, ...] = ("openai", "responses", "anthropic")


class Request:
    """The arguments of one `context()`, with defaults from the settings."""

    def __init__(
        self,
        settings: Settings,
        *,
        query: str | None,
        turn_id: str | None,
        window_tokens: int | None,
        threshold: float | None,
        recent_turns: int | None,
        load: Sequence[str],
        instructions: str | None,
        placement: str | None,
        run: str | None = None,
        window_for: str | None = None,
        tools_tokens: int = 0,
        answer_tokens: int | None = None,
        language: str | None = None,
        project: str | None = None,
        agent: str | None = None,
        timezone: str | None = None,
    ) -> None:
        #: Whose facts may be shown besides the user's own; None for those of the conversation.
        self.project, self.agent = project, agent
        self.query = checked_message(query, "query", settings.max_message_chars)
        self.turn_id = turn_id
        #: The model the window is for, if named.
        self.window_for = _or(window_for, settings.window_for)
        self.window_tokens = _window(settings, window_tokens, self.window_for)
        self.threshold = share(_or(threshold, settings.threshold))
        self.recent_turns = at_least(1, _or(recent_turns, settings.recent_turns), "recent_turns")
        self.load = checked_uuids(load, "load")
        self.instructions = checked_message(instructions, "instructions", settings.max_message_chars)
        #: The language of what is written around the conversation; None for what is set for it.
        self.language = one_of(language, LANGUAGES, "language")
        #: Where the user is; None for what is set for the conversation.
        self.timezone = checked_labels(timezone=timezone).timezone
        self.placement: Placement = checked_placement(_or(placement, settings.placement))
        #: The run whose workspace is shown; empty for the conversation's own.
        self.run = run_name(run)
        #: What the request contains besides its messages.
        self.tools_tokens = at_least(0, tools_tokens, "tools_tokens")
        self.answer_tokens = at_least(0, _or(answer_tokens, settings.answer_tokens), "answer_tokens")

    @property
    def reserved(self) -> dict[Beside, int]:
        """The part of the window that is not for messages."""
        percent = 100 if self.window_for is None else model_limits(self.window_for).percent
        lines: dict[Beside, int] = {
            "tools": self.tools_tokens,
            "answer": self.answer_tokens,
            "tokenizer": self.window_tokens - self.window_tokens * 100 // percent,
        }
        return {kind: tokens for kind, tokens in lines.items() if tokens}

    @property
    def room(self) -> int:
        return self.window_tokens - sum(self.reserved.values())

    def doubts(self, counter: str) -> list[str]:
        """What is uncertain about its token counts."""
        limits = None if self.window_for is None else model_limits(self.window_for)
        if limits is None or limits.tokenizer == counter:
            return []
        if limits.tokenizer == UNPUBLISHED:
            free = f"tokens are those of {counter}, and a part of the window is left free for the difference"
            return [f"the tokenizer of {limits.name} is not published: {free}"]
        here = f"this memory with {counter}: the counts differ"
        return [f"{limits.name} counts with {limits.tokenizer}, {here}"]

    def options(self) -> JsonObject:
        given = {name: getattr(self, name) for name in OPTIONS} | {"load": list(self.load)}
        return {name: value for name, value in given.items() if value or name not in _BESIDE}


#: Options that a recorded call has only if they were given.
_BESIDE = ("window_for", "tools_tokens", "answer_tokens")
OPTIONS = ("window_tokens", "threshold", "recent_turns", "load", "instructions", "placement", *_BESIDE)


def _window(settings: Settings, given: int | None, model: str | None) -> int:
    """The given size, capped by the model's limit; the setting if neither is given."""
    if model is None:
        return at_least(1, _or(given, settings.window_tokens), "window_tokens")
    most = model_limits(model).window_tokens
    return most if given is None else min(at_least(1, given, "window_tokens"), most)


def sized(settings: Settings) -> Settings:
    """The settings with the context size of the model they name; `SettingsError` if it is unknown."""
    if settings.window_for is None:
        return settings
    return replace(settings, window_tokens=model_limits(settings.window_for).window_tokens)


def checked_uuids(uuids: object, name: str) -> tuple[str, ...]:
    """Several uuids of pages; one text is not a list of its characters."""
    if isinstance(uuids, str):
        raise InvalidArgumentError(f"{name} must be a list of uuids, not one text: write {name}=[uuid].")
    if isinstance(uuids, Mapping) or not isinstance(uuids, Iterable):
        raise InvalidArgumentError(f"{name} must be a list of uuids, not {uuids!r}: write {name}=[uuid].")
    return tuple(checked_uuid(uuid) for uuid in cast("Iterable[str]", uuids))


def run_name(run: str | None) -> str:
    return id_or_none(run, "run") or ""


def turn_id_of(turn: Turn | str) -> str:
    return turn.id if isinstance(turn, Turn) else checked_id(turn, "turn id")


def current_turn_id(query: str | None, turn: Turn | str | None, mine: Turn | None) -> str | None:
    """The turn a window is for: the one named, or else the one that the handle began, unless the query is another."""
    if turn is not None:
        return turn_id_of(turn)
    return mine.id if mine is not None and query in {None, mine.user} else None


def one_of(value: object, options: tuple[T, ...], name: str) -> T | None:
    """One of the options, or None for none of them."""
    # A tuple, because the value may be unhashable.
    if value not in (None, *options):
        raise InvalidArgumentError(f"{name} is {value!r}: it must be one of {', '.join(map(repr, options))}.")
    return cast("T | None", value)


def moment(value: object) -> datetime:
    if not isinstance(value, datetime):
        raise InvalidArgumentError(
            f"at must be a datetime, not {type(value).__name__}: use datetime.fromisoformat(…)."
        )
    try:
        return utc(value)
    except OverflowError as error:
        raise InvalidArgumentError(
            f"at is {value.isoformat()}, which is out of range in UTC: give a time between the years 1 and 9999."
        ) from error


def moment_said(value: object) -> datetime:
    """When a turn was said: a time with which windows and recall can reckon."""
    at = moment(value)
    if not EARLIEST <= at <= LATEST:
        raise InvalidArgumentError(f"at is {at.isoformat()}: {BEYOND_TIME}.")
    return at


def check_erased(
    user_id: str | None,
    conversation_id: str | None,
    tenant: str | None,
    *,
    turn_id: str | None,
    page: str | None,
) -> str | None:
    """Require an explicit target for an erasure: nothing is guessed. Returns the page's uuid in normal form."""
    if turn_id is not None and page is not None:
        raise InvalidArgumentError("forget() erases one turn or one page alone, not both: call it twice.")
    if turn_id is not None:
        checked_id(turn_id, "turn_id")
        if conversation_id is None:
            raise InvalidArgumentError(
                "A turn's id is known in its conversation only: give the conversation_id with it."
            )
    if page is None and user_id is None and conversation_id is None and tenant is None:
        raise InvalidArgumentError(
            "forget() erases what you name: give a user_id, a conversation_id, a page or a tenant."
        )
    return None if page is None else checked_uuid(page)


def check_purged(
    uuids: Sequence[str] | None, older_than: timedelta | None, max_bytes: int | None, **_: object
) -> None:
    if uuids is None and older_than is None and max_bytes is None:
        raise InvalidArgumentError("purge() removes what you name: give uuids, older_than or max_bytes.")


def at_least(least: int, value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise SettingsError(f"{name} must be a whole number, not {repr(value)[:80]}.")
    if not least <= value <= MAX_INT:
        # Python refuses to print thousands of digits.
        shown = value if abs(value) < 10**_MAX_DIGITS else f"a number of {value.bit_length()} bits"
        limit = f"least {least}" if value < least else f"most {MAX_INT}"
        raise SettingsError(f"{name} is {shown}: it must be at {limit}.")
    return value


def log_position(after: object) -> int:
    """A position in the log, as a number or as the text of a listing's `next`."""
    if isinstance(after, str) and after.isdecimal() and len(after) <= _MAX_DIGITS:
        return at_least(0, int(after), "after")
    return at_least(0, after, "after")


def id_or_none(value: object, name: str) -> str | None:
    return None if value is None else checked_id(value, name)


def cursor(after: object) -> str | None:
    """Where a listing continues: `next` of the previous one, None for the beginning."""
    return id_or_none(after, "after")


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


def share(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= 1:
        raise SettingsError(
            f"threshold is {value!r}: give a share of the window between 0 and 1, for instance 0.75."
        )
    return float(value)


def checked_placement(value: object) -> Placement:
    # A tuple, because the value may be unhashable.
    if value not in ("tail", "head"):
        raise SettingsError(f"placement is {value!r}: it must be 'tail' or 'head'.")
    return value
