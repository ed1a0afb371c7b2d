"""Bytes as base64 text, preserving how it was written: in one piece, in lines, without padding."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

_BREAK = re.compile(r"\s+")


def decoded(text: str) -> bytes | None:
    """The bytes of a base64 text; None if it is not base64 or empty."""
    compact = "".join(text.split())
    try:
        return base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True) or None
    except (binascii.Error, ValueError):
        return None


def encoded(data: bytes, spelling: Mapping[str, Any] | None = None) -> str:
    """The bytes as text, written as `spelling_of` found it."""
    text = base64.b64encode(data).decode()
    if not spelling:
        return text
    text = text.rstrip("=") if spelling.get("bare") else text
    every = int(spelling.get("every") or len(text))
    lines = [text[at : at + every] for at in range(0, len(text), every)]
    return str(spelling.get("break", "")).join(lines) + str(spelling.get("end", ""))


def spelling_of(text: str, data: bytes) -> Mapping[str, Any] | None:
    """How a text writes the bytes: empty for standard base64, None if it cannot be reproduced."""
    said = text.rstrip()
    found: dict[str, Any] = {}
    if (gap := _BREAK.search(said)) is not None:
        found |= {"every": gap.start(), "break": gap.group()}
    if said != text:
        found["end"] = text[len(said) :]
    if len(data) % 3 and not said.endswith("="):
        found["bare"] = True
    # A text that starts with a break has lines of length zero.
    return found if found.get("every") != 0 and encoded(data, found) == text else None
