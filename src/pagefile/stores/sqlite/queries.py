"""SQLite's statements, and their values as SQLite stores them: times as text, lists as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from pagefile.records import utc
from pagefile.stores.encoding import time_text, to_json
from pagefile.stores.sql.parameters import type_of
from pagefile.stores.sql.texts import COMMON, PLAIN, parameters, statement_texts

# A turn writes the same few times in each of its statements.
_utc_text = lru_cache(maxsize=16)(time_text)


def _time_text(moment: datetime) -> str:
    # Only times in UTC are cached: two of a zone that differ in `fold` alone are equal, and not the same moment.
    return _utc_text(utc(moment))


_ENCODERS: dict[str, Callable[[Any], str]] = {
    "timestamptz": _time_text,
    "text[]": to_json,
    "bigint[]": to_json,
}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, and the parameters that SQLite has no type for."""

    text: str
    encoders: tuple[tuple[str, Callable[[Any], str]], ...]

    def given(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values as they are bound."""
        encoded = dict(values)
        for name, encode in self.encoders:
            if (value := encoded[name]) is not None:
                encoded[name] = encode(value)
        return encoded


@cache
def statement(name: str) -> Statement:
    """The statement of this name."""
    text = statements()[name]
    kinds = {parameter: type_of(parameter) for parameter in parameters(text)}
    return Statement(text, tuple((one, _ENCODERS[kind]) for one, kind in kinds.items() if kind in _ENCODERS))


def sql(name: str) -> str:
    """The text of this statement, for values that are encoded already."""
    return statement(name).text


@cache
def statements() -> dict[str, str]:
    """The text of every statement of this store."""
    return statement_texts("sqlite", COMMON, PLAIN, files("pagefile.stores.sqlite").joinpath("sql"))
