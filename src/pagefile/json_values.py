"""JSON values: the texts in a value, and the limit on its depth."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

#: Deeper JSON could be stored, but not exported or sent, since readers have limits.
MAX_JSON_DEPTH = 100


def is_shallow(value: object) -> bool:
    """Whether lists and mappings are nested at most `MAX_JSON_DEPTH` deep."""
    level: list[object] = [value]
    for _ in range(MAX_JSON_DEPTH + 1):
        level = [inner for outer in level for inner in _parts(outer)]
        if not level:
            return True
    return False


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def texts_in(value: object) -> Iterator[str]:
    """Every text in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, object]", value).items():
            yield key
            yield from texts_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in cast("Sequence[object]", value):
            yield from texts_in(inner)
