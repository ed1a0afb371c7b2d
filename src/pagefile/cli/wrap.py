"""`wrap` and `unwrap`: memory for a coding agent in a project, through the agent's own hooks."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Option

from pagefile.agents.coding_agents import (
    AGENTS,
    AgentName,
    local_address,
    plugin_files,
    service_address,
    unwrapped,
    wrapped,
)
from pagefile.agents.config_files import Change
from pagefile.cli.invocation import Invocation, command, confirm, database_url, make_home_folder
from pagefile.cli.options import Yes
from pagefile.cli.output import say

_Agent = Annotated[AgentName, Argument(help="The coding agent.")]
_Project = Annotated[Path, Option(help="The project's folder; by default the current one.")]


@command(tenant=False, json=False)
def wrap(
    cli: Invocation,
    agent: _Agent,
    *,
    project: _Project = Path(),
    url: Annotated[
        str | None, Option(help="The running service; by default the one in the settings.")
    ] = None,
    deadline: Annotated[
        float | None,
        Option(min=0.05, max=4, help="How long a hook waits for the service, 0.25 s unless set."),
    ] = None,
    plugin: Annotated[
        Path | None,
        Option(
            help="Write a plug-in for Claude Code into this folder instead, for `claude --plugin-dir`; each project has its own memory."
        ),
    ] = None,
    yes: Yes = False,
) -> None:
    """Give a coding agent memory in a project: record conversations, page out bulky output, add memories to each prompt.

    The hooks call the service (`pagefile serve`); while it is not running, they do nothing.

    Examples:
        pagefile wrap claude
        pagefile wrap codex --project ~/code/shop
    """
    service = cli.settings.service
    address = service_address(url) if url else local_address(service.host, service.port)
    if plugin is not None:
        _write_plugin(cli, agent, plugin, plugin_files(address, database_url(cli), deadline))
        return
    changes = wrapped(agent, project.resolve(), address, deadline)
    if not _shown(changes, f"{AGENTS[agent].title} is set up here already.", yes=yes):
        return
    for change in changes:
        change.make()
    # From the project itself, it needs no name.
    elsewhere = () if project == Path() else ("--project", str(project.resolve()))
    back = shlex.join(["pagefile", "unwrap", agent, *elsewhere])
    say(
        f"\nDone. Start `pagefile serve`, then {AGENTS[agent].title} in {project.resolve()}. `{back}` undoes this."
    )
    if agent == "codex":
        say("Codex asks once whether the project and its hooks are trusted (/hooks).")


@command(tenant=False, json=False)
def unwrap(cli: Invocation, agent: _Agent, *, project: _Project = Path(), yes: Yes = False) -> None:
    """Remove Pagefile from a coding agent's settings in a project; the recorded memory stays in the database.

    Examples:
        pagefile unwrap claude
    """
    changes = unwrapped(agent, project.resolve())
    if not _shown(changes, f"{AGENTS[agent].title} is not set up here.", yes=yes):
        return
    for change in changes:
        change.take_back(project.resolve())
    say("\nDone.")


def _write_plugin(cli: Invocation, agent: AgentName, folder: Path, texts: Mapping[str, str]) -> None:
    if agent != "claude":
        raise BadParameter("only Claude Code takes a plug-in folder")
    if folder.exists() and any(folder.iterdir()):
        raise BadParameter(f"{folder} is not empty: name a new folder")
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    make_home_folder(database_url(cli))
    say(f"Done. Start `pagefile serve --db {database_url(cli)}`, then `claude --plugin-dir {folder}`.")


def _shown(changes: Sequence[Change], otherwise: str, *, yes: bool) -> bool:
    """Show the changes and ask; False if there is none."""
    needed = [change for change in changes if change.is_needed]
    for change in needed:
        say(change.diff())
    if not needed:
        say(otherwise)
        return False
    if not yes:
        confirm("make these changes", otherwise="nothing was changed")
    return True
