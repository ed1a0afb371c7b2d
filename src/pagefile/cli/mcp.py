"""`mcp`: this memory for clients of the Model Context Protocol."""

import shlex
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, BadParameter, Option

from pagefile.agents.mcp_clients import CLIENTS, ClientName, server_command
from pagefile.cli.commands import Group
from pagefile.cli.invocation import (
    Invocation,
    command,
    confirm,
    database_url,
    group,
    make_home_folder,
    remove_home_folder,
)
from pagefile.cli.options import Yes, in_conversation, of_user
from pagefile.cli.output import say
from pagefile.integrations.projects import project_user

_SERVE = "serve"
_User = Annotated[str | None, of_user(help="The user to remember for; by default mcp.user_id.")]


class _Serving(Group):
    """`pagefile mcp` without a command serves: that is what clients are set up to run."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # `serve` takes options alone, so that a word is meant to be a command.
        named = args and (not args[0].startswith("-") or args[0] in {"-h", "--help"})
        return super().parse_args(ctx, args if named else [_SERVE, *args])


app = group(
    "Serve this memory to clients of the Model Context Protocol.\n\nExamples:\npagefile mcp\npagefile mcp install claude-desktop",
    _Serving,
)


@command(app, _SERVE, json=False)
def serve(
    cli: Invocation,
    *,
    user_id: _User = None,
    conversation: Annotated[
        str, in_conversation(help="Where to record exchanges that name no conversation.")
    ] = "mcp",
    project: Annotated[
        Path | None, Option(help="A project folder: use that project's own memory instead of a user's.")
    ] = None,
    face: Annotated[
        Literal["pagefile", "reference-memory"],
        Option("--as", help="Which tools to offer: Pagefile's, or those of the MCP reference memory server."),
    ] = "pagefile",
) -> None:
    """Serve one client over standard input and output: what `pagefile mcp` does without a command.

    Over HTTP, `pagefile serve` serves the same at /mcp.

    Examples:
        pagefile mcp
        pagefile mcp serve --user ada --db ~/memory.db
    """
    settings = cli.loaded(patient=False).settings
    whose = project_user(project.resolve()) if project is not None else user_id or settings.mcp.user_id
    if face == "reference-memory":
        work = _serving().reference_memory_server(whose, cli.tenant)
    else:
        work = _serving().memory_server(whose, cli.tenant, conversation)
    cli.run(work, settings=settings, must_exist=False)


@command(app, "wrap", json=False)
def wrap(
    cli: Invocation,
    target: Annotated[
        list[str], Argument(metavar="COMMAND… | URL", help="The server: a command after `--`, or a URL.")
    ],
    *,
    user_id: _User = None,
    conversation: Annotated[
        str | None,
        in_conversation(
            help="Where to archive its results; by default a conversation named after the server."
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        Option(help="A header for a server behind a URL: `--header 'Authorization: Bearer …'`."),
    ] = None,
    max_tokens: Annotated[
        int | None, Option(min=1, help="Page out results longer than this; by default mcp.max_result_tokens.")
    ] = None,
) -> None:
    """Serve another MCP server over standard input and output, and page out its bulky results.

    The client sees the server unchanged, plus two tools that load archived results.

    Examples:
        pagefile mcp wrap -- npx some-mcp-server
        pagefile mcp wrap https://mcp.example.com/mcp --max-tokens 1000
    """
    settings = cli.loaded(patient=False).settings
    headers = dict(_header(one) for one in header or ())
    work = _serving().proxy_server(
        target,
        headers,
        (user_id or settings.mcp.user_id, cli.tenant, conversation),
        max_tokens or settings.mcp.max_result_tokens,
    )
    cli.run(work, settings=settings, must_exist=False)


def _serving() -> Any:
    """The extra mcp, which help texts and the settings of clients do without."""
    return import_module("pagefile.cli.mcp_serving")


def _header(given: str) -> tuple[str, str]:
    name, colon, value = given.partition(":")
    if not colon or not name.strip():
        raise BadParameter(f"{given!r} is not a header: write `Name: value`")
    return name.strip(), value.strip()


# -- the settings of clients -----------------------------------------------------------------------------------------------

_Client = Annotated[ClientName, Argument(metavar="CLIENT", help=f"One of {', '.join(CLIENTS)}.")]
_Project = Annotated[
    Path | None,
    Option(
        help="Only for the project in this folder, with its own memory; by default for all your projects."
    ),
]


@command(app, "install", tenant=False, json=False)
def install(cli: Invocation, client: _Client, *, project: _Project = None, yes: Yes = False) -> None:
    """Add the server to a client's settings: shows the change, keeps a copy of the file, and never overwrites an entry.

    Examples:
        pagefile mcp install claude-desktop
        pagefile mcp install cursor --project ~/code/shop
    """
    known = CLIENTS[client]
    whose = _in(project)
    path = known.path(Path.home(), project)
    database = database_url(cli)
    change = known.installed(path, server_command(database, *whose))
    if not change.is_needed:
        say(f"{known.title} has it already: {path}.")
        return
    say(change.diff())
    if not yes:
        confirm(f"change {path}", otherwise="nothing was changed")
    change.make()
    make_home_folder(database)
    back = shlex.join(["pagefile", "mcp", "uninstall", client, *_in(project)])
    say(f"\nDone. Start {known.title} again. `{back}` undoes this.")


@command(app, "uninstall", tenant=False, json=False)
def uninstall(cli: Invocation, client: _Client, *, project: _Project = None, yes: Yes = False) -> None:
    """Remove the server from a client's settings, and the copy that `install` kept.

    Examples:
        pagefile mcp uninstall cursor
    """
    known = CLIENTS[client]
    change = known.uninstalled(known.path(Path.home(), project))
    if not change.is_needed:
        say(f"{known.title} does not have it: {change.path}.")
        return
    say(change.diff())
    if not yes:
        confirm(f"change {change.path}", otherwise="nothing was changed")
    change.take_back(Path.home() if project is None else project)
    remove_home_folder()
    say("\nDone.")


def _in(project: Path | None) -> tuple[str, ...]:
    return () if project is None else ("--project", str(project.resolve()))
