"""The address of a Milvus, the part of pymilvus we use, in its own threads, and the one place that translates its errors."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias, TypeVar, cast
from urllib.parse import unquote, urlsplit

from pagefile import errors
from pagefile.stores.addresses import ENCODE, splits_password
from pagefile.stores.breaker import Breaker

logger = logging.getLogger("pagefile")

T = TypeVar("T")

_CONNECT_TIMEOUT_S = 3.0
_THREADS = 4
#: Codes of Milvus: the collection does not exist, or is not in memory.
_NO_COLLECTION = 100
_NOT_LOADED = 101
#: gRPC's own codes, by name: the server is unreachable, slow, or was closed.
_AWAY = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN"})


_PORT = 19530
_HOW = (
    "write milvus://[user:password@]host:19530[/database] for a server, milvus:///relative.db or "
    "milvus:////absolute/path.db for a file"
)


@dataclass(frozen=True, slots=True)
class Place:
    """The address of a Milvus: a server, or a file that only one process may open."""

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
        try:
            parts = urlsplit(url)
            port = parts.port or _PORT
        except ValueError:
            # The parser's message quotes parts of the URL, one of which may be a password.
            raise errors.SettingsError(f"The Milvus URL cannot be read: {_HOW}. {ENCODE}") from None
        if splits_password(parts):
            raise errors.SettingsError(f"The Milvus URL has an @ behind the host. {ENCODE}")
        if parts.query or parts.fragment:
            raise errors.SettingsError(f"The Milvus URL takes no options: {_HOW}.")
        if not parts.netloc:
            return cls._file(unquote(parts.path[1:]))
        if not parts.hostname:
            raise errors.SettingsError(f"The Milvus URL has no host: {_HOW}.")
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
            raise errors.SettingsError(f"The file of a Milvus must have a name that ends in .db: {_HOW}.")
        if find_spec("milvus_lite") is None:
            raise errors.MissingExtraError(
                "A Milvus in a file needs another package: run `pip install milvus-lite`, or name a server."
            )
        return cls(uri=path if path.startswith("/") else f"./{path}", shown=f"milvus:///{path}", is_file=True)


#: A `pymilvus.MilvusClient`, whose own types are partly unknown.
Client: TypeAlias = Any


class NoCollectionError(Exception):
    """The collection does not exist; never leaves this package."""


class NotLoadedError(Exception):
    """The collection is not in memory; never leaves this package."""


class Driver:
    """A client, made on first use and again after a failure; a server that is unreachable is not called for a while."""

    def __init__(self, place: Place, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.place = place
        self._breaker = Breaker(monotonic)
        self._client: Client | None = None
        self._lock = Lock()
        self._closed = False
        # A file does not take two writers at a time.
        workers = 1 if place.is_file else _THREADS
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="pagefile-milvus")

    async def run(self, function: Callable[[Client], T]) -> T:
        self.check_open()
        ticket = self._breaker.enter()
        if ticket is None:
            raise errors.StoreUnavailableError(
                f"{self.place.shown} could not be reached a moment ago, and is left alone for now: check that it runs."
            )
        try:
            result = await asyncio.get_running_loop().run_in_executor(self._threads, self._play, function)
        except errors.StoreUnavailableError as error:
            if self._breaker.failed(ticket):
                logger.warning("The vectors cannot be reached: %s", error)
            raise
        except (errors.StoreError, NoCollectionError, NotLoadedError):
            self._answered(ticket)
            raise
        self._answered(ticket)
        return result

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown)
        if self._client is not None:
            await asyncio.to_thread(self._client.close)
            self._client = None

    def check_open(self) -> None:
        if self._closed:
            raise errors.ClosedError

    def _answered(self, ticket: int) -> None:
        if self._breaker.succeeded(ticket):
            logger.info("The vectors at %s can be reached again.", self.place.shown)

    def _play(self, function: Callable[[Client], T]) -> T:
        # It comes with pymilvus and is slow to import as well.
        import grpc  # noqa: PLC0415

        refusal: type[Exception] = _pymilvus().MilvusException
        lost: type[Exception] = grpc.RpcError
        try:
            with self._lock:
                if self._client is None:
                    self._client = _connected(self.place)
            return function(self._client)
        except refusal as error:
            raise _ours(cast("Any", error), self.place) from error
        except lost as error:
            # A call that timed out arrives as gRPC's own error.
            reason = cast("Any", error).code().name
            raise errors.StoreUnavailableError(
                f"{self.place.shown} did not answer ({reason}): look at the server's load, and whether it runs."
            ) from error
        except OSError as error:
            raise errors.StoreUnavailableError(f"{self.place.shown} cannot be reached: {error}.") from error


def columns(texts: Mapping[str, int], numbers: Iterable[str], dimension: int) -> tuple[Any, Any]:
    """The schema of a collection, with the sizes of its texts, the first of which is its key; and its index."""
    pymilvus = _pymilvus()
    kinds = pymilvus.DataType
    schema = pymilvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    for place, (name, size) in enumerate(texts.items()):
        schema.add_field(name, kinds.VARCHAR, is_primary=place == 0, max_length=size)
    for number in numbers:
        schema.add_field(number, kinds.INT64)
    schema.add_field("embedding", kinds.FLOAT_VECTOR, dim=dimension)
    index = pymilvus.MilvusClient.prepare_index_params()
    # Exact. Rows that the filter excludes are not compared, so a search costs as much as its scope is large.
    index.add_index("embedding", index_type="FLAT", metric_type="COSINE")
    return schema, index


def _connected(place: Place) -> Client:
    if place.is_file and not Path(place.uri).parent.is_dir():
        raise errors.StoreUnavailableError(
            f"{place.shown} cannot be opened: its directory does not exist. Make it with `mkdir -p "
            f"{Path(place.uri).parent.absolute()}`; an absolute path is written with four slashes, milvus:////srv/vectors.db."
        )
    login = {"user": place.user, "password": place.password, "db_name": place.database}
    return _pymilvus().MilvusClient(place.uri, **login, timeout=_CONNECT_TIMEOUT_S)


def _pymilvus() -> Any:
    # Three seconds and several hundred modules, in a thread: only its users wait for it. Its types are partly unknown.
    import pymilvus  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]

    return pymilvus


def _ours(error: Any, place: Place) -> Exception:
    code, said = error.code, str(error.message)
    reason = " ".join(said.split())
    if code == _NO_COLLECTION:
        return NoCollectionError(reason)
    if code == _NOT_LOADED:
        return NotLoadedError(reason)
    if place.is_file and "Open local milvus failed" in said:
        return errors.StoreUnavailableError(
            f"{place.shown} cannot be opened ({reason}): only one process may use it at a time; several need a server."
        )
    if getattr(code, "name", "") in _AWAY or "Fail connecting" in said or "Retry timeout" in said:
        return errors.StoreUnavailableError(
            f"{place.shown} cannot be reached ({reason}): check that the server runs and that host and port are right."
        )
    return errors.VectorIndexError(f"{place.shown} refused: {reason}.")
