"""Images and files of turns: their bytes in `blobs`, whose they are in `attachments`."""

from collections.abc import Mapping

import anyio.to_thread

from pagefile.ports import Extend, MediaStore, TurnDraft
from pagefile.records import Scope, Turn
from pagefile.stores import rules
from pagefile.stores.packing import Blob, packed_all, unpacked_bytes
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import Values
from pagefile.stores.postgres.rows import keys


class PostgresMedia(MediaStore):
    """Rows of `attachments`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, scope: Scope, hash: str) -> bytes:  # noqa: A002 - the port's word
        row = await self._database.row("media_load", {**keys(scope), "hash": hash})
        if row is None:
            raise rules.no_media(hash)
        return await anyio.to_thread.run_sync(unpacked_bytes, *row)


async def packed_off(blobs: Mapping[str, bytes]) -> dict[str, Blob]:
    """Files as they are kept; the event loop does not wait while they are made smaller."""
    if not blobs:
        return {}
    rules.check_blobs(blobs)
    return await anyio.to_thread.run_sync(packed_all, blobs)


def media_values(turn: Turn | TurnDraft | Extend, blobs: Mapping[str, Blob]) -> Values:
    """The parameters of the statements that write a turn's files; of no files there are none."""
    named = rules.attached(turn, blobs)
    kept = [blobs[key] for key in named]
    return {
        "hashes": list(named),
        "media_types": list(named.values()),
        "codecs": [blob.codec for blob in kept],
        "files": [blob.data for blob in kept],
    }
