"""Which archived pages are shown in full in the window: page replacement as a pure decision.

The turn that fetched or loaded a page sees it whole. Afterwards the page leaves, unless it is pinned, or it
was used in two turns at most three apart: then it stays until three turns pass without a use. Pages that stay
never take more than the working set's share of the window in total.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

#: Two uses within this many turns make a page resident, and this many turns without one evict it.
REUSE_TURNS = 3
#: Resident pages of earlier turns take at most the window divided by this.
WORKING_SET_SHARE = 4


@dataclass(frozen=True, slots=True)
class Use:
    """A page was fetched or loaded in a turn; turns are numbered from the oldest."""

    turn: int
    uuid: str


def resident_pages(
    uses: Sequence[Use], now: int, *, pinned: AbstractSet[str], tokens: Mapping[str, int], limit_tokens: int
) -> list[str]:
    """The pages of earlier turns that stay in full, most recently used first, within the working set.

    `now` is the number of the turn this window is for; `tokens` has every page's size, and a page without one
    is left out.
    """
    by_page: dict[str, list[int]] = {}
    for use in uses:
        by_page.setdefault(use.uuid, []).append(use.turn)
    staying = [
        uuid
        for uuid, turns in by_page.items()
        if uuid in pinned or _keeps_being_used(sorted(set(turns)), now)
    ]
    staying += sorted(pinned - by_page.keys())
    staying.sort(key=lambda uuid: (uuid not in pinned, -max(by_page.get(uuid, [0])), uuid))
    return _within(staying, tokens, limit_tokens)


def _keeps_being_used(turns: Sequence[int], now: int) -> bool:
    """Whether two uses were close together and no long pause followed."""
    established = False
    for earlier, later in pairwise(turns):
        close = later - earlier < REUSE_TURNS
        established = close or (established and later - earlier <= REUSE_TURNS)
    return established and now - turns[-1] <= REUSE_TURNS


def _within(uuids: Sequence[str], tokens: Mapping[str, int], limit_tokens: int) -> list[str]:
    kept: list[str] = []
    for uuid in uuids:
        size = tokens.get(uuid)
        if size is not None and size <= limit_tokens:
            kept.append(uuid)
            limit_tokens -= size
    return kept


def demoted_results(sizes: Sequence[tuple[str, int]], limit_tokens: int) -> set[str]:
    """Which full results are demoted when many medium ones accumulate: the oldest, until the rest fits or
    only the newest is left.

    `sizes` are (key, tokens) of results shown in full, oldest first.
    """
    over = sum(tokens for _, tokens in sizes) - limit_tokens
    demoted: set[str] = set()
    for key, tokens in sizes[:-1]:
        if over <= 0:
            break
        demoted.add(key)
        over -= tokens
    return demoted
