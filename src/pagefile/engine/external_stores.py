"""Places outside the database, such as Milvus, and the erasures they have yet to carry out.

A place may be unreachable when something is erased: the rows are removed, and the transaction that removes
them records what the place owes. It is carried out at once if possible, otherwise by any process that uses
the place, as soon as it is back. Until then nothing of it is found: what a place returns is checked against
the log.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Protocol

from pagefile.errors import PagefileError
from pagefile.ports import Erasures
from pagefile.tiers.base import Backlog, Counts, Pace, Tier

logger = logging.getLogger("pagefile")


class Apart(Protocol):
    """A place outside the database; `VectorIndex` documents the requirements."""

    @property
    def name(self) -> str: ...

    @property
    def leaves(self) -> str: ...

    async def erase_before(self, erased: Mapping[str, int]) -> int: ...


class Elsewhere(Tier):
    """Background work like a tier's, in every process that uses such a place."""

    name = "erasures"
    pace = Pace(first_sweep_s=1.0, sweep_every_s=60.0, first_rest_s=2.0, longest_rest_s=60.0, together=True)

    def __init__(self, erasures: Erasures, places: Iterable[Apart] = ()) -> None:
        self._erasures = erasures
        self._places = {place.name: place for place in places}

    def add(self, place: Apart) -> None:
        """Have a place follow every erasure from now on."""
        self._places[place.name] = place

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._places)

    async def begin(self) -> None:
        """Make future erasures concern these places; must be called before an erasure."""
        for name in self._places:
            await self._erasures.begin(name)

    async def erase(self) -> tuple[Counts, list[str]]:
        """Carry out the database's erasures, current and earlier; returns what was removed, and what remains."""
        counts: dict[str, int] = {}
        pending: list[str] = []
        for name, place in self._places.items():
            try:
                gone = await self.follow(place)
            except PagefileError as error:
                logger.warning("An erasure is still pending in %s: %s", name, error)
                continue
            if gone:
                counts["conversation_episodes"] = counts.get("conversation_episodes", 0) + gone
                pending += [place.leaves] if place.leaves else []
        pending += [
            f"what {name} holds of it, which could not be reached: nothing of it is found any more, and it is erased there "
            "as soon as a process that uses it reaches it (`pagefile doctor` says whether that is done)"
            for name in await self.owed()
        ]
        return counts, pending

    async def owed(self) -> dict[str, int]:
        """The places that have something left to erase, and the number of scopes."""
        return {name: count for name, count in (await self._erasures.places()).items() if count}

    async def maintain_all(self, backlog: Backlog) -> None:
        for place in self._places.values():
            if gone := await self.follow(place):
                logger.info("%s has caught up with erasures: %d rows were erased there.", place.name, gone)

    @property
    def drains(self) -> bool:
        return False

    async def follow(self, place: Apart) -> int:
        """Have a place carry out what it owes; returns the number of rows removed."""
        owed = await self._erasures.owed(place.name)
        if not owed.scopes:
            return 0
        gone = await place.erase_before(owed.scopes)
        await self._erasures.done(place.name, owed)
        return gone
