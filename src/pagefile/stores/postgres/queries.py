"""Statements by name, out of the `.sql` files beside this module.

A statement begins with `-- name: …` and may hold `{fragment}`, which stands for the text of a `-- fragment: …`; a
fragment may hold those before it. Parameters are written `:name`; PostgreSQL counts them and wants to know their types,
so both are put in when the files are read, which happens once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_PART = re.compile(r"^-- (name|fragment): (\w+)$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")

_NAMES_BY_TYPE = {
    # Binding one of these tells the transaction whose rows are there for it; what binds none sees none.
    "pagefile_tenant": "tenant",
    "pagefile_tenants": "tenants",
    "timestamptz": "now created at since before updated last_load purged valid_from valid_to recorded retracted_at expires revoked last_used"
    " last_created seen_created first last",
    "bigint": "after_seq budget covered covered_messages covered_turns keep least length seconds limit live_tokens live_turns loads"
    " max_bytes place reset_seq seq skip stored_bytes tokens user_tokens assistant_tokens version"
    " last_seq turns versions seen_seq done_tokens through newest epoch",
    "integer": "dimension",
    "real[]": "vector",
    "boolean": "done ended pinned retracted",
    "double precision": "confidence ratio ttl_s",
    "json": "anchors archive_refs input messages metadata options receipt snapshot sources steps value",
    "bytea": "data",
    "text[]": "answered_all codecs fact_ids gone hashes ids kinds media_types names said_all statuses terms uuids words",
    "bytea[]": "files",
    "bigint[]": "ends seqs starts",
}
#: What is not named here is text.
_TYPES = {name: kind for kind, names in _NAMES_BY_TYPE.items() for name in names.split()}


#: For the statements that look at every tenant: whoever passes this says so.
ALL_TENANTS: dict[str, None] = {"tenants": None}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as PostgreSQL reads it, and the names of its parameters in their order."""

    text: str
    names: tuple[str, ...]

    def given(self, values: Mapping[str, Any]) -> list[Any]:
        """The values in the order of the parameters."""
        return [values[name] for name in self.names]


@cache
def sql(name: str) -> Statement:
    """The statement of this name."""
    return statements()[name]


@cache
def statements() -> dict[str, Statement]:
    """Every statement of this store."""
    fragments: dict[str, str] = {}
    named: dict[str, str] = {}
    for file in sorted(
        files("pagefile.stores.postgres").joinpath("sql").iterdir(), key=lambda file: file.name
    ):
        pieces = _PART.split(file.read_text(encoding="utf-8"))[1:]
        for kind, name, text in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
            (fragments if kind == "fragment" else named)[name] = text.strip()
    return {name: _numbered(_filled(text, fragments)) for name, text in named.items()}


def _filled(text: str, fragments: dict[str, str]) -> str:
    for name, fragment in reversed(fragments.items()):
        text = text.replace("{" + name + "}", fragment)
    return text


def _numbered(text: str) -> Statement:
    text = re.sub(r"^--.*\n", "", text, flags=re.MULTILINE)
    names = tuple(dict.fromkeys(_PARAMETER.findall(text)))

    def parameter(found: re.Match[str]) -> str:
        name = found[1]
        return f"${names.index(name) + 1}::{_TYPES.get(name, 'text')}"

    return Statement(_PARAMETER.sub(parameter, text), names)
