"""Abbreviated ids: each is shown just long enough to be unique, and can be given that way."""

from collections.abc import Sequence

#: Characters of an id that are shown, as with commits, and the minimum needed to look one up.
SHOWN_CHARS, LEAST_CHARS = 8, 4


def telling_chars(ids: Sequence[str]) -> int:
    """How many characters are needed to tell the ids apart."""
    longest = max(map(len, ids))
    return next(
        (n for n in range(SHOWN_CHARS, longest) if len({one[:n] for one in ids}) == len(ids)), longest
    )


def begins(name: str, given: str) -> bool:
    """Whether the given text is a long enough prefix of an id."""
    return len(given) >= LEAST_CHARS and name.startswith(given)
