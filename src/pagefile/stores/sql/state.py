"""A conversation as a write finds it."""

from dataclasses import dataclass
from datetime import datetime

from pagefile.ports import NO_LABELS, TurnDraft
from pagefile.records import Head, Scope
from pagefile.stores import rules
from pagefile.stores.sql.plays import Play, Row
from pagefile.stores.sql.rows import head_of, keys, moment

#: The columns of the fragment `counted` of log.sql: a head without the epoch, which a write does not ask for.
_COUNTED_COLUMNS = 13


@dataclass(frozen=True, slots=True)
class State:
    """What the statement `state` found. Most writes need only a little of it: the rest is made when asked for."""

    scope: Scope
    #: None before the first write to the conversation.
    row: Row | None
    next_seq: int
    last_created: datetime | None

    @classmethod
    def of(cls, found: Row | None, scope: Scope) -> "State":
        """The conversation, which must be this scope's."""
        if found is None:
            return cls(scope, None, 1, None)
        rules.check_owner(scope, found[0])
        last_created = found[_COUNTED_COLUMNS]
        return cls(scope, found, found[4] + 1, None if last_created is None else moment(last_created))

    @property
    def head(self) -> Head:
        return (
            rules.no_head(self.scope)
            if self.row is None
            else head_of(self.row[:_COUNTED_COLUMNS], self.scope)
        )

    @property
    def agent(self) -> str | None:
        return None if self.row is None else self.row[1]

    @property
    def versions(self) -> int:
        """How many checkpoints there were."""
        return 0 if self.row is None else self.row[_COUNTED_COLUMNS + 1]

    @property
    def version(self) -> int:
        """The checkpoint in force, 0 when there is none."""
        return self.versions if self.row is not None and self.row[_COUNTED_COLUMNS + 2] else 0

    def knows(self, draft: TurnDraft) -> bool:
        """Whether a done turn tells nothing new of the conversation itself."""
        found = self.row
        return (
            found is not None
            and draft.status == "done"
            and draft.agent in (None, found[1])
            and draft.labels == NO_LABELS
        )


def state_of(scope: Scope) -> Play[State]:
    """The conversation, locked until the transaction ends."""
    return State.of((yield "row", "state", keys(scope)), scope)
