"""A Milvus as its URL names it."""

from dataclasses import dataclass, field
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

from pagefile.errors import MissingExtraError, SettingsError

_PORT = 19530
_HOW = (
    "write milvus://[user:password@]host:19530[/database] for a server, milvus:///relative.db or "
    "milvus:////absolute/path.db for a file"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a Milvus is: a server, or a file that this process alone may open."""

    #: As pymilvus takes it.
    uri: str
    #: For messages: no password.
    shown: str
    is_file: bool
    database: str = ""
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def of(cls, url: str) -> "Place":
        """The place a URL names, or an error that says what is wrong with it."""
        try:
            parts = urlsplit(url)
            port = parts.port or _PORT
        except ValueError:
            # What the parser says quotes parts of the URL, of which one may be a password.
            raise SettingsError(f"The Milvus URL cannot be read: {_HOW}.") from None
        if parts.query or parts.fragment:
            raise SettingsError(f"The Milvus URL takes no options: {_HOW}.")
        if not parts.netloc:
            return cls._file(unquote(parts.path[1:]))
        if not parts.hostname:
            raise SettingsError(f"The Milvus URL has no host: {_HOW}.")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        database = unquote(parts.path[1:])
        return cls(
            uri=f"http://{host}:{port}",
            shown=f"milvus://{host}:{port}" + (f"/{database}" if database else ""),
            is_file=False,
            database=database,
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
        )

    @classmethod
    def _file(cls, path: str) -> "Place":
        # pymilvus takes a path for a file only if it ends so.
        if not path.endswith(".db") or path.endswith("/.db"):
            raise SettingsError(f"The file of a Milvus must have a name that ends in .db: {_HOW}.")
        if find_spec("milvus_lite") is None:
            raise MissingExtraError(
                "A Milvus in a file needs another package: run `pip install milvus-lite`, or name a server."
            )
        return cls(uri=path if path.startswith("/") else f"./{path}", shown=f"milvus:///{path}", is_file=True)
