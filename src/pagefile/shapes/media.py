"""Images, sounds and files in the three vendors' blocks: their metadata and their bytes."""

import hashlib
import math
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from pagefile.content import Media, Message, Other, Part, Shape, Text
from pagefile.shapes.skeleton import Blobs, Path
from pagefile.shapes.tool_arguments import decoded, encoded, spelling_of

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


def _estimated_tokens(found: "FoundMedia", shape: Shape, count: "Count | None") -> int:
    media, data = found.media, found.data
    if media.kind == "image":
        size = None if data is None else pixels(data)
        if media.detail == "low" or size is None:
            return _LOW_TOKENS if media.detail == "low" else IMAGE_TOKENS
        return area_tokens(*size) if shape == "anthropic" else tile_tokens(*size)
    if data is not None and is_text(media):
        # Without a tokenizer: one token per Chinese character, or per three letters.
        return sampled_tokens(
            _document_text(media, data), count or (lambda text: math.ceil(len(text.encode()) / 3))
        )
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
    with suppress(struct.error, IndexError):
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            return struct.unpack(">II", data[16:24])
        if data.startswith((b"GIF87a", b"GIF89a")):
            return struct.unpack("<HH", data[6:10])
        if data.startswith(b"\xff\xd8"):
            return _jpeg(data)
        if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            return _webp(data)
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


Kind = Literal["image", "audio", "file"]
Block = Mapping[str, Any]
Count = Callable[[str], int]

#: Media types by the `format` of OpenAI's sounds.
_SOUNDS = {"wav": "audio/wav", "mp3": "audio/mpeg"}
#: Who stores files given by an id, by the prefix of the URL that represents it.
_KEEPERS = {"openai": "OpenAI", "anthropic": "Anthropic"}


@dataclass(frozen=True, slots=True)
class FoundMedia:
    """A block that is an image, a sound or a file; `holes` says where its bytes were."""

    media: Media
    holes: Mapping[Path, Any] = field(default_factory=dict[Path, Any])
    data: bytes | None = None


def read_media(block: Block, count: Count | None = None) -> FoundMedia | None:
    """The media in a block, whichever vendor's it is; None if unknown."""
    kind = str(block.get("type"))
    if kind not in _READERS:
        return None
    try:
        found = _READERS[kind](block)
        tokens = _estimated_tokens(found, "anthropic" if kind in _ANTHROPIC else "openai", count)
        return replace(found, media=replace(found.media, tokens=tokens))
    except (KeyError, TypeError, AttributeError):
        # It has the type but not the fields: it is kept as it came.
        return None


def note(media: Media) -> str:
    """The text shown if the media itself cannot be."""
    size = f"{media.size:,} bytes" if media.size else ""
    about = ", ".join(filter(None, (media.name or _file_id(media), media.media_type, size)))
    return f"[{media.kind}: {about}]" if about else f"[{media.kind}]"


def named(media: Media) -> Media:
    """A version that is named instead of shown: without bytes and URL, every provider gets its note."""
    return replace(media, blob=None, url=None, name=media.name or _file_id(media))


def keeper(media: Media) -> str | None:
    """The only provider that can show it, because it was given by that provider's file id."""
    return _KEEPERS.get((media.url or "").partition(":")[0])


def _file_id(media: Media, provider: str | None = None) -> str | None:
    """Its file id at a provider: this one, or any."""
    head, _, name = (media.url or "").partition(":")
    return name if head in _KEEPERS and head == (provider or head) else None


# -- reading ----------------------------------------------------------------------------------------------------------


def _by_url(media: Media, url: str, path: Path) -> FoundMedia:
    """A `data:` URL contains the bytes; any other points to them."""
    head, comma, text = url.partition(",")
    form = head.lower()
    if not form.startswith("data:"):
        return FoundMedia(replace(media, url=url))
    if not form.endswith(";base64"):
        return FoundMedia(media)
    return _by_data(replace(media, media_type=form[5:-7].split(";")[0]), text, path, prefix=head + comma)


