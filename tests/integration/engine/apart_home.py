"""An index of vectors outside the database, in a dict: it can be away, and other memories may open it."""

from pagefile.errors import StoreUnavailableError
from pagefile.ports import Collection, VectorHit, VectorIndex
from pagefile.stores.milvus.schema import keys_of


class ApartIndex(VectorIndex):
    """As Milvus is to a memory, without its seconds."""

    name = "apart"
    apart = True

    def __init__(self, rows=None):
        #: By model, tenant, conversation and place: the row and the epoch it was made in.
        self.rows = {} if rows is None else rows
        self.away = False
        #: Called behind a `put`, once.
        self.behind_put = None

    def check(self):
        if self.away:
            raise StoreUnavailableError("it is away")

    async def prepare(self, model):
        self.check()

    async def put(self, model, rows, *, epoch=None):
        self.check()
        for row in rows:
            self.rows[model, row.scope.tenant, row.scope.conversation, row.seq] = row, epoch or 0
        if self.behind_put is not None:
            behind, self.behind_put = self.behind_put, None
            await behind()

    async def search(self, model, scope, vector, limit):
        self.check()
        found = [row for (by, *_), (row, _) in self.rows.items() if by == model and row.scope.within(scope)]
        return [VectorHit(row.scope.conversation, row.seq, row.turn_id, 1.0) for row in found][:limit]

    async def collections(self):
        self.check()
        models = [key[0] for key in self.rows]
        return [Collection(model, models.count(model)) for model in dict.fromkeys(models)]

    async def drop(self, model):
        raise NotImplementedError

    async def erase(self, scope):
        self.check()
        return self._remove([key for key, (row, _) in self.rows.items() if row.scope.within(scope)])

    async def erase_before(self, erased):
        self.check()

        def goes(row, epoch):
            return any(epoch < erased.get(key, 0) for key in keys_of(row.scope).values())

        return self._remove([key for key, (row, epoch) in self.rows.items() if goes(row, epoch)])

    async def describe(self):
        self.check()
        return {"backend": "dict", "version": None, "place": None}

    async def close(self):
        """There is nothing to let go of."""

    def _remove(self, keys):
        for key in keys:
            del self.rows[key]
        return len(keys)
