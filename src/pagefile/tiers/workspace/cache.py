"""How long an earlier answer to a call holds: `CallCache`."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from pagefile.lru import Lru
from pagefile.tiers.workspace.calls import ToolCall
from pagefile.tiers.workspace.effects import affects

#: Calls remembered per run; the least recently used is evicted first.
MAX_CALLS = 64

T = TypeVar("T")


class _Kept(NamedTuple, Generic[T]):
    call: ToolCall
    value: T
    at: float


#: Equal calls that run at once.
_RUNNING = 7


class CallCache(Generic[T]):
    """Answers to calls, until they are too old or what they read has been changed."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._kept: Lru[str, _Kept[T]] = Lru(MAX_CALLS)
        #: How many changes there had been when each of the equal calls that are still running was made.
        self._begun: Lru[str, list[int]] = Lru(MAX_CALLS)
        self._changes = 0

    def find(self, call: ToolCall, fresh_s: float = 0) -> tuple[T, float] | None:
        """The answer to an equal call and its age in seconds; with `fresh_s`, no older one."""
        found = self._kept.get(call.key)
        age_s = 0.0 if found is None else max(0.0, self._now() - found.at)
        if found is None or 0 < fresh_s < age_s:
            self.drop(call)
            self._begun[call.key] = [*self._begun.get(call.key, [])[-_RUNNING:], self._changes]
            return None
        return found.value, age_s

    def keep(self, call: ToolCall, value: T) -> None:
        """Keep an answer, unless something was changed while the tool was running."""
        begun = self._begun.pop(call.key, None) or [self._changes]
        if begun[1:]:
            self._begun[call.key] = begun[1:]
        # Equal calls cannot be told apart: assume the oldest one ended.
        if begun[0] == self._changes:
            self._kept[call.key] = _Kept(call, value, self._now())

    def drop(self, call: ToolCall) -> None:
        self._kept.pop(call.key, None)

    def changed(self, change: ToolCall) -> None:
        """Invalidate cached answers that the call may have changed."""
        self._changes += 1
        for kept in [kept for kept in self._kept.values() if affects(change, kept.call)]:
            self.drop(kept.call)

    def clear(self) -> None:
        self._kept.clear()
        self._begun.clear()
