"""How deep JSON may be nested: deeper, it can be written here, and then neither exported nor sent; every reader has its own limit."""

from collections.abc import Iterable
from typing import cast

MAX_JSON_DEPTH = 100


def is_shallow(value: object) -> bool:
    """Whether no list or mapping in it is nested deeper than that."""
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
