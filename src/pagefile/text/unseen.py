"""Characters that a model reads and no person sees, and lines that look like another speaker's."""

import re
import unicodedata

#: Tag characters, zero-width ones and marks that turn the direction of writing. Joiners stay: scripts and emoji need them.
_INVISIBLE = re.compile(
    "[\U000e0000-\U000e007f\u00ad\u200b\u200e\u200f\u2060-\u2064\u202a-\u202e\u2066-\u2069\ufeff]"
)
#: Everything that some reader takes for the end of a line.
_LINE = re.compile("[^\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")
_SPEAKER = re.compile(
    r"[\W_]*(?:system|developer|user|human|assistant|ai|tool|系统|用户|助手|助理|工具|人类)[\W_]{0,4}:",
    re.IGNORECASE,
)
#: A label is at the beginning of a line.
_LABEL_CHARS = 40


def without_unseen(text: str) -> str:
    return text if text.isascii() else _INVISIBLE.sub("", text)


def set_off(text: str) -> str:
    """The text with two spaces before every line that begins like the message of a speaker."""
    return _LINE.sub(lambda found: f"  {found[0]}" if _speaks(found[0]) else found[0], text)


def _speaks(line: str) -> bool:
    start = without_unseen(line[:_LABEL_CHARS])
    # Full-width letters and colons look the same to a model.
    return _SPEAKER.match(start if start.isascii() else unicodedata.normalize("NFKC", start)) is not None
