"""`serve`: the HTTP service on this machine."""

import errno
import socket
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from pagefile.cli.opening import ConfigFile, Db, loaded, run
from pagefile.cli.output import say
from pagefile.errors import MissingExtraError, SettingsError
from pagefile.settings import ServiceSettings, Settings
from pagefile.settings.sources import shown

#: How long running requests may take to end after Ctrl-C.
_PATIENCE_S = 5


def serve(
    ctx: typer.Context,
    *,
    host: Annotated[str | None, typer.Option(help="Where to listen, 127.0.0.1 unless set.")] = None,
    port: Annotated[int | None, typer.Option(help="The port, 8780 unless set.")] = None,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Start the HTTP service; Ctrl-C stops it."""
    settings = loaded(ctx, db, config, {"service.host": host, "service.port": port}).settings
    start = _server(settings)
    # A database that cannot be opened is an error to read, not a traceback of the server's start.
    run(settings, lambda memory: memory.describe(), must_exist=False)
    with _listening(settings.service) as listener:
        say(_greeting(settings))
        sys.stdout.flush()
        try:
            start(listener)
        except KeyboardInterrupt:
            say("Stopped.")


def _server(settings: Settings) -> Callable[[socket.socket], None]:
    """What serves on a socket until it is told to stop."""
    try:
        import uvicorn  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise MissingExtraError.of("service", "`pagefile serve`") from error
    from pagefile.service.app import create_app  # noqa: PLC0415 - likewise

    config: Any = uvicorn.Config(
        create_app(settings),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_PATIENCE_S,
    )
    return lambda listener: uvicorn.Server(config).run(sockets=[listener])


def _listening(service: ServiceSettings) -> socket.socket:
    try:
        family = socket.getaddrinfo(service.host, service.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((service.host, service.port), family=family)
    except OSError as error:
        where = f"{service.host}:{service.port}"
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(
                f"{where} is in use: stop what listens there, or choose another --port."
            ) from error
        raise SettingsError(
            f"Cannot listen on {where} ({error}): choose another --host or --port."
        ) from error


def _greeting(settings: Settings) -> str:
    host = f"[{settings.service.host}]" if ":" in settings.service.host else settings.service.host
    url = f"http://{host}:{settings.service.port}"
    return f"Pagefile serves {shown(settings.url)} at {url} (the API: {url}/docs). Ctrl-C stops it."
