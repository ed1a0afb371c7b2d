"""Splits Chinese and English text into sentences without losing a character."""

import re

from pagefile.text.scripts import CJK

#: A sentence never ends inside these: fenced and inline code, images and links, URLs.
_WHOLE = (
    r"```.*?(?:```|\Z)"
    r"|`[^`\n]*`"
    r"|!?\[[^\[\]\n]*\]\([^()\n]*\)"
    r"|(?:https?|ftp)://[^\s<>\"'，。；！？）」】]*[^\s<>\"'，。；！？）」】.,;:!?)]"
)
_CLOSING = r"[\"'”’」』）)\]】》]*"
_SCAN = re.compile(
    rf"(?P<whole>{_WHOLE})"
    rf"|(?P<hard>[。！？…]+{_CLOSING}\s*)"
    rf"|(?P<soft>(?<![.!?])[.!?]++{_CLOSING}(?:\s+|\Z|(?=[{CJK}])))"
    r"|(?P<line>\n\s*)",
    re.DOTALL,
)
_ABBREVIATION = re.compile(
    r"(?:(?<![A-Za-z])(?:mr|mrs|ms|dr|prof|sr|jr|st|vs|etc|e\.g|i\.e|cf|approx|no|fig|inc|ltd|co|a\.m|p\.m)|(?<![A-Za-z0-9_.'/-])[A-Z]|(?:^|\n)\s*\d{1,3})\Z",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with the whitespace after it: joined, they are the text again.

    A line break ends a sentence. Numbers (3.5), abbreviations, list numbers, URLs, code and images are not
    split.
    """
    found: list[str] = []
    start = 0
    for match in _SCAN.finditer(text):
        if match.lastgroup == "whole" or (match.lastgroup == "soft" and _goes_on(text, start, match)):
            continue
        if text[start : match.end()].strip():
            found.append(text[start : match.end()])
            start = match.end()
    if start < len(text):
        found.append(text[start:])
    return found


def _goes_on(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether a full stop belongs to an abbreviation, an initial or a list number, with more text on the line."""
    mark = match.group()
    if not mark.startswith(". ") or match.end() == len(text) or "\n" in mark:
        return False
    return _ABBREVIATION.search(text[max(start, match.start() - 12) : match.start()]) is not None
