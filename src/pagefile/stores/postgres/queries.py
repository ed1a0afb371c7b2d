"""PostgreSQL's statements: it counts parameters and wants to know their types, so both are put in when the files are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from pagefile.stores.sql.parameters import ALL_ROWS, type_of
from pagefile.stores.sql.texts import COMMON, parameters, statement_texts, with_parameters


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as PostgreSQL reads it, and the names of its parameters in their order."""

    text: str
    names: tuple[str, ...]

    def given(self, values: Mapping[str, Any]) -> list[Any]:
        """The values in the order of the parameters."""
        return [values[name] for name in self.names]

    @property
    def takes_all(self) -> bool:
        """Whether it writes many rows at once, instead of being run for each of them."""
        return any(name.startswith(ALL_ROWS) for name in self.names)

    def given_all(self, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The values of all rows: lists of what differs between them, and what is the same in each."""
        return [
            [values[name.removeprefix(ALL_ROWS)] for values in rows]
            if name.startswith(ALL_ROWS)
            else rows[0][name]
            for name in self.names
        ]


@cache
def sql(name: str) -> Statement:
    """The statement of this name."""
    return statements()[name]


@cache
def statements() -> dict[str, Statement]:
    """Every statement of this store."""
    texts = statement_texts("postgres", COMMON, files("pagefile.stores.postgres").joinpath("sql"))
    return {name: _numbered(text) for name, text in texts.items()}


def _numbered(text: str) -> Statement:
    names = parameters(text)
    shown = {name: f"${number}::{type_of(name)}" for number, name in enumerate(names, 1)}
    return Statement(with_parameters(text, shown), names)
