"""The judged set: tool results as real tools return them, with what a reader has to learn of them.

Every result is made up here, from a seed; nothing is recorded. What a synopsis must say and what is asked was decided by reading
the results, not by what Pagefile can do: change it only where it is unfair to a careful reader.
"""

from functools import cache

from benchmarks.judged import (
    api,
    builds,
    code,
    documents,
    logs,
    odd,
    repository,
    rows,
    runs,
    searches,
    systems,
    wrapped,
)
from benchmarks.judged.case import Case

__all__ = ["Case", "cases"]

_FAMILIES = (wrapped, api, searches, code, runs, builds, repository, rows, logs, documents, systems, odd)


@cache
def cases() -> tuple[Case, ...]:
    """All cases, by family."""
    return tuple(make() for family in _FAMILIES for make in family.CASES)
