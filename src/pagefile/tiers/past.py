"""A recorded window that is made again, as the tiers see it."""

from collections.abc import Mapping
from dataclasses import dataclass

from pagefile.records import JsonValue, Scope, Turn
from pagefile.window.receipt import Receipt


@dataclass(frozen=True, slots=True)
class Before:
    """The window as it was, when another one is compared with it."""

    turns: tuple[Turn, ...]
    query: str | None

    def turn_ids(self) -> list[str]:
        """The turns it was made of."""
        return [turn.id for turn in self.turns]


@dataclass(frozen=True, slots=True)
class PastWindow:
    """What was written down with a call, and what is different this time."""

    #: The conversation, and whose it was.
    scope: Scope
    #: What each tier wrote down, by its name.
    traces: Mapping[str, JsonValue]
    receipt: Receipt
    #: Arguments and settings that are not what they were, by their dotted names; none for the window as it was.
    changes: Mapping[str, JsonValue]
    #: The window as it was, when this one has changes.
    before: Before | None = None

    def changed(self, *names: str) -> bool:
        """Whether one of these is not what it was; a name that ends with a dot is a whole section."""
        return any(
            change == name or (name.endswith(".") and change.startswith(name))
            for change in self.changes
            for name in names
        )
