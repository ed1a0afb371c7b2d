"""Which erasures have reached the places outside, as a dict."""

from collections.abc import Mapping

from pagefile.ports import Erasures, Owed
from pagefile.stores.inmemory.room import Room


class InMemoryErasures(Erasures):
    def __init__(self, room: Room) -> None:
        self._room = room

    async def begin(self, place: str) -> None:
        self._room.check_open()
        self._room.erasure_marks.setdefault(place, self._room.epoch)

    async def owed(self, place: str) -> Owed:
        self._room.check_open()
        since = self._room.erasure_marks.get(place, self._room.epoch)
        return Owed(since, {scope: epoch for scope, epoch in self._room.epochs.items() if epoch > since})

    async def done(self, place: str, owed: Owed) -> None:
        if self._room.erasure_marks.get(place) == owed.since:
            self._room.erasure_marks[place] = owed.through

    async def redo(self, place: str, epoch: int) -> None:
        marks = self._room.erasure_marks
        if place in marks:
            marks[place] = min(marks[place], epoch)

    async def places(self) -> Mapping[str, int]:
        return {place: len((await self.owed(place)).scopes) for place in sorted(self._room.erasure_marks)}
