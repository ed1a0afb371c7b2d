"""A recorded window that is being rebuilt, as the tiers see it."""

from collections.abc import Mapping
from dataclasses import dataclass

from pagefile.records import JsonValue, Scope, Turn
from pagefile.window.receipt import Receipt


@dataclass(frozen=True, slots=True)
class Before:
    """The original window, if it is compared with a changed one."""

    turns: tuple[Turn, ...]
    query: str | None

    def turn_ids(self) -> list[str]:
        """The turns it was made of."""
        return [turn.id for turn in self.turns]


@dataclass(frozen=True, slots=True)
class PastWindow:
    """What was recorded with a call, and what is different this time."""

    #: The conversation, with its owner at the time.
    scope: Scope
    #: What each tier recorded, by name.
    traces: Mapping[str, JsonValue]
    receipt: Receipt
    #: Changed arguments and settings, by dotted name; empty to rebuild the window as it was.
    changes: Mapping[str, JsonValue]
    #: The original window, if this one has changes.
    before: Before | None = None

    def changed(self, *names: str) -> bool:
        """Whether one of these was changed; a name that ends with a dot is a whole section."""
        return any(
            change == name or (name.endswith(".") and change.startswith(name))
            for change in self.changes
            for name in names
        )
