"""Images and files of turns: their bytes in `blobs`, whose they are in `attachments`."""

from collections.abc import Mapping

from pagefile.ports import Extend, MediaStore, TurnDraft
from pagefile.records import Scope, Turn
from pagefile.stores import rules
from pagefile.stores.packing import Blob, packed_all, unpacked_bytes
from pagefile.stores.sql.plays import Play, Player, many, row
from pagefile.stores.sql.rows import keys


class SqlMedia(MediaStore):
    """Rows of `attachments`."""

    def __init__(self, player: Player) -> None:
        self._player = player

    async def load(self, scope: Scope, hash: str) -> bytes:  # noqa: A002 - the port's word
        found = await self._player.read(lambda: row("media_load", {**keys(scope), "hash": hash}))
        if found is None:
            raise rules.no_media(hash)
        codec, data = found
        return await self._player.compute(lambda: unpacked_bytes(codec, data))


async def packed_blobs(player: Player, blobs: Mapping[str, bytes]) -> dict[str, Blob]:
    """Files as they are kept."""
    if not blobs:
        return {}
    rules.check_blobs(blobs)
    return await player.compute(lambda: packed_all(blobs))


def attach(
    scope: Scope, turn: Turn | TurnDraft | Extend, turn_id: str, blobs: Mapping[str, Blob]
) -> Play[None]:
    """Write the files that a turn brought, in its transaction."""
    named = rules.attached(turn, blobs)
    place = {**keys(scope), "id": turn_id}
    yield from many("blob_put", [blob_values(blobs[key]) for key in named])
    yield from many(
        "attach", [{**place, "hash": key, "media_type": media_type} for key, media_type in named.items()]
    )


def blob_values(blob: Blob) -> dict[str, object]:
    """The parameters of the statement `blob_put`, which keeps bytes under their hash, once."""
    return {"hash": blob.hash, "codec": blob.codec, "data": blob.data}
