"""Where a client's history is in a conversation of the log."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pagefile.engine import Conversation
from pagefile.gateway.exchanges import Exchange, base_key, continued, is_same, same_answer
from pagefile.records import Turn


@dataclass(frozen=True, slots=True)
class Found:
    """A conversation that has part of the history."""

    chat: Conversation
    turns: Sequence[Turn]
    #: The last exchange that it has; the running one if that is open.
    at: int
    turn: Turn
    #: The keys of the exchanges in it, where the client left out the beginning.
    keys: tuple[str, ...] = ()
    #: The ids of turns that other requests are having answered.
    others: Collection[str] = ()

    @property
    def goes_on(self) -> bool:
        """Whether other turns were answered after it, or are being answered."""
        place = [one.id for one in self.turns].index(self.turn.id)
        later = [one for one in self.turns[place + 1 :] if base_key(one.id) != base_key(self.turn.id)]
        return any(one.status == "done" or one.id in self.others for one in later)


def matched(
    chat: Conversation, turns: Sequence[Turn], found: Sequence[Exchange], others: Collection[str]
) -> Found | None:
    """The last of the exchanges that the turns have, by their keys."""
    by_key: dict[str, Turn] = {}
    for turn in turns:
        if turn.id in others:
            continue
        key = base_key(turn.id)
        if key not in by_key or by_key[key].status != "done":
            by_key[key] = turn
    running = by_key.get(found[-1].key)
    # One that was given up is asked again.
    if running is not None and (
        running.status == "open" or (running.status == "aborted" and running is turns[-1])
    ):
        return Found(chat, turns, len(found) - 1, running, others=others)
    for at in range(len(found) - 2, -1, -1):
        turn = by_key.get(found[at].key)
        if turn is not None and same_answer(turn.assistant or "", found[at].answer):
            return Found(chat, turns, at, turn, others=others)
    return None


def continued_in(
    chat: Conversation,
    turns: Sequence[Turn],
    found: Sequence[Exchange],
    least: int,
    others: Collection[str] = (),
) -> Found | None:
    """The place of a history whose beginning the client left out, by what was said: clients keep the newest messages."""
    told = found[:-1]
    for end in range(len(turns), len(told) - 1, -1):
        same = turns[end - len(told) : end]
        if not told or not all(
            is_same(turn.user or "", turn.assistant or "", one) for turn, one in zip(same, told, strict=True)
        ):
            continue
        if sum(len(turn.user or "") + len(turn.assistant or "") for turn in same) < least:
            return None
        keys = tuple(base_key(turn.id) for turn in same)
        running = next(
            (
                turn
                for turn in turns[end:]
                if base_key(turn.id) == continued(found, keys)[-1].key
                and turn.status == "open"
                and turn.id not in others
            ),
            None,
        )
        at = len(told) - 1 if running is None else len(told)
        return Found(chat, turns, at, running or same[-1], keys, others)
    return None
