"""Images and files as the blocks of a provider."""

import base64
from collections.abc import Mapping

from pagefile.content import Media, Shape
from pagefile.records import JsonValue


def media_block(media: Media, shape: Shape, blobs: Mapping[str, bytes]) -> dict[str, JsonValue]:
    """The block of a vendor that shows it, or a note of it where the vendor cannot be shown it."""
    url = _address(media, blobs)
    if media.kind != "image" or url is None:
        return text_block(f"[{media.kind}: {media.name or media.media_type}]", shape)
    if shape == "openai":
        return {"type": "image_url", "image_url": {"url": url}}
    if shape == "responses":
        return {"type": "input_image", "detail": "auto", "image_url": url}
    head, _, data = url.partition(";base64,")
    source: JsonValue = (
        {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
        if data
        else {"type": "url", "url": url}
    )
    return {"type": "image", "source": source}


def text_block(text: str, shape: Shape) -> dict[str, JsonValue]:
    """A text as a block."""
    return {"type": "input_text" if shape == "responses" else "text", "text": text}


def _address(media: Media, blobs: Mapping[str, bytes]) -> str | None:
    data = blobs.get(media.blob) if media.blob else None
    if data is not None:
        return f"data:{media.media_type};base64,{base64.b64encode(data).decode()}"
    return media.url if media.url and media.url.startswith(("http://", "https://")) else None
