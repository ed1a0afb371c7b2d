"""A process that puts vectors and says so, to be killed while it does."""

import asyncio

import numpy as np

from pagefile.ports import EmbeddingModel, SinceRequest, VectorRow
from pagefile.records import Scope
from pagefile.stores import open_store

MODEL = EmbeddingModel("test", 256)
USER = Scope("tenant", "ada")


def vector_of(turn_id):
    """The vector of a turn: its own direction, so that a torn one shows."""
    return np.random.default_rng(list(turn_id.encode())).normal(size=MODEL.dimension).astype(np.float32)


def row_of(turn):
    return VectorRow(turn.scope, turn.seq, turn.id, turn.at, vector_of(turn.id))


def put(path, acknowledged):
    """Put the vectors of every turn, again and again, a few at a time."""
    asyncio.run(_put(path, acknowledged))


async def _put(path, acknowledged):
    store = await open_store(f"sqlite:///{path}")
    index = store.vectors()
    turns = await store.source.since(SinceRequest(USER, {}, 10_000))
    while True:
        for start in range(0, len(turns), 7):
            part = turns[start : start + 7]
            await index.put(MODEL, [row_of(turn) for turn in part])
            acknowledged.send([turn.id for turn in part])
