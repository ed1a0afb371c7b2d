"""What of a question is searched for: a question of any length costs no more than a long one."""

#: A longer text is mostly a document. What is asked about it is at its beginning or its end.
MAX_SEARCHED_CHARS = 8_000
_END_CHARS = 2_000


def searched(query: str) -> str:
    """The part of a question that is searched for: all of it, or its beginning and its end."""
    if len(query) <= MAX_SEARCHED_CHARS:
        return query
    return f"{query[: MAX_SEARCHED_CHARS - _END_CHARS - 1]}\n{query[-_END_CHARS:]}"
