"""Text that is only displayed: what a terminal or a log would interpret is escaped."""

import unicodedata

#: Controls, surrogates, and separators that some programs treat as line ends.
_OBEYED = frozenset({"Cc", "Cs", "Zl", "Zp"})
#: These change the direction of what follows, so that one name reads as another.
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def visible(text: str, *, lines: bool = False) -> str:
    """Text that is safe for a terminal: control characters are escaped; `lines` keeps line breaks."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(character, lines=lines) for character in text)


def _escape(character: str, *, lines: bool) -> str:
    if character in "\r\n\t":
        return character if lines and character != "\r" else " "
    if character not in _TURNING and unicodedata.category(character) not in _OBEYED:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
