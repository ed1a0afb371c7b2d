"""What this process wrote a moment ago: a search must find it, though the server may not show it yet.

A distributed server makes a write visible only after a while. Waiting for that costs a search 200 to 400 ms
(measured on 2.3.5); a search that may be up to five seconds behind costs 2 ms. So searches are of the second kind, and what is
younger is searched here.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pagefile.ports import Vector, VectorHit
from pagefile.stores.vectors import rounded

#: With bounded staleness, Milvus promises to be at most 5 seconds behind.
_BEHIND_S = 10.0
#: Beyond this many it is cheaper to wait for the server.
_MOST_ROWS = 4096


@dataclass(frozen=True, slots=True)
class Written:
    """A row as it was written; without a vector, one that was deleted."""

    near: VectorHit
    keys: Mapping[str, str]
    vector: Vector | None


class Recent:
    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._now = monotonic
        self._rows: OrderedDict[str, tuple[float, Written]] = OrderedDict()
        self._strong_until = 0.0

    @property
    def consistency(self) -> Literal["Strong", "Bounded"]:
        return "Strong" if self._now() < self._strong_until else "Bounded"

    @property
    def ids(self) -> frozenset[str]:
        """Rows for which the server's answer may be out of date."""
        self._let_go()
        return frozenset(self._rows)

    def wrote(self, rows: Iterable[tuple[str, Written]]) -> None:
        """These were written, and the server has them."""
        until = self._now() + _BEHIND_S
        for key, row in rows:
            self._rows.pop(key, None)
            self._rows[key] = until, row
        self._let_go()
        if len(self._rows) > _MOST_ROWS:
            self._rows.clear()
            self.changed()

    def changed(self) -> None:
        """Rows changed that are not all known here: for a while only the server is right."""
        self._strong_until = self._now() + _BEHIND_S

    def removed(self, within: Callable[[Mapping[str, str]], bool]) -> None:
        for key in [key for key, (_, row) in self._rows.items() if within(row.keys)]:
            del self._rows[key]
        self.changed()

    def rows(self, within: Callable[[Mapping[str, str]], bool]) -> list[Written]:
        self._let_go()
        return [row for _, row in self._rows.values() if within(row.keys)]

    def search(self, within: Callable[[Mapping[str, str]], bool], vector: Vector) -> list[VectorHit]:
        return [
            replace(row.near, similarity=rounded(float(np.dot(row.vector, vector))))
            for row in self.rows(within)
            if row.vector is not None
        ]

    def _let_go(self) -> None:
        now = self._now()
        while self._rows and next(iter(self._rows.values()))[0] <= now:
            self._rows.popitem(last=False)
