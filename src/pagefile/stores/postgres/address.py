"""A PostgreSQL database as its URL names it."""

from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from pagefile.errors import SettingsError
from pagefile.stores.addresses import ENCODE, splits_password

Synchronous = Literal["full", "normal"]

_MOST = 1_000_000
#: Options of the URL that are numbers, each with its field.
_NUMBERS = {
    "pool_min": "pool_min",
    "pool_max": "pool_max",
    "command_timeout": "command_timeout_s",
    "statement_cache": "statement_cache",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where the database is and how to open it.

    A query in the URL may have `schema`, `pool_min`, `pool_max`, `command_timeout` (seconds) and `statement_cache`
    (statements; 0 behind a pooler that shares connections); the rest of it is PostgreSQL's own (`host`, `sslmode` …).
    """

    dsn: str
    #: The URL for messages: no password, no options.
    shown: str
    #: The schema that holds the tables; None: what the server's `search_path` says.
    schema: str | None = None
    pool_min: int = 1
    pool_max: int = 10
    command_timeout_s: float = 60.0
    statement_cache: int = 200
    synchronous: Synchronous = "full"

    @classmethod
    def of(cls, url: str, synchronous: Synchronous = "full") -> "Place":
        try:
            parts = urlsplit(url)
            query = parse_qsl(parts.query, keep_blank_values=True)
            ours = {name: value for name, value in query if name in ("schema", *_NUMBERS)}
            theirs = urlencode([(name, value) for name, value in query if name not in ours])
        except ValueError:
            # The parser's message quotes parts of the URL, one of which may be a password.
            raise SettingsError(
                f"The URL of PostgreSQL cannot be read: write postgresql://user:password@host/database. {ENCODE}"
            ) from None
        _check_ports(parts, dict(query))
        host = parts.netloc.rpartition("@")[2] or dict(query).get("host", "")
        place = cls(
            dsn=urlunsplit(parts._replace(query=theirs)),
            shown=f"postgresql://{unquote(host)}{parts.path}",
            schema=_schema(ours.get("schema")),
            synchronous=synchronous,
            **{field: _number(name, ours[name]) for name, field in _NUMBERS.items() if name in ours},
        )
        if not 0 <= place.pool_min <= place.pool_max or place.pool_max < 1:
            raise SettingsError(
                f"pool_min is {place.pool_min} and pool_max is {place.pool_max}: at least one connection is needed, and "
                "pool_min may not be larger than pool_max."
            )
        return place


def _check_ports(parts: SplitResult, query: dict[str, str]) -> None:
    """Refuse what the driver would fail on, or would read as another host."""
    if splits_password(parts):
        raise SettingsError(f"The URL of PostgreSQL cannot be read: an @ stands behind the host. {ENCODE}")
    login, _, hosts = parts.netloc.rpartition("@")
    # The brackets of an IPv6 address have colons of their own.
    ends = [host.rpartition("]")[2].partition(":")[2] for host in hosts.split(",")]
    wrong = next((port for port in (*ends, *query.get("port", "").split(",")) if not _is_port(port)), None)
    if wrong is not None:
        # Without a login, it may be a password whose host is missing.
        named = f"port {wrong!r}" if login else "the port"
        raise SettingsError(
            f"The URL of PostgreSQL cannot be read: {named} is no number from 1 to 65535. {ENCODE}"
        )


def _is_port(text: str) -> bool:
    text = unquote(text)
    return not text or (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536)


def _schema(name: str | None) -> str | None:
    if name is not None and (not name or len(name.encode("utf-8", "replace")) > 63 or "\0" in name):
        raise SettingsError(f"The schema {name!r} is not a name that PostgreSQL accepts: use 1 to 63 bytes.")
    return name


def _number(name: str, text: str) -> Any:
    try:
        number = float(text)
    except ValueError as error:
        raise SettingsError(f"{name} is {text!r} in the store's URL: give a number.") from error
    if not 0 <= number <= _MOST:  # rejects NaN too
        raise SettingsError(f"{name} is {text!r} in the store's URL: give a number from 0 to {_MOST}.")
    return number if name == "command_timeout" else int(number)
