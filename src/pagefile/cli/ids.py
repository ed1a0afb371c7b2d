"""Ids as people read and type them: as much of each as tells it from the others, and that much is enough to name it."""

from collections.abc import Sequence

#: Characters of an id that are shown, like those of a commit, and those that it takes at least to find it.
SHOWN_CHARS, LEAST_CHARS = 8, 4


def telling_chars(ids: Sequence[str]) -> int:
    """How many characters of each id are enough to tell them apart."""
    longest = max(map(len, ids))
    return next(
        (n for n in range(SHOWN_CHARS, longest) if len({one[:n] for one in ids}) == len(ids)), longest
    )


def begins(name: str, given: str) -> bool:
    """Whether an id may be meant by what somebody typed: a beginning that says enough."""
    return len(given) >= LEAST_CHARS and name.startswith(given)
