"""An index of vectors that knows no database, as one behind a network does: everything it has is what it was given."""

import numpy as np

from pagefile.ports import Collection, VectorHit, VectorIndex


class LooseVectors(VectorIndex):
    """Rows by model, searched one by one."""

    name = "loose"

    def __init__(self):
        self.rows = {}

    async def prepare(self, model):
        self.rows.setdefault(model, {})

    async def put(self, model, rows, *, epoch=None):
        self.rows[model] |= {(row.scope.tenant, row.scope.conversation, row.seq): row for row in rows}

    async def search(self, model, scope, vector, limit):
        found = [
            VectorHit(row.scope.conversation, row.seq, row.turn_id, float(np.dot(row.vector, vector)))
            for row in self.rows.get(model, {}).values()
            if _within(row.scope, scope)
        ]
        return sorted(found, key=lambda near: -near.similarity)[:limit]

    async def collections(self):
        return [Collection(model, len(rows)) for model, rows in self.rows.items()]

    async def drop(self, model):
        return len(self.rows.pop(model, {}))

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
