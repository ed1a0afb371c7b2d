"""The raw search: looks for marks in the bytes of files, whatever their format, and in the keys of Redis."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import redis

from .marking import compressed, marks_in


@dataclass
class Found:
    """Where marks lay, and how many bytes were looked through."""

    places: dict[str, set[str]] = field(default_factory=dict)
    size: int = 0
    files: int = 0

    def look(self, place: str, data: bytes, marks: Iterable[str]) -> None:
        """Look for any mark in these bytes, and for pages of these marks in their compressed form."""
        self.size += len(data)
        found = marks_in(data) | {mark for mark in marks if compressed(mark) in data}
        if found:
            self.places.setdefault(place, set()).update(found)

    def look_into(self, folder: Path, marks: Iterable[str]) -> None:
        """The same for every file below a folder."""
        known = list(marks)
        for path in sorted(folder.rglob("*")):
            try:
                data = path.read_bytes() if path.is_file() else None
            except FileNotFoundError:
                # Gone while we looked: the next search sees whether it came back.
                continue
            if data is not None:
                self.files += 1
                self.look(str(path.relative_to(folder)), data, known)


def look_into_redis(found: Found, url: str, marks: Iterable[str]) -> None:
    """Every key with its value; then it is told to `SAVE`, and its dump is one of the files."""
    known = list(marks)
    with redis.Redis.from_url(url) as server:
        for key in server.scan_iter(count=1000):
            found.look("Redis key", key, known)
            found.look(f"Redis value {key.decode(errors='replace')}", server.get(key) or b"", known)
        server.save()
