"""What the errors of a database driver become: one of ours, with a text that says what to do."""

from collections.abc import Sequence
from typing import NamedTuple

from pagefile.errors import StoreError, StoreUnavailableError


class Failure(NamedTuple):
    kinds: tuple[type[Exception], ...]
    #: With `{place}`, `{kind}` for the name of the driver's error, and `{why}` for its text.
    text: str
    #: Most often the store is sound, and can be used again later.
    error: type[StoreError] = StoreUnavailableError


def translated(error: Exception, failures: Sequence[Failure], place: str, why: str) -> StoreError:
    """By the first that fits; the last fits everything."""
    failure = next(one for one in failures if isinstance(error, one.kinds))
    return failure.error(failure.text.format(place=place, why=why, kind=type(error).__name__))
