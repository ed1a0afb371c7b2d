"""The snapshot of a window: what is recorded with a call so that its window can be rebuilt from the log.

The messages themselves are not stored: the log has every turn, every page and every change of a fact. A
snapshot says how far each of them went, and holds the little that no log has: what was chosen by similarity,
pinned, or at hand in the process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, cast

from pagefile.errors import SettingsError
from pagefile.ports import LogView
from pagefile.records import JsonObject, JsonValue, WindowRecord
from pagefile.settings import Settings
from pagefile.settings.model import RENAMED
from pagefile.window.wording import ZH

#: Settings that decide what a window contains; the rest is in the arguments of `context()`.
DECIDING = (
    "language",
    "recall",
    "recall_turns",
    "facts.enabled",
    "facts.max_injection_tokens",
    "facts.max_context_turns",
    "facts.similarity_weight",
    "facts.confidence_weight",
    "facts.embeddings",
    "archive.threshold",
    "archive.strategy",
    "archive.running_tokens",
    "workspace.enabled",
    "workspace.max_tokens",
)
#: The key of the snapshot in a call's options.
KEY = "moment"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """When and from what a window was made."""

    at: datetime
    #: The owner of the conversation.
    owner: str | None
    #: The state of the log: its last entry, the last reset, what the current checkpoint covers, and that
    #: checkpoint's `seq`.
    last_seq: int
    reset_seq: int
    covered_through_seq: int
    checkpoint_seq: int | None
    live_turns: int
    live_tokens: int
    #: The number of steps of the open turn.
    steps: int
    #: Safety data of the session, which has no history to read it from.
    profile: JsonObject | None
    settings: Mapping[str, JsonValue]
    #: What the tiers recorded.
    traces: Mapping[str, JsonValue]
    #: Hash of all messages.
    messages_hash: str
    #: The number of messages of the open turn; None for calls recorded before this field existed.
    messages: int | None = None

    def to_json(self) -> JsonObject:
        return {name: getattr(self, name) for name in _NAMES} | {"at": self.at.isoformat()}


_NAMES = tuple(known.name for known in fields(Snapshot))


def snapshot_of(
    view: LogView, settings: Settings, traces: Mapping[str, JsonValue], at: datetime, messages_hash: str
) -> Snapshot:
    head = view.head
    return Snapshot(
        at=at,
        owner=head.scope.user,
        last_seq=head.last_seq,
        reset_seq=head.reset_seq,
        covered_through_seq=head.covered_through_seq,
        checkpoint_seq=None if view.checkpoint is None else view.checkpoint.seq,
        live_turns=head.live_turns,
        live_tokens=head.live_tokens,
        steps=0 if view.open_turn is None else len(view.open_turn.steps),
        messages=0 if view.open_turn is None else len(view.open_turn.messages),
        profile={key: value for key, value in (view.profile or {}).items() if key in ZH.safety} or None,
        settings=_deciding(settings),
        traces=traces,
        messages_hash=messages_hash,
    )


@lru_cache(maxsize=16)
def _deciding(settings: Settings) -> Mapping[str, JsonValue]:
    """The settings that decide what a window contains: the same for every window of a memory."""
    return {name: attrgetter(name)(settings) for name in DECIDING}


def present_names(settings: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Recorded settings by the names they have now: some had others when they were recorded."""
    return {RENAMED.get(name, name): value for name, value in settings.items()}


def recorded_snapshot(call: WindowRecord) -> Snapshot | None:
    """The snapshot of a call; None for calls recorded before snapshots were introduced."""
    value = cast("Mapping[str, Any] | None", call.options.get(KEY))
    if value is None:
        return None
    given: dict[str, Any] = {name: value.get(name) for name in _NAMES}
    given["at"] = datetime.fromisoformat(value["at"])
    given["settings"] = present_names(given["settings"])
    return Snapshot(**given)


def with_settings(settings: Settings, values: Mapping[str, JsonValue]) -> Settings:
    """The settings with these values replaced, by dotted name; raises `SettingsError` for a wrong one."""
    changed: dict[str, Any] = {}
    try:
        for name, value in values.items():
            section, _, key = name.rpartition(".")
            if section:
                changed[section] = replace(changed.get(section, getattr(settings, section)), **{key: value})
            else:
                changed[name] = value
        return replace(settings, **changed)
    except TypeError as error:  # a setting that this version does not have
        raise SettingsError(str(error)) from error


def listed(value: JsonValue) -> Sequence[Any]:
    """A trace that is a list; empty for anything else."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()