def _by_data(media: Media, text: str, path: Path, prefix: str = "") -> FoundMedia:
    data = decoded(text)
    if data is None:
        return FoundMedia(media)
    media = _with_hash(media, data)
    spelling = spelling_of(text, data)
    further = [prefix, spelling] if spelling else [prefix] if prefix else []
    return FoundMedia(media, {} if spelling is None else {path: {"$blob": [media.blob, *further]}}, data)


def _with_hash(media: Media, data: bytes) -> Media:
    return replace(media, blob=hashlib.sha256(data).hexdigest(), size=len(data))


def _input_audio(block: Block) -> FoundMedia:
    kind, data = block["input_audio"]["format"], block["input_audio"]["data"]
    return _by_data(Media("audio", _SOUNDS.get(kind, f"audio/{kind}")), data, ("input_audio", "data"))


def _openai(kind: Kind, fields: Block, path: Path, url: str) -> FoundMedia:
    """An image or a file of OpenAI's: its bytes, its URL, which is under the key `url`, or its file id."""
    detail = fields.get("detail")
    detail = detail if isinstance(detail, str) and detail != "auto" else None
    media = Media(kind, name=fields.get("filename"), detail=detail)
    if data := fields.get("file_data"):
        given = _by_url(media, data, (*path, "file_data"))
        return given if given.data else _by_data(media, data, (*path, "file_data"))
    if fields.get(url) or "file_id" not in fields:
        return _by_url(media, fields[url], (*path, url))
    return FoundMedia(replace(media, url=f"openai:{fields['file_id']}"))


def _anthropic(kind: Kind, block: Block) -> FoundMedia:
    source, name = block["source"], block.get("title")
    match source["type"]:
        case "base64":
            return _by_data(Media(kind, source["media_type"], name=name), source["data"], ("source", "data"))
        case "text":
            # A document given as text: the text is its bytes.
            data = source["data"].encode()
            media = _with_hash(Media(kind, source["media_type"], name=name), data)
            return FoundMedia(media, {("source", "data"): {"$blob_text": media.blob}}, data)
        case "url":
            return _by_url(Media(kind, name=name), source["url"], ("source", "url"))
        case _:
            return FoundMedia(Media(kind, url=f"anthropic:{source['file_id']}", name=name))


_READERS: Mapping[str, Callable[[Block], FoundMedia]] = {
    "image_url": lambda block: _openai("image", block["image_url"], ("image_url",), "url"),
    "input_audio": _input_audio,
    "file": lambda block: _openai("file", block["file"], ("file",), "file_url"),
    "input_image": lambda block: _openai("image", block, (), "image_url"),
    "input_file": lambda block: _openai("file", block, (), "file_url"),
    "image": partial(_anthropic, "image"),
    "document": partial(_anthropic, "file"),
}
#: The blocks that are not OpenAI's.
_ANTHROPIC = frozenset({"image", "document"})


# -- writing ----------------------------------------------------------------------------------------------------------


def media_block(media: Media, shape: Shape, blobs: Blobs) -> dict[str, Any]:
    """The vendor's block that shows it, or its note if the vendor does not support it."""
    block = _block(media, shape, blobs.get(media.blob) if media.blob else None)
    return text_block(note(media), shape) if block is None else block


def said_block(part: Part, message: Message, shape: Shape, blobs: Blobs) -> dict[str, Any] | None:
    """A text, an image, a file or something unknown as a provider's block; None if the provider does not get it."""
    own = message.shape == shape or (message.shape == "plain" and shape == "openai")
    match part:
        case Text(text):
            return text_block(text, shape) if own or text.strip() else None
        case Media():
            return media_block(part, shape, blobs)
        case Other(value) if isinstance(value, Mapping):
            accepted = own if shape == "anthropic" else message.role == "user"
            return dict(value) if accepted else None
        case _:
            return None


