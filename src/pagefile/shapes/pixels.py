"""The estimated cost of an image or a file: providers count pixels, seconds and pages, each in their own way."""

import math
import struct
from collections.abc import Callable

from pagefile.content import Media, Shape

#: An image of unknown size: OpenAI's price of 1024 × 1024 pixels in high detail.
IMAGE_TOKENS = 765
#: A page of a document, and its assumed size in bytes.
PAGE_TOKENS = 1_500
_PAGE_BYTES = 50_000
#: Bytes of sound per token: ten tokens per second of 16-bit mono at 24 kHz.
_SOUND_BYTES = 4_800
#: OpenAI's price of an image in low detail, whatever its size.
_LOW_TOKENS = 85
#: How much of a long text is counted: the number of samples, and the characters in each.
_SAMPLES, _SAMPLE_CHARS = 50, 1_000


def estimated_tokens(media: Media, data: bytes | None, shape: Shape) -> int:
    """The estimate for media given as bytes or by reference, in the shape it came in."""
    if media.kind == "image":
        return _image_tokens(data, shape, low=media.detail == "low")
    if data is not None and is_text(media):
        return sampled_tokens(data.decode("utf-8", "replace"), _rough_tokens)
    unit, tokens = (_SOUND_BYTES, 1) if media.kind == "audio" else (_PAGE_BYTES, PAGE_TOKENS)
    return tokens * max(1, math.ceil(len(data or b"") / unit))


def is_text(media: Media) -> bool:
    """Whether it is a document that is sent, and billed, as its text."""
    return media.kind == "file" and media.media_type.startswith("text/")


def sampled_tokens(text: str, count: Callable[[str], int]) -> int:
    """The tokens of a text; a long one is estimated from samples, since counting it would block the event loop."""
    if len(text) <= _SAMPLES * _SAMPLE_CHARS:
        return count(text)
    stride = len(text) // _SAMPLES
    counted = sum(count(text[at : at + _SAMPLE_CHARS]) for at in range(0, stride * _SAMPLES, stride))
    return math.ceil(counted * len(text) / (_SAMPLES * _SAMPLE_CHARS))


def _rough_tokens(text: str) -> int:
    """Without a tokenizer: one token per Chinese character, or per three letters."""
    return math.ceil(len(text.encode()) / 3)


def _image_tokens(data: bytes | None, shape: Shape, *, low: bool) -> int:
    if low:
        return _LOW_TOKENS
    size = None if data is None else pixels(data)
    if size is None:
        return IMAGE_TOKENS
    return area_tokens(*size) if shape == "anthropic" else tile_tokens(*size)


def area_tokens(width: int, height: int) -> int:
    """Anthropic's published price: scaled to fit 1568 × 1568, one token per 750 pixels."""
    shrunk = min(1.0, 1568 / max(width, height, 1))
    return max(1, math.ceil(width * shrunk * height * shrunk / 750))


def tile_tokens(width: int, height: int) -> int:
    """OpenAI's published price: scaled to fit 2048 × 2048, then to a short side of 768; 170 per tile of 512, plus 85."""
    shrunk = min(1.0, 2048 / max(width, height, 1))
    shrunk *= min(1.0, 768 / max(1.0, min(width, height) * shrunk))
    tiles = math.ceil(width * shrunk / 512) * math.ceil(height * shrunk / 512)
    return _LOW_TOKENS + 170 * max(1, tiles)


def pixels(data: bytes) -> tuple[int, int] | None:
    """Width and height from the header of a PNG, GIF, JPEG or WebP; None for anything else."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            return struct.unpack(">II", data[16:24])
        if data.startswith((b"GIF87a", b"GIF89a")):
            return struct.unpack("<HH", data[6:10])
        if data.startswith(b"\xff\xd8"):
            return _jpeg(data)
        if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            return _webp(data)
    except (struct.error, IndexError):
        return None
    return None


#: Markers of a JPEG frame: C0 to CF except the tables C4, C8 and CC.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def _jpeg(data: bytes) -> tuple[int, int] | None:
    place = 2
    while place + 9 <= len(data) and data[place] == 0xFF:
        if data[place + 1] in _FRAMES:
            height, width = struct.unpack(">HH", data[place + 5 : place + 9])
            return width, height
        place += 2 + struct.unpack(">H", data[place + 2 : place + 4])[0]
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8 ":
            width, height = struct.unpack("<HH", data[26:30])
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            bits = struct.unpack("<I", data[21:25])[0]
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            wide, high = data[24:27], data[27:30]
            return int.from_bytes(wide, "little") + 1, int.from_bytes(high, "little") + 1
        case _:
            return None
