"""A home of vectors that knows no database, as one behind a network does: everything it has is what it was given."""

import numpy as np

from pagefile.ports import Near, Shelf, VectorHome


class LooseVectors(VectorHome):
    """Rows by maker, searched one by one."""

    name = "loose"

    def __init__(self):
        self.rows = {}

    async def prepare(self, maker):
        self.rows.setdefault(maker, {})

    async def put(self, maker, rows, *, epoch=None):
        self.rows[maker] |= {(row.scope.tenant, row.scope.conversation, row.seq): row for row in rows}

    async def search(self, maker, scope, vector, limit):
        found = [
            Near(row.scope.conversation, row.seq, row.turn_id, float(np.dot(row.vector, vector)))
            for row in self.rows.get(maker, {}).values()
            if _within(row.scope, scope)
        ]
        return sorted(found, key=lambda near: -near.likeness)[:limit]

    async def shelves(self):
        return [Shelf(maker, len(rows)) for maker, rows in self.rows.items()]

    async def drop(self, maker):
        return len(self.rows.pop(maker, {}))

    async def erase(self, scope):
        before = sum(map(len, self.rows.values()))
        for rows in self.rows.values():
            for key in [key for key, row in rows.items() if _within(row.scope, scope)]:
                del rows[key]
        return before - sum(map(len, self.rows.values()))

    async def describe(self):
        return {"backend": self.name}

    async def close(self):
        pass


def _within(inner, outer):
    pairs = ((inner.tenant, outer.tenant), (inner.user, outer.user), (inner.conversation, outer.conversation))
    return all(wanted is None or mine == wanted for mine, wanted in pairs)
