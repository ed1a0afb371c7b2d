"""Images and files of turns: their bytes in `blobs`, whose they are in `attachments`."""

from collections.abc import Mapping
from typing import Any

from pagefile.ports import MediaStore
from pagefile.records import Scope
from pagefile.stores import rules
from pagefile.stores.packing import Blob, unpacked_bytes
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.lanes import Readers
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import keys


class SqliteMedia(MediaStore):
    """Rows of `attachments`."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def load(self, scope: Scope, hash: str) -> bytes:  # noqa: A002 - the port's word
        def read(connection: Connection) -> bytes:
            row: Any = connection.execute(sql("media_load"), {**keys(scope), "hash": hash}).fetchone()
            if row is None:
                raise rules.no_media(hash)
            return unpacked_bytes(*row)

        return await self._readers.run(read)


def attach(
    connection: Connection,
    scope: Scope,
    turn_id: str,
    media_types: Mapping[str, str],
    blobs: Mapping[str, Blob],
) -> None:
    """Write what a turn brought, in its transaction."""
    for key, media_type in media_types.items():
        put_blob(connection, blobs[key])
        values = {**keys(scope), "id": turn_id, "hash": key, "media_type": media_type}
        connection.execute(sql("attach"), values)


def put_blob(connection: Connection, blob: Blob) -> None:
    """Keep bytes under their hash, once."""
    connection.execute(sql("blob_put"), {"hash": blob.hash, "codec": blob.codec, "data": blob.data})
