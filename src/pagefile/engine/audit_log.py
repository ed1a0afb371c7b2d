"""Who read and changed what: a line for each request, in a file for each day.

Files, not rows: a read must not become a write to the database, and whoever may change the database should not be able to change this.
Lines name the key, the verb, the tenant, the user and the conversation, never what was said. They are only ever appended, by any number
of processes, and survive a crash of the process, not a power cut. Erasing a user leaves them: that somebody was read, and erased, is
what they are for.
"""

import json
import logging
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from pagefile.errors import SettingsError
from pagefile.settings import PolicySettings

logger = logging.getLogger("pagefile")

_NAME = re.compile(r"audit-(\d{4}-\d{2}-\d{2})\.jsonl")
#: A part of a file that is read at once, from its end.
_PART = 1 << 16
#: Longer names are cut: a line must be written in one piece.
_MOST_CHARS = 300


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One request, or one thing the service did by itself."""

    at: str
    #: The id of the key; None for a caller on this machine without one, and for the service itself.
    key: str | None
    #: What was done: the method and the route, or a word for what the service did.
    verb: str
    tenant: str | None
    user: str | None = None
    conversation: str | None = None
    #: The HTTP status, 0 where there is none.
    status: int = 0
    #: How many things it concerned, where that is known.
    count: int | None = None


class AuditLog:
    """Appends and reads lines."""

    def __init__(self, folder: Path, days: int) -> None:
        self._folder, self._days = folder, days
        self._today: tuple[date, int] | None = None
        self._failing = False

    @classmethod
    def of(cls, policy: PolicySettings) -> "AuditLog | None":
        """The log of the settings; None if there is none."""
        if policy.audit is None:
            return None
        folder = Path(policy.audit).expanduser()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(
                f"policy.audit is {policy.audit!r}, where no folder can be made: {error}."
            ) from error
        if not os.access(folder, os.W_OK):
            raise SettingsError(f"policy.audit is {policy.audit!r}, which this user may not write to.")
        return cls(folder, policy.audit_days)

    def note(self, entry: AuditEntry) -> None:
        """Append an entry. A full disk does not stop the service, which says so in its log once."""
        line = {name: _cut(value) for name, value in asdict(entry).items() if value is not None}
        try:
            os.write(self._file(), json.dumps(line, ensure_ascii=False).encode() + b"\n")
            self._failing = False
        except OSError:
            if not self._failing:
                logger.exception("the audit log cannot be written, and requests go on without it")
            self._failing = True

    def _file(self) -> int:
        now = datetime.now(UTC).date()
        if self._today is None or self._today[0] != now:
            self.close()
            path = self._folder / f"audit-{now.isoformat()}.jsonl"
            self._today = now, os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._remove_old(now)
        return self._today[1]

    def _remove_old(self, now: date) -> None:
        for day, path in self._files():
            if self._days and day < now - timedelta(days=self._days):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._today is not None:
            os.close(self._today[1])
            self._today = None

    def entries(
        self, tenant: str | None, *, user: str | None = None, key: str | None = None, limit: int = 100
    ) -> list[AuditEntry]:
        """The newest entries about a tenant, or about all, newest first; of one user, or by one key, if named."""
        wanted = {
            name: value
            for name, value in {"tenant": tenant, "user": user, "key": key}.items()
            if value is not None
        }
        # A log may have millions of lines: only those that name what is wanted are parsed.
        needles = [json.dumps(value, ensure_ascii=False).encode() for value in wanted.values()]
        found: list[AuditEntry] = []
        for _, path in sorted(self._files(), reverse=True):
            for line in _backwards(path, needles):
                entry = _entry(line)
                if entry is not None and all(getattr(entry, name) == value for name, value in wanted.items()):
                    found.append(entry)
                if len(found) == limit:
                    return found
        return found

    def _files(self) -> list[tuple[date, Path]]:
        named = [(_NAME.fullmatch(path.name), path) for path in self._folder.iterdir()]
        return [(date.fromisoformat(name[1]), path) for name, path in named if name is not None]


def now_text() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _cut(value: object) -> object:
    return value[:_MOST_CHARS] if isinstance(value, str) else value


def _entry(line: bytes) -> AuditEntry | None:
    """None for a line that was cut off by a full disk."""
    try:
        said: dict[str, Any] = {"key": None, "tenant": None, **json.loads(line)}
        return AuditEntry(**said)
    except (ValueError, TypeError):
        return None


def _backwards(path: Path, needles: Sequence[bytes]) -> Iterator[bytes]:
    """The lines of a file that have all these in them, the last first, without keeping all of it in memory."""
    with path.open("rb") as file:
        place, rest = file.seek(0, os.SEEK_END), b""
        while place:
            size = min(_PART, place)
            place = file.seek(place - size)
            rest, _, lines = (file.read(size) + rest).partition(b"\n")
            file.seek(place)
            yield from _having(lines, needles)
        yield from _having(rest, needles)


def _having(lines: bytes, needles: Sequence[bytes]) -> Iterator[bytes]:
    # Most parts have nothing of a rare user: then they are not even divided.
    if all(needle in lines for needle in needles):
        for line in reversed(lines.split(b"\n")):
            if line and all(needle in line for needle in needles):
                yield line
