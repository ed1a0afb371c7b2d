"""What the errors of a database driver become: one of ours, with a text that says what to do."""

from collections.abc import Sequence
from typing import NamedTuple

from pagefile.errors import StoreError


class Failure(NamedTuple):
    kinds: tuple[type[Exception], ...]
    error: type[StoreError]
    #: With `{place}`, and `{why}` for the driver's own text.
    text: str


def translated(error: Exception, failures: Sequence[Failure], place: str, why: str) -> StoreError:
    """By the first that fits; the last fits everything."""
    failure = next(one for one in failures if isinstance(error, one.kinds))
    return failure.error(failure.text.format(place=place, why=why, kind=type(error).__name__))
