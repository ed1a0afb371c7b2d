"""Images, sounds and files in the three vendors' blocks: what is known of them, and their bytes."""

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pagefile.content import Media, Shape
from pagefile.shapes.pixels import estimated_tokens
from pagefile.shapes.skeleton import Path

Kind = Literal["image", "audio", "file"]
Block = Mapping[str, Any]

#: Media types by the `format` of OpenAI's sounds.
_SOUNDS = {"wav": "audio/wav", "mp3": "audio/mpeg"}


@dataclass(frozen=True, slots=True)
class FoundMedia:
    """A block that is an image, a sound or a file; `holes` say where its bytes were."""

    media: Media
    holes: Mapping[Path, Any]
    data: bytes | None = None


def read_media(block: Block) -> FoundMedia | None:
    """What a block shows, whichever vendor's it is; None for one that is not known."""
    reader = _READERS.get(str(block.get("type")))
    try:
        return None if reader is None else reader(block)
    except (KeyError, TypeError, AttributeError):
        # It has the type of one and not its fields: it is kept as it came.
        return None


def note(media: Media) -> str:
    """What is said where the thing itself cannot be shown."""
    about = ", ".join(
        filter(None, (media.name, media.media_type, f"{media.size:,} bytes" if media.size else ""))
    )
    return f"[{media.kind}: {about}]" if about else f"[{media.kind}]"


def named(media: Media) -> Media:
    """The same where it is to be named and not shown: without its bytes and its address, every provider gets the note of it."""
    return replace(media, blob=None, url=None)


# -- reading --------------------------------------------------------------------------------------------------------


def _by_url(kind: Kind, url: str, path: Path, name: str | None = None) -> FoundMedia:
    """A `data:` address holds the bytes; any other one points at them."""
    head, comma, text = url.partition(",")
    data = decoded(text) if head.startswith("data:") and head.endswith(";base64") else None
    if data is None:
        return FoundMedia(
            _estimated(Media(kind, url=None if head.startswith("data:") else url, name=name)), {}
        )
    return _held(Media(kind, head[5:-7].split(";")[0], name=name), data, path, prefix=head + comma)


def _held(media: Media, data: bytes, path: Path, prefix: str = "") -> FoundMedia:
    blob = hashlib.sha256(data).hexdigest()
    media = _estimated(replace(media, blob=blob, size=len(data)), data)
    return FoundMedia(media, {path: {"$blob": [blob, prefix] if prefix else [blob]}}, data)


def _estimated(media: Media, data: bytes | None = None) -> Media:
    return replace(media, tokens=estimated_tokens(media.kind, data))


def _by_data(media: Media, text: str, path: Path) -> FoundMedia:
    data = decoded(text)
    return FoundMedia(_estimated(media), {}) if data is None else _held(media, data, path)


def decoded(text: str) -> bytes | None:
    """The bytes of a base64 text, if writing them again gives that text."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if data and base64.b64encode(data).decode() == text else None


def _image_url(block: Block) -> FoundMedia:
    return _by_url("image", block["image_url"]["url"], ("image_url", "url"))


def _input_audio(block: Block) -> FoundMedia:
    sound = block["input_audio"]
    media_type = _SOUNDS.get(sound["format"], f"audio/{sound['format']}")
    return _by_data(Media("audio", media_type), sound["data"], ("input_audio", "data"))


def _file(block: Block) -> FoundMedia:
    file = block["file"]
    return _openai_file(file, ("file",))


def _openai_file(file: Block, path: Path) -> FoundMedia:
    name = file.get("filename")
    if file.get("file_data"):
        place = (*path, "file_data")
        given = _by_url("file", file["file_data"], place, name)
        return given if given.data else _by_data(Media("file", name=name), file["file_data"], place)
    if file.get("file_url"):
        return _by_url("file", file["file_url"], (*path, "file_url"), name)
    return FoundMedia(_estimated(Media("file", url=f"openai:{file['file_id']}", name=name)), {})


def _input_image(block: Block) -> FoundMedia:
    if block.get("image_url"):
        return _by_url("image", block["image_url"], ("image_url",))
    return FoundMedia(_estimated(Media("image", url=f"openai:{block['file_id']}")), {})


def _input_file(block: Block) -> FoundMedia:
    return _openai_file(block, ())


def _image(block: Block) -> FoundMedia:
    return _anthropic("image", block)


def _document(block: Block) -> FoundMedia:
    return _anthropic("file", block)


def _anthropic(kind: Kind, block: Block) -> FoundMedia:
    source, name = block["source"], block.get("title")
    match source["type"]:
        case "base64":
            return _by_data(Media(kind, source["media_type"], name=name), source["data"], ("source", "data"))
        case "text":
            return _written(Media(kind, source["media_type"], name=name), source["data"])
        case "url":
            return _by_url(kind, source["url"], ("source", "url"), name)
        case _:
            return FoundMedia(_estimated(Media(kind, url=f"anthropic:{source['file_id']}", name=name)), {})


def _written(media: Media, text: str) -> FoundMedia:
    """A document given as text: the text is its bytes."""
    data = text.encode()
    found = _held(media, data, ("source", "data"))
    return replace(found, holes={("source", "data"): {"$blob_text": found.media.blob}})


_READERS = {
    "image_url": _image_url,
    "input_audio": _input_audio,
    "file": _file,
    "input_image": _input_image,
    "input_file": _input_file,
    "image": _image,
    "document": _document,
}


# -- writing --------------------------------------------------------------------------------------------------------


def media_block(media: Media, shape: Shape, blobs: Mapping[str, bytes]) -> dict[str, Any]:
    """The block of a vendor that shows it, or a note of it where the vendor cannot be shown it."""
    data = blobs.get(media.blob) if media.blob else None
    writer = _WRITERS.get((shape, media.kind))
    block = writer(media, data) if writer else None
    return text_block(note(media), shape) if block is None else block


def shown_tokens(media: Media, shape: Shape, count: Callable[[str], int]) -> int:
    """What it costs in a vendor's message when its bytes are at hand: its estimate, or the note of it where it cannot be shown."""
    writer = _WRITERS.get((shape, media.kind))
    block = writer(media, b"" if media.blob else None) if writer else None
    return count(note(media)) if block is None else media.tokens


