"""`quickstart`: an agent of one's own behind the gateway, for as long as it runs."""

import socket
import subprocess
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from pagefile.cli.invocation import Invocation, command
from pagefile.cli.output import say, visible, warn
from pagefile.errors import SettingsError
from pagefile.settings import Settings
from pagefile.settings.sources import child_environment, shown

_START_S = 60.0
#: The variable that agents read, the setting, its default URL, and the path on the gateway.
_PROVIDERS = (
    ("OPENAI_BASE_URL", "openai_url", "https://api.openai.com/v1", "/v1"),
    ("ANTHROPIC_BASE_URL", "anthropic_url", "https://api.anthropic.com", ""),
)


@command(tenant=False, json=False)
def quickstart(
    cli: Invocation,
    agent: Annotated[list[str], Argument(help="The command that starts your agent, after `--`.")],
    *,
    user: Annotated[str, Option(help="The user to remember for.")] = "me",
) -> None:
    """Run your agent with memory: `pagefile quickstart -- claude`.

    A gateway runs as long as the agent does. Base URLs are set for the agent's process only, so there is nothing to undo; requests
    still go to the same provider.

    Examples:
        pagefile quickstart -- claude
        pagefile quickstart --user ada -- python my_agent.py
    """
    environment = child_environment()
    given = {name: environment.get(variable) or usual for variable, name, usual, _ in _PROVIDERS}
    settings = cli.loaded(
        {"gateway.user_id": user, **{f"gateway.{name}": url for name, url in given.items()}}, patient=False
    ).settings
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        app, server, thread = _started(settings, listener)
        try:
            say(f"Memory: {shown(settings.url)}, user {user!r}. Inspector: {url}. Set for this run only:")
            for variable, name, _, path in _PROVIDERS:
                say(f"  {variable}={url}{path}  → {shown(given[name])}")
                environment[variable] = f"{url}{path}"
            code = _run(_told(agent, url, environment), environment)
        finally:
            server.should_exit = True
            thread.join(_START_S)
    if any(app.state.upstreams.observer.traffic.of(None, None)):
        say(
            "\nLook at it with `{0} tail --once` and `{0} explain`, or in the browser with `{0} serve`.".format(
                visible(cli.place.command)
            )
        )
    else:
        warn(
            "No request came through the gateway: set the base URL in the agent's own settings, and start `pagefile gateway`."
        )
    raise typer.Exit(code)


def _told(agent: list[str], url: str, environment: Mapping[str, str]) -> list[str]:
    """The command; for Codex, which reads no variable, with the URL as one of its settings."""
    command, *rest = agent
    if Path(command).stem != "codex":
        return agent
    login = 'env_key="OPENAI_API_KEY"' if "OPENAI_API_KEY" in environment else "requires_openai_auth=true"
    provider = f'{{name="Pagefile",base_url="{url}/v1",wire_api="responses",{login}}}'
    return [command, "-c", f"model_providers.pagefile={provider}", "-c", 'model_provider="pagefile"', *rest]


def _started(settings: Settings, listener: socket.socket) -> tuple[Any, Any, threading.Thread]:
    import uvicorn  # noqa: PLC0415 - the extra service, which no other command needs

    from pagefile.service.app import create_app  # noqa: PLC0415 - likewise

    app = create_app(settings)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    waited = threading.Event()
    for _ in range(int(_START_S * 100)):
        if server.started:
            return app, server, thread
        if not thread.is_alive():
            break
        waited.wait(0.01)
    raise SettingsError("The gateway did not start: `pagefile serve` says why.")


def _run(agent: list[str], environment: dict[str, str]) -> int:
    try:
        return subprocess.run(agent, env=environment, check=False).returncode  # noqa: S603 - the command that the user typed
    except OSError as error:
        raise SettingsError(
            f"{agent[0]!r} cannot be started ({error.strerror}): give the command of your agent."
        ) from error
