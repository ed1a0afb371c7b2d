"""The production store: PostgreSQL through asyncpg."""

from importlib.util import find_spec

from pagefile.errors import MissingExtraError

if find_spec("asyncpg") is None:
    raise MissingExtraError.of("postgres", "A postgresql:// store")
