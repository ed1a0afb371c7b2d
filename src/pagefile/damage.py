"""Stored rows that could not be read as they were written. They are left out or shown in part; everything else goes on.

What is found is logged once, and is named by `verify`, `export` and `doctor`.
"""

import logging
from collections import deque
from collections.abc import Mapping
from typing import Any

logger = logging.getLogger("pagefile.stores")

#: What the values of a statement say about the place of a row.
_PLACE = ("tenant", "user", "conversation", "uuid", "id")
_MOST = 1000
#: Places in the order in which readers came across them, numbered, and those that are in the log.
_found: deque[tuple[int, str]] = deque(maxlen=_MOST)
_logged: set[str] = set()


def note_damage(statement: str, values: Mapping[str, Any], why: str) -> None:
    """Note that a row which this statement reads is damaged; `why` must not quote its contents."""
    place = ", ".join(f"{name} {values[name]!r}" for name in _PLACE if isinstance(values.get(name), str))
    told = f"{place or 'a row'} ({statement}): {why}"
    _found.append((damage_mark() + 1, told))
    if told not in _logged and len(_logged) < _MOST:
        _logged.add(told)
        logger.error("damaged data: %s. `pagefile verify --full` says more", told)


def damage_mark() -> int:
    """How often this process came across damage so far."""
    return _found[-1][0] if _found else 0


def damage_since(mark: int) -> tuple[str, ...]:
    """What it came across after that, each place once."""
    return tuple(dict.fromkeys(told for number, told in tuple(_found) if number > mark))


def kind_of(error: Exception) -> str:
    """What is wrong, without the contents that some errors quote."""
    return f"it cannot be read: {type(error).__name__}"