def text_block(text: str, shape: Shape) -> dict[str, Any]:
    """A text as a block."""
    return {"type": "input_text" if shape == "responses" else "text", "text": text}


def _address(media: Media, data: bytes | None) -> str | None:
    if data is not None:
        kind = media.media_type or "application/octet-stream"
        return f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return media.url if media.url and media.url.startswith(("http://", "https://")) else None


def _openai_image(media: Media, data: bytes | None) -> dict[str, Any] | None:
    url = _address(media, data)
    return None if url is None else {"type": "image_url", "image_url": {"url": url}}


def _openai_audio(media: Media, data: bytes | None) -> dict[str, Any] | None:
    sound = next((name for name, kind in _SOUNDS.items() if kind == media.media_type), None)
    if data is None or sound is None:
        return None
    return {"type": "input_audio", "input_audio": {"data": base64.b64encode(data).decode(), "format": sound}}


def _openai_document(media: Media, data: bytes | None) -> dict[str, Any] | None:
    if data is None:
        return None
    return {"type": "file", "file": {"filename": media.name or "file", "file_data": _address(media, data)}}


def _responses_image(media: Media, data: bytes | None) -> dict[str, Any] | None:
    url = _address(media, data)
    return None if url is None else {"type": "input_image", "detail": "auto", "image_url": url}


def _responses_file(media: Media, data: bytes | None) -> dict[str, Any] | None:
    url = _address(media, data)
    if url is None:
        return None
    if data is None:
        return {"type": "input_file", "file_url": url}
    return {"type": "input_file", "filename": media.name or "file", "file_data": url}


#: What Anthropic takes as bytes.
_ANTHROPIC_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def _anthropic_image(media: Media, data: bytes | None) -> dict[str, Any] | None:
    if data is not None and media.media_type in _ANTHROPIC_IMAGES:
        return {"type": "image", "source": _base64_source(media, data)}
    url = _address(media, None)
    return None if url is None else {"type": "image", "source": {"type": "url", "url": url}}


def _anthropic_file(media: Media, data: bytes | None) -> dict[str, Any] | None:
    if data is not None and media.media_type == "application/pdf":
        return {"type": "document", "source": _base64_source(media, data)}
    if data is not None and media.media_type == "text/plain":
        source = {"type": "text", "media_type": "text/plain", "data": data.decode("utf-8", "replace")}
        return {"type": "document", "source": source}
    url = _address(media, None)
    return None if url is None else {"type": "document", "source": {"type": "url", "url": url}}


def _base64_source(media: Media, data: bytes) -> dict[str, Any]:
    return {"type": "base64", "media_type": media.media_type, "data": base64.b64encode(data).decode()}


_WRITERS = {
    ("openai", "image"): _openai_image,
    ("openai", "audio"): _openai_audio,
    ("openai", "file"): _openai_document,
    ("responses", "image"): _responses_image,
    ("responses", "file"): _responses_file,
    ("anthropic", "image"): _anthropic_image,
    ("anthropic", "file"): _anthropic_file,
}
