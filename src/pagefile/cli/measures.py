"""Numbers, sizes, durations, times and ids as people write and read them: `100MB`, `30d`, `2026-01-31T09:30`."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil

import typer

from pagefile.records import within_time

_BYTES: Mapping[str, int] = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)},
}
_SECONDS: Mapping[str, int] = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_MOST_S = 1000 * 365 * 86_400

#: Characters of an id that are shown, as with commits, and the minimum needed to look one up.
SHOWN_CHARS, LEAST_CHARS = 8, 4

_AMOUNT = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([a-z]*)", re.ASCII)


def size(text: str) -> int:
    """Bytes, from `100MB`, `1.5 GiB` or a bare number."""
    amount = _amount(text, _BYTES)
    if amount is None:
        raise typer.BadParameter(f"{text!r} is not a size: write 100MB, 1.5GiB or a number of bytes")
    return int(amount)


def span(text: str) -> timedelta:
    """A duration, from `30d`, `12h` or `2w`."""
    amount = _amount(text, _SECONDS)
    if amount is None or amount > _MOST_S:
        raise typer.BadParameter(f"{text!r} is not a length of time: write 30d, 12h, 90m or 2w")
    return timedelta(seconds=amount)


def when(text: str) -> datetime:
    """A time, in UTC unless it has an offset: from `2026-01-31`, `2026-01-31T09:30` or `2026-01-31T09:30+08:00`."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time: write 2026-01-31, 2026-01-31T09:30 or 2026-01-31T09:30+08:00"
        ) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def size_text(count: int) -> str:
    """`999 B`, `12.3 kB`, `100.0 MB`."""
    if count < 1000:
        return f"{count} B"
    amount = float(count)
    for unit in ("kB", "MB", "GB"):
        amount /= 1000
        if round(amount, 1) < 1000:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1000:,.1f} TB"


def span_text(length: timedelta) -> str:
    """`30d`, `12h`, `5m`, `7s`: the largest unit that fits."""
    seconds = max(0, int(length.total_seconds()))
    for unit in ("d", "h", "m"):
        if seconds >= _SECONDS[unit]:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return f"{seconds}s"


def _amount(text: str, units: Mapping[str, int]) -> float | None:
    found = _AMOUNT.fullmatch(text.strip().lower())
    return float(found[1]) * units[found[2]] if found and found[2] in units else None


def moment(at: datetime) -> str:
    """A time in the local time zone."""
    return f"{within_time(at).astimezone():%Y-%m-%d %H:%M}"


def number(value: float) -> str:
    return f"{value:,}"


def plural(count: int, word: str) -> str:
    """`1 turn`, `2 turns`, `2 entries`."""
    if count != 1:
        word = f"{word.removesuffix('y')}ies" if word.endswith("ry") else f"{word}s"
    return f"{number(count)} {word}"


def bar(share: float, cells: int = 40) -> str:
    filled = min(cells, ceil(share * cells))
    return "█" * filled + "░" * (cells - filled)


def telling_chars(ids: Sequence[str]) -> int:
    """How many characters are needed to tell the ids apart: as many are shown, and can be given instead of the whole id."""
    longest = max(map(len, ids), default=0)
    lengths = range(SHOWN_CHARS, longest)
    return next((n for n in lengths if len({one[:n] for one in ids}) == len(ids)), longest)
