"""Translates the engine's reasons into the reader's language. An unknown reason is shown as it is."""

import re

from pagefile.inspector.reader import Reader

#: The engine's wording, and the key of its translation.
_KNOWN: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"never cut"), "why.never_cut"),
    (re.compile(r"fits"), "why.fits"),
    (re.compile(r"fits as (?P<form>\w+)"), "why.fits_as"),
    (re.compile(r"over budget"), "why.over_budget"),
    (re.compile(r"over its own budget of (?P<n>\d+) tokens"), "why.own_budget"),
    (re.compile(r"not read: older than what fits"), "why.not_read"),
    (re.compile(r"behind a newer turn that did not fit"), "why.behind"),
    (re.compile(r"(?P<n>\d+) facts of lower rank"), "why.lower_rank"),
    (
        re.compile(
            r"covers (?P<turns>\d+) turns up to (?P<seq>\d+); (?P<kept>\d+) of (?P<all>\d+) anchors survive, "
            r"(?P<beside>\d+) of them beside the summary"
        ),
        "why.covers",
    ),
)


def reason(text: str, reader: Reader) -> str:
    """A reason in the reader's language."""
    for pattern, key in _KNOWN:
        if found := pattern.fullmatch(text):
            return reader.say(key, **found.groupdict())
    return text
