"""Images and files: those a turn refers to exist and are what was attached."""

from collections.abc import Iterable
from functools import partial
from hashlib import sha256

import anyio.to_thread

from pagefile.content import Media, media_in
from pagefile.engine.verifying.findings import Finding, Tally, at
from pagefile.errors import NotFoundError, StoreCorruptError
from pagefile.ports import MediaStore
from pagefile.records import Turn
from pagefile.shapes import note


class Attachments:
    """Checks the bytes that turns refer to."""

    def __init__(self, media: MediaStore) -> None:
        self._media = media

    async def look(self, turns: Iterable[Turn], tally: Tally) -> list[Finding]:
        """Check every image and file of a slice of a log."""
        found: list[Finding] = []
        for turn in turns:
            for blob, media in {media.blob: media for media in media_in(turn.messages)}.items():
                if blob is not None:
                    tally.checked["attachments"] += 1
                    found += await self._one(turn, media, blob)
        return found

    async def _one(self, turn: Turn, media: Media, blob: str) -> list[Finding]:
        told = partial(at, turn.scope, "damage", turn=turn.id, seq=turn.seq)
        what = f"{note(media)} in turn {turn.id!r}"
        try:
            data = await self._media.load(turn.scope, blob)
        except NotFoundError:
            return [told("media-ref", f"the bytes of {what} are not there")]
        except StoreCorruptError as error:
            return [told("media-bytes", f"{what}: {error}")]
        digest = await anyio.to_thread.run_sync(_digest, data)
        if digest != blob:
            return [told("media-bytes", f"the bytes of {what} have the SHA-256 {digest}, and had {blob}")]
        return []


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
