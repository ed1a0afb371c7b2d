"""A home and a project, as they were, byte for byte, after everything that we can put into them was put in and taken out."""

import random
from itertools import product
from pathlib import Path

import pytest

from pagefile.agents.coding_agents import AGENTS
from pagefile.agents.mcp_clients import CLIENTS
from tests.acceptance.cli_calling import pagefile

#: Settings as people have them: their own order, indents, line ends and servers.
HOME = {
    ".claude.json": '{"numStartups": 7, "mcpServers": {"git": {"command": "uvx"}}, "projects": {}}',
    ".claude/settings.json": '{\n\t"permissions": {"allow": ["Bash(ls)"]}\n}\n',
    ".cursor/mcp.json": '{\r\n  "mcpServers": {}\r\n}\r\n',
    ".config/Claude/claude_desktop_config.json": "{}",
    ".config/Code/User/mcp.json": '{\n    "inputs": [],\n    "servers": {"记忆": {"type": "http", "url": "http://x"}}\n}',
    ".codex/config.toml": '# mine\nmodel = "o9"\n\n[mcp_servers.git]\ncommand = "uvx"',
}
PROJECT = {
    ".claude/settings.local.json": '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}',
    ".codex/hooks.json": '{"hooks": {}}\n',
    "opencode.json": '{"$schema": "https://opencode.ai/config.json", "mcp": {}}',
    "main.py": "print(1)\n",
}


def written(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())


def state(folder):
    """Every file with its bytes and permissions, and every folder."""
    return {
        str(one.relative_to(folder)): (one.stat().st_mode, one.read_bytes() if one.is_file() else None)
        for one in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("there", [True, False])
def test_everything_put_in_and_taken_out_in_any_order(tmp_path, monkeypatch, there, seed):
    home, project = tmp_path / "home", tmp_path / "shop"
    for folder, files in ((home, HOME), (project, PROJECT)):
        folder.mkdir()
        written(folder, files if there else {})
    monkeypatch.setattr(Path, "home", lambda: home)
    before = state(tmp_path)
    setups = [*product(["mcp install", "mcp uninstall"], CLIENTS), *product(["wrap", "unwrap"], AGENTS)]
    order = random.Random(seed)
    for verb in (("mcp install", "wrap"), ("mcp uninstall", "unwrap")):
        mine = [setup for setup in setups if setup[0] in verb]
        order.shuffle(mine)
        for command, name in mine:
            where = ("--project", str(project)) if "wrap" in command else ()
            done = pagefile(*command.split(), name, *where, "--yes")
            assert 0 == done.code, done.err
            # A second time changes nothing.
            assert 0 == pagefile(*command.split(), name, *where, "--yes").code
        assert (verb[0] == "mcp install") == (before != state(tmp_path))
    assert before == state(tmp_path)


def test_a_project_with_the_server_already_is_told_so_and_left_alone(tmp_path):
    """`mcp install --project` and `wrap claude` want the same entry."""
    where = ("--project", str(tmp_path), "--yes")
    assert 0 == pagefile("mcp", "install", "claude-code", *where).code
    before = state(tmp_path)
    done = pagefile("wrap", "claude", *where)
    assert 0 != done.code
    assert "pagefile" in done.err
    assert before == state(tmp_path)


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        ("claude", ".mcp.json", '{"mcpServers": {"pagefile": {"command": "mine"}}}'),
        ("claude", ".claude/settings.local.json", '{"hooks": null}'),
        ("opencode", "opencode.json", '{"mcp": {"pagefile": {"type": "local", "command": ["mine"]}}}'),
        ("opencode", ".opencode/plugin/pagefile.js", "export const mine = 1\n"),
    ],
    ids=str,
)
def test_what_somebody_else_wrote_stays(tmp_path, agent, name, text):
    """Whether `wrap` refuses to overwrite it or goes on beside it, `unwrap` leaves it as it was."""
    written(tmp_path, {name: text})
    before = state(tmp_path)
    for command in ("wrap", "unwrap"):
        pagefile(command, agent, "--project", str(tmp_path), "--yes")
    assert before == state(tmp_path)
