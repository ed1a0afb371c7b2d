"""Where the rows of JSON are: objects in a list or by key, names beside rows, columns of equal length."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from pagefile.records import JsonValue
from pagefile.text.synopsis.records import ASKED, flat
from pagefile.text.tables import table

#: How deep lists are looked for, and how many of them are compared.
_DEPTH, _MOST_LISTS = 8, 400
#: Names of lists that do not say what is in them.
_PLAIN = frozenset[str](table("pagefile.text.synopsis", "fields")["plain_lists"])


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a JSON value, how many there are, and where."""

    items: Sequence[Mapping[str, JsonValue]]
    count: int
    path: tuple[str, ...]

    @property
    def noun(self) -> str:
        """What the rows are, by the innermost name that says it, or by what they say themselves."""
        named = (name for name in reversed(self.path) if name.casefold() not in _PLAIN and not name.isdigit())
        told = [item.get("kind") or item.get("object") for item in self.items[:20]]
        own = told[0] if told and all(kind == told[0] for kind in told) else None
        return next(named, own if isinstance(own, str) and len(own) < 40 else "")


def rows_in(value: JsonValue) -> Rows | None:
    """The rows that most of a value consists of: objects in a list or by key, or columns of equal length."""
    best: Rows | None = None
    weight = 0
    for found in islice(_candidates(value, ()), _MOST_LISTS):
        own = found.count * max(1, len(flat(found.items[0]))) if found.items else 0
        if own > weight * (1 if best is None or len(found.path) <= len(best.path) else 1.5):
            best, weight = found, own
    return best


def _candidates(value: JsonValue, path: tuple[str, ...], depth: int = _DEPTH) -> Iterator[Rows]:
    if not depth:
        return
    if isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], list):
            yield from _candidates(value[0], path, depth - 1)
            return
        objects = [item for item in value if isinstance(item, dict)]
        if not objects:  # objects one list further down
            lists = [row for row in value[:ASKED] if isinstance(row, list)]
            value = objects = [item for row in lists for item in row if isinstance(item, dict)]
        if objects and len(objects) * 2 >= len(value):
            yield Rows(objects, len(value), path)
            yield from _inside(objects[0], path, depth - 1) if len(objects) == 1 else ()
    elif isinstance(value, dict):
        yield from _tabular(value, path)
        yield from _inside(value, path, depth - 1)


def _inside(value: Mapping[str, JsonValue], path: tuple[str, ...], depth: int) -> Iterator[Rows]:
    inner = {key: item for key, item in value.items() if isinstance(item, dict)}
    shapes = {frozenset(islice(item, 6)) for item in islice(inner.values(), 20)}
    if len(inner) >= 5 and len(inner) * 1.25 >= len(value) and len(shapes) <= 3:
        yield Rows([{"key": key, **item} for key, item in islice(inner.items(), ASKED)], len(value), path)
        return
    for key, item in value.items():
        if isinstance(item, dict | list):
            yield from _candidates(item, (*path, key), depth)


def _tabular(value: Mapping[str, JsonValue], path: tuple[str, ...]) -> Iterator[Rows]:
    """Rows without names beside their names, and columns of equal length."""
    lists = {key: _only(item) for key, item in value.items() if isinstance(item, list)}
    grids = {
        key: item
        for key, item in lists.items()
        if len(item) > 1 and all(isinstance(row, list) for row in item[:20])
    }
    for key, grid in grids.items():
        width = len(grid[0]) if isinstance(grid[0], list) else 0
        header = next(
            (_header(names) for other, names in lists.items() if other != key and len(names) == width > 1),
            None,
        )
        if header:
            yield Rows(
                [dict(zip(header, row, strict=False)) for row in grid[:ASKED] if isinstance(row, list)],
                len(grid),
                (*path, key),
            )
    columns = {
        key: item
        for key, item in lists.items()
        if len(item) > 2 and not isinstance(item[0], list) and key not in grids
    }
    lengths = [len(item) for item in columns.values()]
    if (
        len(columns) > 1
        and len(set(lengths)) == 1
        and not all(isinstance(item[0], dict) for item in columns.values())
    ):
        keys = list(columns)
        yield Rows(
            [dict(zip(keys, row, strict=True)) for row in islice(zip(*columns.values(), strict=True), ASKED)],
            lengths[0],
            path,
        )


def _only(items: list[JsonValue]) -> list[JsonValue]:
    """The list inside a list of one."""
    return items[0] if len(items) == 1 and isinstance(items[0], list) else items


def _header(names: Sequence[JsonValue]) -> list[str] | None:
    if all(isinstance(name, str) for name in names):
        return [str(name) for name in names]
    told = [name.get("name") for name in names if isinstance(name, dict)]
    return [str(name) for name in told] if len(told) == len(names) and all(told) else None
