"""How the text of a page, an image or a file is kept: compressed when that makes it smaller, under the hash of its bytes."""

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pagefile.errors import StoreCorruptError

Codec: TypeAlias = Literal["raw", "zlib"]

_LEVEL = 6


@dataclass(frozen=True, slots=True)
class Blob:
    """A text or a file as it is on disk."""

    hash: str
    codec: Codec
    data: bytes


def packed(text: str) -> Blob:
    """The text as it is kept; equal texts are equal blobs."""
    return packed_bytes(text.encode())


def packed_bytes(raw: bytes) -> Blob:
    """The bytes as they are kept."""
    small = zlib.compress(raw, _LEVEL)
    key = hashlib.sha256(raw).hexdigest()
    return Blob(key, "zlib", small) if len(small) < len(raw) else Blob(key, "raw", raw)


def packed_all(blobs: Mapping[str, bytes]) -> dict[str, Blob]:
    """Files as they are kept, by their hash."""
    return {key: packed_bytes(data) for key, data in blobs.items()}


def unpacked(codec: Codec | None, data: bytes | None) -> str:
    """The text that was packed; `StoreCorruptError` when it is no longer there as it was."""
    if data is None:
        raise StoreCorruptError("The text of this page is gone from the database: restore a backup.")
    try:
        return unpacked_bytes(codec, data).decode()
    except UnicodeDecodeError as error:
        raise _damaged(error) from error


def unpacked_bytes(codec: Codec | None, data: bytes) -> bytes:
    """The bytes that were packed; `StoreCorruptError` when they are damaged."""
    try:
        return zlib.decompress(data) if codec == "zlib" else bytes(data)
    except zlib.error as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> StoreCorruptError:
    return StoreCorruptError(
        f"What is archived here is damaged ({error}): restore a backup, and let `pagefile verify` look for more."
    )
