"""What each parameter of a statement is, by its name: a name means the same in every statement."""

_NAMES_BY_TYPE = {
    # Binding one of these tells PostgreSQL whose rows are there for the transaction; what binds none sees none.
    "pagefile_tenant": "tenant",
    "pagefile_tenants": "tenants",
    "timestamptz": "now created at since before updated last_load purged valid_from valid_to recorded retracted_at expires revoked last_used"
    " last_created seen_created first last",
    "bigint": "after_seq before_seq budget covered covered_messages covered_turns keep least length seconds limit live_tokens live_turns loads"
    " max_bytes place reset_seq seq skip stored_bytes tokens user_tokens assistant_tokens version"
    " last_seq turns versions seen_seq done_tokens done_turns through newest epoch number start end",
    "integer": "dimension",
    "real[]": "vector",
    "boolean": "done ended pinned retracted",
    "double precision": "confidence ratio ttl_s",
    "json": "anchors archive_refs input messages metadata options receipt snapshot sources steps value",
    "bytea": "data",
    "text[]": "codecs fact_ids gone hashes ids kinds media_types names statuses uuids words",
    "bytea[]": "files",
    "bigint[]": "seqs",
}
_TYPES = {name: kind for kind, names in _NAMES_BY_TYPE.items() for name in names.split()}

#: For the statements that look at every tenant: whoever passes this says so.
ALL_TENANTS: dict[str, None] = {"tenants": None}


#: Begins the name of a list with a value of every row that a statement writes: `:all_seq` has the `seq` of each.
ALL_ROWS = "all_"


def type_of(name: str) -> str:
    """PostgreSQL's type of a parameter; what is not named above is text."""
    if name.startswith(ALL_ROWS):
        return f"{type_of(name.removeprefix(ALL_ROWS))}[]"
    return _TYPES.get(name, "text")