def shown_tokens(media: Media, shape: Shape, count: Count) -> int:
    """Its cost in a vendor's message if its bytes are available; that of its note if it cannot be shown."""
    shown = _block(media, shape, b"" if media.blob else None)
    return count(note(media)) if shown is None else media.tokens


def _block(media: Media, shape: Shape, data: bytes | None) -> dict[str, Any] | None:
    writer = _WRITERS.get((shape, media.kind))
    return writer(media, data) if writer else None


def text_block(text: str, shape: Shape) -> dict[str, Any]:
    return {"type": "input_text" if shape == "responses" else "text", "text": text}


def _address(media: Media, data: bytes | None) -> str | None:
    if data is not None:
        return f"data:{media.media_type or 'application/octet-stream'};base64,{encoded(data)}"
    return media.url if media.url and media.url.startswith(("http://", "https://")) else None


def _document_text(media: Media, data: bytes) -> str:
    """A text document, for a provider that does not accept such files."""
    return f"{note(media)}\n{data.decode('utf-8', 'replace')}"


def _openai_image(media: Media, data: bytes | None) -> dict[str, Any] | None:
    url = _address(media, data)
    detail = {"detail": media.detail} if media.detail in _DETAILS else {}
    return None if url is None else {"type": "image_url", "image_url": {"url": url, **detail}}


#: The values of `detail` that the chat API accepts.
_DETAILS = ("low", "high")


def _openai_audio(media: Media, data: bytes | None) -> dict[str, Any] | None:
    sound = next((name for name, kind in _SOUNDS.items() if kind == media.media_type), None)
    if data is None or sound is None:
        return None
    return {"type": "input_audio", "input_audio": {"data": encoded(data), "format": sound}}


def _openai_document(media: Media, data: bytes | None) -> dict[str, Any] | None:
    if file_id := _file_id(media, "openai"):
        return {"type": "file", "file": {"file_id": file_id}}
    if data is None:
        return None
    if is_text(media):
        return text_block(_document_text(media, data), "openai")
    return {"type": "file", "file": {"filename": media.name or "file", "file_data": _address(media, data)}}


def _responses(media: Media, data: bytes | None) -> dict[str, Any] | None:
    is_image, url = media.kind == "image", _address(media, data)
    block = {"type": "input_image", "detail": media.detail or "auto"} if is_image else {"type": "input_file"}
    if file_id := _file_id(media, "openai"):
        return {**block, "file_id": file_id}
    if url is None:
        return None
    if is_image:
        return {**block, "image_url": url}
    if data is None:
        return {**block, "file_url": url}
    return {**block, "filename": media.name or "file", "file_data": url}


#: Types that Anthropic accepts as bytes.
_ANTHROPIC_BYTES: Mapping[str, frozenset[str]] = {
    "image": frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"}),
    "file": frozenset({"application/pdf"}),
}


def _anthropic_block(media: Media, data: bytes | None) -> dict[str, Any] | None:
    if data is not None and media.media_type in _ANTHROPIC_BYTES[media.kind]:
        source = {"type": "base64", "media_type": media.media_type, "data": encoded(data)}
    elif data is not None and is_text(media):
        # Only one text type is accepted.
        source = {"type": "text", "media_type": "text/plain", "data": data.decode("utf-8", "replace")}
    elif file_id := _file_id(media, "anthropic"):
        source = {"type": "file", "file_id": file_id}
    elif url := _address(media, None):
        source = {"type": "url", "url": url}
    else:
        return None
    return {"type": "image" if media.kind == "image" else "document", "source": source}


_WRITERS = {
    ("openai", "image"): _openai_image,
    ("openai", "audio"): _openai_audio,
    ("openai", "file"): _openai_document,
    ("responses", "image"): _responses,
    ("responses", "file"): _responses,
    ("anthropic", "image"): _anthropic_block,
    ("anthropic", "file"): _anthropic_block,
}
