"""What conversations would have cost without Pagefile: sums over the log, cached because done turns never change."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pagefile.lru import Lru
from pagefile.ports import EntryQuery, LogReader
from pagefile.records import Scope, Step, Turn
from pagefile.tiers.page_in import LOADING_TOOLS
from pagefile.window.measure import step_tokens

_BATCH = 500
#: Conversations whose sums are cached.
_KEPT = 64


@dataclass(slots=True)
class _Sums:
    #: Tokens of all done turns up to each `seq`, from 0.
    by_place: list[int] = field(default_factory=lambda: [0])
    #: The last turn included, to detect that the log was replaced.
    last: Turn | None = None

    def add(self, turn: Turn) -> None:
        seq = turn.seq or 0
        # Checkpoints, resets and aborted turns between two turns cost nothing.
        self.by_place += [self.by_place[-1]] * (seq - len(self.by_place))
        self.by_place.append(self.by_place[-1] + full_tokens(turn))
        self.last = turn


class Ledger:
    """Reads each done turn of a conversation once."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._kept: Lru[tuple[str, str | None], _Sums] = Lru(_KEPT)

    async def sums(self, scope: Scope, through: int) -> Sequence[int]:
        """Full cost of the done turns up to each `seq`, from 0 to at least `through`."""
        key = scope.tenant, scope.conversation
        sums = self._kept.get(key)
        if sums is None or not await self._still_there(scope, sums):
            sums = self._kept[key] = _Sums()
        while len(sums.by_place) <= through:
            after = len(sums.by_place) - 1
            query = EntryQuery(scope, statuses=frozenset({"done"}), after_seq=after, limit=_BATCH)
            turns = await self._reader.entries(query)
            for turn in turns:
                # A concurrent call may have added it already.
                if isinstance(turn, Turn) and turn.seq is not None and turn.seq >= len(sums.by_place):
                    sums.add(turn)
            if len(turns) < _BATCH:
                break
        rest = through + 1 - len(sums.by_place)
        return [*sums.by_place, *[sums.by_place[-1]] * rest] if rest > 0 else sums.by_place

    def forget(self) -> None:
        """Something was erased: drop all sums."""
        self._kept.clear()

    async def _still_there(self, scope: Scope, sums: _Sums) -> bool:
        """Another process may have erased the conversation, and a new one may have started under its id."""
        if sums.last is None or sums.last.seq is None:
            return True
        found = await self._reader.entries(EntryQuery(scope, after_seq=sums.last.seq - 1, limit=1))
        return bool(found) and found[0].id == sums.last.id


def full_tokens(turn: Turn) -> int:
    """A turn with every tool result in full, without the steps that only loaded pages."""
    kept = sum(map(step_tokens, turn.steps))
    return turn.tokens - kept + sum(map(full_step_tokens, turn.steps))


def full_step_tokens(step: Step) -> int:
    """A step with its result in full; 0 if it only loaded a page."""
    if step.tool in LOADING_TOOLS:
        return 0
    away = step.page is not None and not step.whole
    return step_tokens(step) + (step.page_tokens - step.result_tokens if away else 0)
