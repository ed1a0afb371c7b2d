"""SQLite's statements, and their values as SQLite stores them: times as text, lists as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from pagefile.stores.encoding import time_text, to_json
from pagefile.stores.sql.parameters import type_of
from pagefile.stores.sql.texts import parameters, statement_texts


def _time(moment: datetime | str) -> str:
    # Verbs that write the same time in several statements give its text.
    return moment if isinstance(moment, str) else time_text(moment)


_ENCODERS: dict[str, Callable[[Any], str]] = {
    "timestamptz": _time,
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
        if not self.encoders:
            return values
        encoded = {
            name: None if values[name] is None else encode(values[name]) for name, encode in self.encoders
        }
        return {**values, **encoded}


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
    return statement_texts("sqlite", "pagefile.stores.sqlite")
