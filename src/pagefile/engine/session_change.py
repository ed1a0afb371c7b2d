"""What a caller may set in a session value, checked; the rest of it comes from the log."""

from collections.abc import Callable, Mapping
from typing import cast

from pagefile.engine.arguments import checked_json
from pagefile.errors import InvalidArgumentError
from pagefile.records import JsonObject, Scope
from pagefile.stores.encoding import to_json
from pagefile.stores.session import SessionValue, blank

#: The safety data of a session is in every window, so a session has its limits.
MAX_SESSION_CHARS = 100_000
#: Sections that only the log changes: they may be sent back as they were read, and are not taken over.
_OF_LOG = frozenset({"meta", "flow_context", "message_context"})


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_texts(value: object) -> bool:
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    return all(isinstance(item, str) and item.strip() for item in items)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_action(value: object) -> bool:
    return value is None or isinstance(value, dict)


#: What a field is called in an error, by what decides whether a value fits.
_KINDS: dict[Callable[[object], bool], str] = {
    _is_text: "a text",
    _are_texts: "a list of texts that are not blank",
    _is_object: "an object",
    _is_action: "an object or null",
}
_FIELDS: dict[str, dict[str, Callable[[object], bool]]] = {
    "user_snapshot": {
        "user_id": _is_text,
        "name": _is_text,
        **dict.fromkeys(("allergies", "history", "surgery_history", "preferences"), _are_texts),
    },
    "global_state": {
        **dict.fromkeys(("shared", "entities", "agent_slots"), _is_object),
        "current_intent": _is_text,
        "pending_action": _is_action,
    },
}


def checked_change(value: object) -> JsonObject:
    """Sections of a session value with the fields to set."""
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(f"value must be an object with {_listed(_FIELDS)}, not {value!r:.80}.")
    change = cast("JsonObject", checked_json(cast("object", value), "value"))
    if (size := len(to_json(change))) > MAX_SESSION_CHARS:
        raise InvalidArgumentError(
            f"value has {size:,} characters, at most {MAX_SESSION_CHARS:,} are allowed: record large material as turns or steps."
        )
    for section, kinds in _FIELDS.items():
        given = change.get(section, {})
        if not isinstance(given, dict):
            raise InvalidArgumentError(f"value.{section} must be an object with {_listed(kinds)}.")
        for name, fits in kinds.items():
            if name in given and not fits(given[name]):
                raise InvalidArgumentError(
                    f"value.{section}.{name} must be {_KINDS[fits]}, not {given[name]!r:.80}."
                )
    return change


def changed(scope: Scope, stored: JsonObject | None, change: JsonObject, now: int) -> SessionValue:
    """A session with these fields set; the others stay. A name that is neither known nor stored already is refused."""
    value: SessionValue = dict(blank(scope) if stored is None else stored)
    _check_names("value", change, {*_FIELDS, *_OF_LOG, *value}, _FIELDS)
    value |= {name: own for name, own in change.items() if name not in _FIELDS and name not in _OF_LOG}
    for section, kinds in _FIELDS.items():
        before, given = _object(value.get(section)), _object(change.get(section))
        _check_names(f"value.{section}", given, {*kinds, *before}, kinds)
        value[section] = before | given
    _set_entities(value["global_state"], _object(change.get("global_state")))
    owner = value["user_snapshot"].get("user_id")
    if "user_snapshot" in change and owner not in {None, "", scope.user}:
        raise InvalidArgumentError("value.user_snapshot.user_id is another user: leave it out.")
    value["meta"] = _object(value.get("meta")) | {"updated_at": now}
    return value


def _set_entities(state: SessionValue, given: SessionValue) -> None:
    """`shared` and `entities` are two names for one thing: setting one sets both."""
    named = [given[name] for name in ("shared", "entities") if name in given]
    if named and named[0] != named[-1]:
        raise InvalidArgumentError(
            "value.global_state.shared and value.global_state.entities are two names for one thing: give one of them."
        )
    if named:
        state |= {"shared": named[0], "entities": named[0]}


def _check_names(where: str, given: JsonObject, known: set[str], listed: Mapping[str, object]) -> None:
    if unknown := sorted(given.keys() - known):
        raise InvalidArgumentError(
            f"{where} has no {', '.join(map(repr, unknown))}: it takes {_listed(listed)}. What is an application's own goes into "
            "value.global_state.agent_slots."
        )


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(map(repr, names))


def _object(value: object) -> SessionValue:
    return dict(cast("SessionValue", value)) if isinstance(value, Mapping) else {}
