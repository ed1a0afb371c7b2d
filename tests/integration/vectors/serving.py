"""One Milvus server for a test process, started when the first test asks for it."""

import atexit
from functools import cache

from tests.servers.milvus import MilvusServer


@cache
def milvus():
    """The server of this run; it ends with the run, whatever happened in it."""
    server = MilvusServer()
    server.start()
    atexit.register(server.close)
    return server


async def emptied(home):
    """Without what the test before left: a collection is dropped in a moment and made in seconds."""
    for collection in await home.collections():
        await home.drop(collection.model)
