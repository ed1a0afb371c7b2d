"""Tracks how full the windows of conversations are, to know without reading the log whether a checkpoint may be due."""

from typing import TypeVar

from pagefile.lru import Lru
from pagefile.records import Scope
from pagefile.tiers.checkpoints import PREPARE_AT, WindowRules

#: Conversations tracked; for others the log must be read.
_REMEMBERED = 10_000

V = TypeVar("V")
#: A conversation of a tenant, whatever its user.
_Key = tuple[str, str | None]


class Filling:
    """The window each conversation was last read with, and the tokens of its live turns."""

    def __init__(self, default: WindowRules) -> None:
        self._default = default
        self._rules: Lru[_Key, WindowRules] = Lru(_REMEMBERED)
        self._live: Lru[_Key, int] = Lru(_REMEMBERED)

    def rules_of(self, scope: Scope) -> WindowRules:
        """The window a conversation was last read with."""
        return self._rules.get(_key(scope), self._default)

    def known(self, scope: Scope) -> bool:
        """Whether this process recently handed out a window of the conversation."""
        return _key(scope) in self._rules

    def read_with(self, scope: Scope, rules: WindowRules, live_tokens: int) -> bool:
        """A window was handed out; returns whether a checkpoint may be due."""
        self._rules[_key(scope)] = rules
        self._live[_key(scope)] = live_tokens
        return self._may_be_due(scope)

    def written(self, scope: Scope, tokens: int) -> bool:
        """A turn was completed; returns whether a checkpoint may be due, True if only the log can tell."""
        known = self._live.get(_key(scope))
        self._live[_key(scope)] = (known or 0) + tokens
        return known is None or self._may_be_due(scope)

    def measured(self, scope: Scope, live_tokens: int) -> None:
        """Store the tokens read from the log."""
        self._live[_key(scope)] = live_tokens

    def forget(self) -> None:
        """Forget how full conversations are, so that the log is read again."""
        self._live.clear()

    def _may_be_due(self, scope: Scope) -> bool:
        rules = self.rules_of(scope)
        return self._live[_key(scope)] >= PREPARE_AT * rules.threshold * rules.window_tokens


def _key(scope: Scope) -> _Key:
    return scope.tenant, scope.conversation
