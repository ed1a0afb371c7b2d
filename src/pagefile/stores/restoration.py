"""Putting the entries of a conversation back as they were: what is checked before, the same for every store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Unpack

from pagefile import ports
from pagefile.content import JsonObject
from pagefile.errors import ConflictError, InvalidArgumentError
from pagefile.records import Entry, Scope, Turn
from pagefile.stores.encoding import json_copy
from pagefile.stores.rules import check_blobs, conversation_of


@dataclass(frozen=True, slots=True)
class Restoration:
    """Entries of one conversation, checked, in the order in which they ended; open turns last. The rest is `Beside`."""

    scope: Scope
    ended: tuple[Entry, ...]
    open: tuple[Turn, ...]
    #: What an empty conversation gets besides them.
    agent: str | None = None
    session: JsonObject | None = None
    labels: ports.Labels = ports.NO_LABELS
    blobs: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    marks: Mapping[str, int] = field(default_factory=dict[str, int])
    expect_empty: bool = False
    epoch: int | None = None
    origin: Scope | None = None

    @property
    def fenced(self) -> list[Scope]:
        """What must not have been erased since the epoch."""
        return [self.scope, *([] if self.origin is None else [self.origin])]

    @property
    def turns(self) -> list[Turn]:
        return [entry for entry in (*self.ended, *self.open) if isinstance(entry, Turn)]


def restoration(entries: Sequence[Entry], **beside: Unpack[ports.Beside]) -> Restoration:
    check_blobs(beside.get("blobs") or {})
    scopes = {(entry.scope.tenant, entry.scope.user, entry.scope.conversation) for entry in entries}
    if len(scopes) != 1:
        raise InvalidArgumentError(
            f"Restore one conversation at a time: these entries have {len(scopes)} scopes."
        )
    if len({entry.id for entry in entries}) < len(entries):
        raise InvalidArgumentError("Two of the entries to restore have the same id.")
    conversation_of(entries[0].scope)
    open_turns = tuple(entry for entry in entries if isinstance(entry, Turn) and entry.status == "open")
    ended = [entry for entry in entries if not (isinstance(entry, Turn) and entry.status == "open")]
    if (value := beside.get("session")) is not None:
        beside["session"] = json_copy(value)
    given: dict[str, Any] = {name: one for name, one in beside.items() if one is not None}
    return Restoration(entries[0].scope, tuple(sorted(ended, key=_seq_of)), open_turns, **given)


def check_vacant(plan: Restoration) -> None:
    if plan.expect_empty:
        raise ConflictError(
            f"There is a conversation {plan.scope.conversation!r} already: give the new one another id."
        )


def _seq_of(entry: Entry) -> int:
    if entry.seq is None:
        raise InvalidArgumentError(f"Entry {entry.id!r} ended and has no place in the log (seq).")
    return entry.seq


def check_whole(ended: Sequence[Entry]) -> None:
    """Entries that keep their positions must fill every position once, in the order of time."""
    if [entry.seq for entry in ended] != list(range(1, len(ended) + 1)):
        raise InvalidArgumentError(
            "The entries to restore have gaps: into an empty conversation all of them belong, 1, 2, 3 …"
        )
    if any(late.created <= early.created for early, late in pairwise(ended)):
        raise InvalidArgumentError("The entries to restore go back in time: `created` must rise with `seq`.")
