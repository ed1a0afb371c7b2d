"""`serve` and `worker`: the HTTP service on this machine, and background work in a separate process."""

import errno
import socket
import sys
from functools import partial
from typing import Annotated

import anyio
from typer import Option

from pagefile.cli.invocation import Invocation, command, existing_file
from pagefile.cli.output import say, warn
from pagefile.engine import Memory
from pagefile.engine.background import dedicated, look_after
from pagefile.errors import SettingsError
from pagefile.settings import ServiceSettings, Settings
from pagefile.settings.sources import shown


@command(tenant=False, json=False)
def serve(
    cli: Invocation,
    *,
    host: Annotated[str | None, Option(help="Where to listen, 127.0.0.1 unless set.")] = None,
    port: Annotated[int | None, Option(help="The port, 8780 unless set.")] = None,
    workers: Annotated[
        int | None,
        Option(min=1, help="The number of processes, 1 unless set; for more than one, use PostgreSQL."),
    ] = None,
) -> None:
    """Start the HTTP service; Ctrl-C stops it.

    Examples:
        pagefile serve
        pagefile serve --port 9000 --db /data/agent.db
        pagefile serve --db postgresql://pagefile@db/pagefile --workers 4
    """
    _serve(cli, {"service.host": host, "service.port": port, "service.workers": workers})


@command(tenant=False, json=False)
def gateway(
    cli: Invocation,
    *,
    openai_url: Annotated[
        str | None,
        Option(help="Where to send requests in OpenAI's protocols, such as https://api.openai.com/v1."),
    ] = None,
    anthropic_url: Annotated[
        str | None,
        Option(help="Where to send requests in Anthropic's protocol, such as https://api.anthropic.com."),
    ] = None,
    user: Annotated[str | None, Option(help="The user to remember for, when a request names none.")] = None,
    host: Annotated[str | None, Option(help="Where to listen, 127.0.0.1 unless set.")] = None,
    port: Annotated[int | None, Option(help="The port, 8780 unless set.")] = None,
) -> None:
    """Start the service with the gateway: agents get memory by changing their base URL. Ctrl-C stops it.

    The same as `serve` with the settings `gateway.openai_url` and `gateway.anthropic_url`.

    Examples:
        pagefile gateway --openai-url https://api.openai.com/v1 --user me
        pagefile gateway --anthropic-url https://api.anthropic.com
    """
    said = {"service.host": host, "service.port": port}
    urls = {"gateway.openai_url": openai_url, "gateway.anthropic_url": anthropic_url, "gateway.user_id": user}
    _serve(cli, {**said, **urls}, check_gateway=True)


def _serve(cli: Invocation, said: dict[str, object], *, check_gateway: bool = False) -> None:
    from pagefile.service.workers import check, serve_many, serve_one  # noqa: PLC0415 - slow to import, and no other command needs it

    loaded = cli.loaded(said, patient=False)
    settings = loaded.settings
    if check_gateway and not has_gateway(settings):
        raise SettingsError(
            "No provider is set: give --openai-url or --anthropic-url, or set gateway.openai_url or gateway.anthropic_url."
        )
    check(settings)
    # A port that is taken is found before a database is made that nobody would use.
    with _listening(settings.service) as listener:
        # Report a database that cannot be opened as an error, not as a traceback from the server's startup.
        cli.run(partial(_checked, settings), settings=settings, must_exist=False)
        say(_greeting(settings))
        say(loaded.said)
        sys.stdout.flush()
        try:
            (serve_one if settings.service.workers == 1 else serve_many)(settings, listener)
        except KeyboardInterrupt:
            say("Stopped.")


async def _checked(settings: Settings, memory: Memory) -> None:
    from pagefile.service.exposure import check_binding, requires_keys  # noqa: PLC0415 - likewise

    await memory.describe()
    keys = memory.engine.store.keys
    await check_binding(settings.service, keys)
    if requires_keys(settings.service) and not await keys.list():
        warn("Keys are required and there is none: `pagefile keys add NAME` makes one.")
    if settings.service.workers > 1 and settings.url.startswith("sqlite:"):
        warn(
            "Several processes share one SQLite file: reads go side by side, writes take turns. PostgreSQL is made for it."
        )


def _listening(service: ServiceSettings) -> socket.socket:
    try:
        family = socket.getaddrinfo(service.host, service.port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((service.host, service.port), family=family)
    except OSError as error:
        where = f"{service.host}:{service.port}"
        told = f"Cannot listen on {where} ({error}): choose another --host or --port."
        if error.errno == errno.EADDRINUSE:
            told = f"{where} is in use: stop the program that listens there, or choose another --port."
        raise SettingsError(told) from error
    # Accepted connections inherit it. asyncio does not set it on a socket it did not create, and then every response on a
    # keep-alive connection waits 40 ms between head and body for the client's acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def has_gateway(settings: Settings) -> bool:
    return settings.gateway.openai_url is not None or settings.gateway.anthropic_url is not None


def _greeting(settings: Settings) -> str:
    host = f"[{settings.service.host}]" if ":" in settings.service.host else settings.service.host
    url = f"http://{host}:{settings.service.port}"
    served = f"Pagefile serves {shown(settings.url)} at {url} (the API: {url}/docs). Ctrl-C stops it."
    if not has_gateway(settings):
        return served
    bases = {
        "OpenAI": (settings.gateway.openai_url, "/v1"),
        "Anthropic": (settings.gateway.anthropic_url, ""),
    }
    lines = [f"Base URL for {name}: {url}{path} → {shown(to)}" for name, (to, path) in bases.items() if to]
    return "\n".join([served, *lines])


@command(tenant=False, json=False)
def worker(cli: Invocation) -> None:
    """Do the background work of processes that run with `worker = "apart"`: indexes, checkpoints, facts. Ctrl-C stops it.

    It does not create the database: the service does, so start that first.

    Examples:
        pagefile worker --db postgresql://pagefile@db/pagefile
    """
    settings = dedicated(cli.loaded(patient=False).settings)
    existing_file(settings.url, otherwise=", or start the service first, which creates it")

    def ready() -> None:
        say(f"Doing the background work of {shown(settings.url)}. Ctrl-C stops it.")
        sys.stdout.flush()

    anyio.run(look_after, settings, ready)
    say("Stopped.")
