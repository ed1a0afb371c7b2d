"""SQLite's statements, and their values as SQLite stores them: times as text, lists as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from pagefile.stores.encoding import time_text, to_json
from pagefile.stores.sql.parameters import type_of
from pagefile.stores.sql.texts import COMMON, PLAIN, parameters, statement_texts

_ENCODERS: dict[str, Callable[[Any], str]] = {
    "timestamptz": time_text,
    "text[]": to_json,
    "bigint[]": to_json,
}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, the names of its parameters in SQLite's order, and the places of those that SQLite has no type for."""

    text: str
    names: tuple[str, ...]
    encoders: tuple[tuple[int, Callable[[Any], str]], ...]

    def given(self, values: Mapping[str, Any]) -> list[Any]:
        """The values as they are bound: by their place, since SQLite would look up each name."""
        bound = [values[name] for name in self.names]
        for place, encode in self.encoders:
            if (value := bound[place]) is not None:
                bound[place] = encode(value)
        return bound


@cache
def statement(name: str) -> Statement:
    """The statement of this name."""
    text = statements()[name]
    names = parameters(text)
    kinds = enumerate(map(type_of, names))
    return Statement(
        text, names, tuple((place, _ENCODERS[kind]) for place, kind in kinds if kind in _ENCODERS)
    )


def sql(name: str) -> str:
    """The text of this statement, for values that are encoded already."""
    return statement(name).text


@cache
def statements() -> dict[str, str]:
    """The text of every statement of this store."""
    return statement_texts("sqlite", COMMON, PLAIN, files("pagefile.stores.sqlite").joinpath("sql"))
