"""How the text of a page is kept: compressed when that makes it smaller, under the hash of its UTF-8."""

import hashlib
import zlib
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pagefile.errors import StoreCorruptError

Codec: TypeAlias = Literal["raw", "zlib"]

_LEVEL = 6


@dataclass(frozen=True, slots=True)
class Blob:
    """A text as it stands on disk."""

    hash: str
    codec: Codec
    data: bytes


def packed(text: str) -> Blob:
    """The text as it is kept; equal texts are equal blobs."""
    raw = text.encode()
    small = zlib.compress(raw, _LEVEL)
    key = hashlib.sha256(raw).hexdigest()
    return Blob(key, "zlib", small) if len(small) < len(raw) else Blob(key, "raw", raw)


def unpacked(codec: Codec | None, data: bytes | None) -> str:
    """The text that was packed; `StoreCorruptError` when it is no longer there as it was."""
    if data is None:
        raise StoreCorruptError("The text of this page is gone from the database: restore a backup.")
    try:
        return (zlib.decompress(data) if codec == "zlib" else data).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise StoreCorruptError(
            f"The text of this page is damaged ({error}): restore a backup, and let `pagefile verify` look for more."
        ) from error
