"""Coding agents: the hooks and the MCP server in their own settings, for one project."""

import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pagefile.agents import hook
from pagefile.agents.config_files import (
    Change,
    json_change,
    refused,
    text_change,
    with_entry,
    without_entry,
)
from pagefile.agents.mcp_clients import SERVER
from pagefile.errors import InvalidArgumentError
from pagefile.integrations.projects import project_user
from pagefile.shapes.skeleton import as_list, as_object

AgentName = Literal["claude", "codex", "opencode"]

_HOOK = str(Path(hook.__file__).resolve())
#: How its path ends in every installation.
_SCRIPT = str(Path(*Path(_HOOK).parts[-3:]))
#: What an agent waits for a hook at most, in seconds; ours ends long before.
_TIMEOUT_S = 5
#: The header that says which project's memory it is.
_PROJECT = "X-Pagefile-Project"


@dataclass(frozen=True, slots=True)
class CodingAgent:
    title: str
    #: The events whose hooks it is given, each with the tools it is for; empty for events without tools.
    events: Mapping[str, str]
    changes: Callable[["CodingAgent", Path, str, Sequence[str]], list[Change]]
    taken_back: Callable[["CodingAgent", Path], list[Change]]

    def with_hooks(self, settings: Mapping[str, Any], command: str, path: Path = Path()) -> dict[str, Any]:
        """The settings with our hooks behind those that are there."""
        hooks = dict(_object_at(settings, "hooks", path))
        entry = {"hooks": [{"type": "command", "command": command, "timeout": _TIMEOUT_S}]}
        for event, matcher in self.events.items():
            others = _others(_list_at(hooks, event, path))
            hooks[event] = [*others, {**({"matcher": matcher} if matcher else {}), **entry}]
        return {**settings, "hooks": hooks}

    def without_hooks(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings without our hooks."""
        hooks = as_object(settings.get("hooks"))
        if hooks is None:
            return dict(settings)
        left = {name: _others(held) if (held := as_list(one)) else one for name, one in hooks.items()}
        left = {name: one for name, one in left.items() if one or not hooks[name]}
        rest = {name: value for name, value in settings.items() if name != "hooks"}
        return {**rest, "hooks": left} if left or not hooks else rest


def _object_at(settings: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    """What is there, or nothing; something of another shape is never overwritten."""
    held = settings.get(name)
    found = {} if held is None else as_object(held)
    return refused(path, name) if found is None else found


def _list_at(settings: Mapping[str, Any], name: str, path: Path) -> Sequence[Any]:
    held = settings.get(name)
    found = [] if held is None else as_list(held)
    return refused(path, name) if found is None else found


def _others(entries: Sequence[Any]) -> list[Any]:
    """The entries without our hooks; those beside them in an entry stay."""
    kept: list[Any] = []
    for entry in entries:
        fields = as_object(entry) or {}
        inner = as_list(fields.get("hooks")) or ()
        others = [one for one in inner if not _is_ours(one)]
        if len(others) == len(inner):
            kept.append(entry)
        elif others:
            kept.append({**fields, "hooks": others})
    return kept


def _is_ours(one: object) -> bool:
    """Whether a hook is ours, of whichever installation: Python may have been replaced since."""
    return _SCRIPT in str((as_object(one) or {}).get("command"))


def local_address(host: str, port: int) -> str:
    """Where a service that listens here is asked; one that listens on all addresses, at the local one."""
    here = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - read, not bound
    return f"http://[{here}]:{port}" if ":" in here else f"http://{here}:{port}"


def service_address(url: str) -> str:
    """The address of a service as hooks ask it: they speak HTTP without TLS, and know no path."""
    try:
        found = urlsplit(url)
        host, port = found.hostname, found.port
    except ValueError as error:
        raise InvalidArgumentError(f"{url!r} is not the URL of a service: {error}.") from error
    if found.scheme != "http" or not host or found.path.strip("/") or found.query or found.username:
        raise InvalidArgumentError(
            f"{url!r} is not a URL that hooks can ask: give http://HOST:PORT, without a path, of the service or of a proxy to it."
        )
    return local_address(host, port or 80)


def hook_command(url: str, agent: AgentName, project: Path, deadline: Sequence[str]) -> str:
    """The command of a hook: this Python without anything that takes time to start."""
    return shlex.join([sys.executable, "-I", "-S", _HOOK, url, agent, str(project), *deadline])


def _mcp_server(project: Path, url: str, *, key: str) -> dict[str, Any]:
    """The MCP server of the service. `key` is how the agent's settings name an environment variable: no file holds the key itself."""
    headers = {_PROJECT: project_user(project), "X-Pagefile-Key": key}
    return {"url": f"{url.rstrip('/')}/mcp", "headers": headers}


def _without_server(settings: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The settings without the server of `wrap`; one of this name that somebody else put there stays."""
    held = as_object((as_object(settings.get(place)) or {}).get(SERVER)) or {}
    is_ours = _PROJECT in (as_object(held.get("headers")) or {})
    return without_entry(settings, (place, SERVER)) if is_ours else dict(settings)


# -- Claude Code ------------------------------------------------------------------------------------------------------

#: Raised, because Claude Code would otherwise cut long output, or move it to a file, before a hook sees it.
_OUTPUT_LIMITS = {"MAX_MCP_OUTPUT_TOKENS": "10000000", "BASH_MAX_OUTPUT_LENGTH": "150000"}
_ALLOWED = "enabledMcpjsonServers"


def _claude_changes(agent: CodingAgent, project: Path, url: str, deadline: Sequence[str]) -> list[Change]:
    own, shared = project / ".claude" / "settings.local.json", project / ".mcp.json"
    command = hook_command(url, "claude", project, deadline)

    def settings(found: dict[str, Any]) -> dict[str, Any]:
        found = agent.with_hooks(found, command, own)
        for name, value in _OUTPUT_LIMITS.items():
            # One's own limits stay.
            if name not in (as_object(found.get("env")) or {}):
                found = with_entry(found, ("env", name), value, own)
        allowed = [*_list_at(found, _ALLOWED, own)]
        return {**found, _ALLOWED: allowed if SERVER in allowed else [*allowed, SERVER]}

    server = {"type": "http", **_mcp_server(project, url, key="${PAGEFILE_KEY:-}")}
    return [
        json_change(own, settings),
        json_change(shared, lambda found: with_entry(found, ("mcpServers", SERVER), server, shared)),
    ]


def _claude_taken_back(agent: CodingAgent, project: Path) -> list[Change]:
    def settings(found: dict[str, Any]) -> dict[str, Any]:
        found = agent.without_hooks(found)
        for name, value in _OUTPUT_LIMITS.items():
            if (as_object(found.get("env")) or {}).get(name) == value:
                found = without_entry(found, ("env", name))
        held = as_list(found.get(_ALLOWED)) or ()
        if SERVER not in held:
            return found
        allowed = [one for one in held if one != SERVER]
        rest = {name: value for name, value in found.items() if name != _ALLOWED}
        return {**rest, _ALLOWED: allowed} if allowed else rest

    return [
        json_change(project / ".claude" / "settings.local.json", settings),
        json_change(project / ".mcp.json", lambda found: _without_server(found, "mcpServers")),
    ]


def plugin_files(url: str, db: str, deadline_s: float | None = None) -> dict[str, str]:
    """A plug-in folder for Claude Code, by the paths in it: hooks, the MCP server and a skill, for every project, each apart."""
    # The folder in which a session began: that of its input changes as it goes on.
    command = shlex.join([sys.executable, "-I", "-S", _HOOK, url, "claude"]) + ' "$CLAUDE_PROJECT_DIR"'
    command += "".join(f" {one}" for one in _deadline(deadline_s))
    about = {
        "name": SERVER,
        "version": version("pagefile"),
        "description": "Memory for each project: what was said comes back, bulky output is paged.",
        "license": "Apache-2.0",
    }
    server = {"command": sys.executable, "args": ["-m", "pagefile", "mcp", "--db", db, "--project", "."]}
    skill = files("pagefile.agents").joinpath("claude_plugin", "skills", "memory", "SKILL.md")
    return {
        ".claude-plugin/plugin.json": _json(about),
        "hooks/hooks.json": _json(AGENTS["claude"].with_hooks({}, command)),
        ".mcp.json": _json({"mcpServers": {SERVER: server}}),
        "skills/memory/SKILL.md": skill.read_text(encoding="utf-8"),
    }


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


# -- Codex ------------------------------------------------------------------------------------------------------------


def _codex_file(project: Path) -> Path:
    return project / ".codex" / "hooks.json"


def _codex_changes(agent: CodingAgent, project: Path, url: str, deadline: Sequence[str]) -> list[Change]:
    command, path = hook_command(url, "codex", project, deadline), _codex_file(project)
    return [json_change(path, lambda found: agent.with_hooks(found, command, path))]


def _codex_taken_back(agent: CodingAgent, project: Path) -> list[Change]:
    return [json_change(_codex_file(project), agent.without_hooks)]


# -- OpenCode ---------------------------------------------------------------------------------------------------------

_OPENCODE_DEADLINE_S = 0.25


def _opencode_changes(agent: CodingAgent, project: Path, url: str, deadline: Sequence[str]) -> list[Change]:
    deadline_s = float(deadline[0]) if deadline else _OPENCODE_DEADLINE_S
    settings = {"url": url.rstrip("/"), "project": str(project), "deadline_ms": round(deadline_s * 1000)}
    template = _opencode_template()
    plugin = template.replace("{/* settings */}", json.dumps(settings, ensure_ascii=False))
    own, shared = text_change(_opencode_plugin(project), plugin), project / "opencode.json"
    if own.before is not None and not _is_our_plugin(own.before):
        refused(own.path, "plug-in")
    server = {"type": "remote", **_mcp_server(project, url, key="{env:PAGEFILE_KEY}")}
    return [
        own,
        json_change(shared, lambda found: with_entry(found, ("mcp", SERVER), server, shared)),
    ]


def _opencode_plugin(project: Path) -> Path:
    return project / ".opencode" / "plugin" / "pagefile.js"


def _opencode_template() -> str:
    return files("pagefile.agents").joinpath("opencode_plugin.js").read_text(encoding="utf-8")


def _is_our_plugin(text: str) -> bool:
    """Whether a plug-in begins as ours does."""
    return text.partition("\n")[0] == _opencode_template().partition("\n")[0]


def _opencode_taken_back(agent: CodingAgent, project: Path) -> list[Change]:
    own = text_change(_opencode_plugin(project), None)
    return [
        own if _is_our_plugin(own.before or "") else text_change(own.path, own.before),
        json_change(project / "opencode.json", lambda found: _without_server(found, "mcp")),
    ]


_EVENTS = {"SessionStart": "", "UserPromptSubmit": "", "PostToolUse": "*", "PreCompact": "", "Stop": ""}

AGENTS: Mapping[str, CodingAgent] = {
    "claude": CodingAgent("Claude Code", _EVENTS, _claude_changes, _claude_taken_back),
    "codex": CodingAgent("Codex", _EVENTS, _codex_changes, _codex_taken_back),
    "opencode": CodingAgent("OpenCode", {}, _opencode_changes, _opencode_taken_back),
}


def wrapped(agent: AgentName, project: Path, url: str, deadline_s: float | None = None) -> Sequence[Change]:
    """The changes that put Pagefile into an agent's settings of a project."""
    known = AGENTS[agent]
    return known.changes(known, project, url, _deadline(deadline_s))


def _deadline(seconds: float | None) -> tuple[str, ...]:
    return () if seconds is None else (f"{seconds:g}",)


def unwrapped(agent: AgentName, project: Path) -> Sequence[Change]:
    """The changes that take it out again."""
    known = AGENTS[agent]
    return known.taken_back(known, project)
