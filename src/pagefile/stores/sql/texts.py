"""Loads statements by name from `.sql` files.

A statement begins with `-- name: …` and may hold `{fragment}`, which is replaced by the text of `-- fragment: …`; `{fragment word}`
puts the word wherever that text has `{}`. Where a dialect says something differently, its own text follows under the same name:
`-- name: … (postgres)`. The common text is SQLite's where there is none for all (`json_each`, `max` of two values, `rowid`,
`json_set`): every other dialect overrides these. A statement that only some dialects need is empty in the others,
whose players skip it. Parameters are written `:name`.
"""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable

_PART = re.compile(r"^-- (name|fragment): (\w+)(?: \((\w+)\))?$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)
_FRAGMENT = re.compile(r"\{(\w+)(?: (\w+))?\}")
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")


COMMON = files("pagefile.stores.sql").joinpath("statements")
#: For databases in which a statement costs no round trip.
PLAIN = files("pagefile.stores.sql").joinpath("plain")


def migration_texts(package: str) -> dict[str, str]:
    """The migrations of a database by file name, in order."""
    found = [file for file in files(package).joinpath("migrations").iterdir() if file.name.endswith(".sql")]
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(found, key=lambda file: file.name)}


def statement_texts(dialect: str, *folders: Traversable) -> dict[str, str]:
    common: dict[tuple[str, str], str] = {}
    own: dict[tuple[str, str], str] = {}
    for folder in folders:
        seen: set[tuple[str, str, str | None]] = set()
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            pieces = _PART.split(file.read_text(encoding="utf-8"))[1:]
            for kind, name, of, text in zip(*(pieces[start::4] for start in range(4)), strict=True):
                # Names are shared by all files of a folder; only another folder may say one again.
                if (kind, name, of) in seen:
                    raise ValueError(f"{file.name} has the {kind} {name!r}, which is there already.")
                seen.add((kind, name, of))
                if of in (None, dialect):
                    (common if of is None else own)[kind, name] = _COMMENT.sub("", text).strip()
    parts = common | own
    fragments = {name: text for (kind, name), text in parts.items() if kind == "fragment"}
    return {name: _filled(text, fragments) for (kind, name), text in parts.items() if kind == "name"}


def _filled(text: str, fragments: dict[str, str]) -> str:
    """The text with its fragments expanded, recursively; braces that name no fragment are left as they are."""

    def fragment(found: re.Match[str]) -> str:
        return fragments.get(found[1], found[0]).replace("{}", found[2] or "{}")

    while (filled := _FRAGMENT.sub(fragment, text)) != text:
        text = filled
    return text


def parameters(text: str) -> tuple[str, ...]:
    """The names of a statement's parameters, in the order in which they first appear."""
    return tuple(dict.fromkeys(_PARAMETER.findall(text)))


def with_parameters(text: str, shown: dict[str, str]) -> str:
    return _PARAMETER.sub(lambda found: shown[found[1]], text)


_NAMES_BY_TYPE = {
    # Binding one of these tells PostgreSQL which tenant's rows the transaction may see; without one it sees none.
    "pagefile_tenant": "tenant",
    "pagefile_tenants": "tenants",
    "timestamptz": "now created at since before updated last_load purged valid_from valid_to recorded retracted expires revoked last_used"
    " last_created seen_created first last leased",
    "bigint": "after_seq before_seq budget covered_through_seq covered_messages covered_turns keep least length seconds limit live_tokens live_turns loads"
    " max_bytes place reset_seq seq skip stored_bytes tokens user_tokens assistant_tokens version"
    " last_seq turns checkpoint_version seen_seq done_tokens done_turns through newest epoch number start end",
    "integer": "dimension",
    "real[]": "vector",
    "boolean": "counted done ended pinned with_retracted",
    "double precision": "confidence ratio ttl_s",
    "json": "anchors archive_refs input messages metadata options receipt snapshot sources steps value",
    "bytea": "data",
    "text[]": "codecs fact_ids gone hashes ids kinds media_types names spared statuses uuids words",
    "bytea[]": "files",
    "bigint[]": "seqs",
}
_TYPES = {name: kind for kind, names in _NAMES_BY_TYPE.items() for name in names.split()}

#: For the statements that read every tenant: callers pass this explicitly.
ALL_TENANTS: dict[str, None] = {"tenants": None}


#: Begins the name of a list with a value of every row that a statement writes: `:all_seq` has the `seq` of each.
ALL_ROWS = "all_"


def type_of(name: str) -> str:
    """PostgreSQL's type of a parameter; what is not named above is text."""
    if name.startswith(ALL_ROWS):
        return f"{type_of(name.removeprefix(ALL_ROWS))}[]"
    return _TYPES.get(name, "text")
