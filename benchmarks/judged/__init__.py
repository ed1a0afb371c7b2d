"""The judged set: tool results as real tools return them, with what a reader has to learn of them.

Every result is made up here, from a seed; nothing is recorded. What a synopsis must say and what is asked was decided by reading
the results, not by what Pagefile can do: change it only where it is unfair to a careful reader.
"""

from functools import cache

from benchmarks.judged import (
    api,
    builds,
    clouds,
    code,
    datasets,
    documents,
    fields,
    logs,
    odd,
    offices,
    repository,
    rows,
    runs,
    searches,
    systems,
    toolchains,
    web,
    wrapped,
)
from benchmarks.judged.case import Case

__all__ = ["Case", "cases"]

_FAMILIES = (
    wrapped, api, searches, code, runs, builds, repository, rows, logs, documents, systems, odd,
    clouds, toolchains, datasets, web, offices, fields,
)  # fmt: skip


@cache
def cases() -> tuple[Case, ...]:
    """All cases, by family."""
    return tuple(make() for family in _FAMILIES for make in family.CASES)
