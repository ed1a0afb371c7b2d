"""How the text of a page is kept: compressed when that makes it smaller, under the hash of its UTF-8."""

import hashlib
import zlib
from dataclasses import dataclass
from typing import Literal, TypeAlias

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


def unpacked(codec: Codec, data: bytes) -> str:
    """The text that was packed."""
    return (zlib.decompress(data) if codec == "zlib" else data).decode()
