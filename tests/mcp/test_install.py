"""The settings of clients: changed as shown, and given back as they were."""

import json
import tomllib
from pathlib import Path

import pytest

from pagefile.agents.config_files import BACKUP
from pagefile.agents.mcp_clients import CLIENTS
from pagefile.errors import ConflictError, TransferError
from tests.acceptance.cli_calling import pagefile

COMMAND = ["/usr/bin/python", "-m", "pagefile", "mcp", "--db", "/data/记忆.db"]
BEFORE = {
    ".json": '{\n    "theme": "dark",\n    "mcpServers": {"git": {"command": "uvx"}},\n    "servers": {}\n}',
    ".toml": '# mine\nmodel = "o9"\n\n[mcp_servers.git]\ncommand = "uvx"',
}


PLATFORMS = ["linux", "darwin", "win32"]
#: Where each client's documentation says that its list of servers is, and what an entry has to say.
DOCUMENTED = {
    "claude-code": (".claude.json", ".claude.json", ".claude.json", "mcpServers", {}),
    "claude-desktop": (
        ".config/Claude/claude_desktop_config.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
        "AppData/Roaming/Claude/claude_desktop_config.json",
        "mcpServers",
        {},
    ),
    "cursor": (".cursor/mcp.json", ".cursor/mcp.json", ".cursor/mcp.json", "mcpServers", {}),
    "vscode": (
        ".config/Code/User/mcp.json",
        "Library/Application Support/Code/User/mcp.json",
        "AppData/Roaming/Code/User/mcp.json",
        "servers",
        {"type": "stdio"},
    ),
    "codex": (".codex/config.toml", ".codex/config.toml", ".codex/config.toml", "mcp_servers", {}),
}


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_an_entry_has_its_documented_place_and_shape(tmp_path, monkeypatch, client, platform):
    *paths, key, more = DOCUMENTED[client]
    monkeypatch.setattr("sys.platform", platform)
    path = CLIENTS[client].path(tmp_path, None)
    monkeypatch.undo()
    assert tmp_path / paths[PLATFORMS.index(platform)] == path
    CLIENTS[client].installed(path, COMMAND).make()
    assert {key: {"pagefile": {**more, "command": COMMAND[0], "args": COMMAND[1:]}}} == read(path)


def read(path):
    return (json if path.suffix == ".json" else tomllib).loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("client", sorted(CLIENTS))
@pytest.mark.parametrize("there", [False, True])
def test_a_client_is_set_up_and_set_back(tmp_path, client, there):
    """Byte for byte, and without leaving a file that was not there."""
    known = CLIENTS[client]
    path = known.path(tmp_path, None)
    path.parent.mkdir(parents=True, exist_ok=True)
    if there:
        path.write_text(BEFORE[path.suffix], encoding="utf-8")
    known.installed(path, COMMAND).make()
    entry = read(path)[known.place[0]]["pagefile"]
    assert COMMAND == [entry["command"], *entry["args"]]
    assert not known.installed(path, COMMAND).is_needed
    known.uninstalled(path).take_back(tmp_path)
    assert [path] * there == [one for one in tmp_path.rglob("*") if one.is_file()]
    assert not there or BEFORE[path.suffix] == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_what_came_since_stays(tmp_path, client):
    known = CLIENTS[client]
    path = known.path(tmp_path, None)
    path.parent.mkdir(parents=True)
    path.write_text(BEFORE[path.suffix], encoding="utf-8")
    known.installed(path, COMMAND).make()
    more = path.read_text(encoding="utf-8")
    more = more.replace("dark", "light") if path.suffix == ".json" else more + "\n[new]\nx = 1\n"
    path.write_text(more, encoding="utf-8")
    known.uninstalled(path).take_back(tmp_path)
    left = read(path)
    assert "light" == left["theme"] if path.suffix == ".json" else {"x": 1} == left["new"]
    assert "pagefile" not in left[known.place[0]]
    assert not path.with_name(path.name + BACKUP).exists()


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_an_entry_of_ones_own_is_not_overwritten(tmp_path, client):
    known = CLIENTS[client]
    path = known.path(tmp_path, None)
    path.parent.mkdir(parents=True)
    known.installed(path, ["other"]).make()
    with pytest.raises(ConflictError, match="not overwritten"):
        known.installed(path, COMMAND)


@pytest.mark.parametrize("text", ['{"a": 1, // why\n}', "[1]", "[" * 9_000, "= ="])
@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_a_file_that_cannot_be_read_is_left_alone(tmp_path, client, text):
    known = CLIENTS[client]
    path = known.path(tmp_path, None)
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    if client == "codex" and text == "[1]":
        return
    with pytest.raises(TransferError, match="left as it is"):
        known.installed(path, COMMAND)
    assert text == path.read_text(encoding="utf-8")


def test_the_command_shows_the_change_and_asks(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    refused = pagefile("mcp", "install", "cursor")
    assert 2 == refused.code
    assert '+    "pagefile": {' in refused.out
    assert not (tmp_path / ".cursor").exists()
    assert 0 == pagefile("mcp", "install", "cursor", "--yes").code
    assert str(tmp_path / ".pagefile" / "pagefile.db") in (tmp_path / ".cursor" / "mcp.json").read_text()
    assert 0 == pagefile("mcp", "uninstall", "cursor", "--yes").code
    assert "does not have it" in pagefile("mcp", "uninstall", "cursor", "--yes").out


def test_a_project_has_a_memory_of_its_own(tmp_path):
    assert 0 == pagefile("mcp", "install", "claude-code", "--project", str(tmp_path), "--yes").code
    entry = read(tmp_path / ".mcp.json")["mcpServers"]["pagefile"]
    assert ["--project", str(tmp_path)] == entry["args"][-2:]


ODD = {
    "cursor": ["{}", '{"mcpServers": {}}', "", '{\r\n  "theme": "dark"\r\n}\r\n', '{"a":[],"b":{"c":{}}}'],
    "codex": ["# mine only", 'model = "o9"\r\n\r\n[tui]\r\nx = 1\r\n', "[mcp_servers]\n", "\n\n"],
}


@pytest.mark.parametrize(("client", "text"), [(client, text) for client in ODD for text in ODD[client]])
def test_odd_files_come_back_byte_for_byte(tmp_path, client, text):
    """Also those that say nothing, and those with the line ends of Windows."""
    known = CLIENTS[client]
    path = known.path(tmp_path, None)
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode())
    known.installed(path, COMMAND).make()
    assert COMMAND[0] == read(path)[known.place[0]]["pagefile"]["command"]
    known.uninstalled(path).take_back(tmp_path)
    assert text.encode() == path.read_bytes()
    assert [path] == [one for one in tmp_path.rglob("*") if one.is_file()]


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_folders_that_came_with_the_file_go_with_it(tmp_path, client):
    known = CLIENTS[client]
    path = known.path(tmp_path / "home", None)
    known.installed(path, COMMAND).make()
    known.uninstalled(path).take_back(tmp_path / "home")
    assert [tmp_path / "home"] == [*tmp_path.rglob("*")]


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_a_link_stays_one(tmp_path, client):
    """Settings that are kept elsewhere, as many do with their dotfiles."""
    known = CLIENTS[client]
    path, kept = known.path(tmp_path / "home", None), tmp_path / "dotfiles"
    path.parent.mkdir(parents=True)
    kept.write_text("", encoding="utf-8")
    path.symlink_to(kept)
    known.installed(path, COMMAND).make()
    assert "pagefile" in kept.read_text(encoding="utf-8")
    known.uninstalled(path).take_back(tmp_path / "home")
    assert path.is_symlink()
    assert "" == kept.read_text(encoding="utf-8")


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_a_read_only_file_is_left_alone(tmp_path, client):
    known = CLIENTS[client]
    path = known.path(tmp_path, None)
    path.parent.mkdir(parents=True)
    path.write_text("", encoding="utf-8")
    path.chmod(0o444)
    with pytest.raises(TransferError, match="read-only"):
        known.installed(path, COMMAND).make()
    assert "" == path.read_text(encoding="utf-8")
    assert [path] == [*path.parent.iterdir()]


OWN_TABLES = (
    'mcp_servers = {pagefile = {command = "mine"}}\n',
    '[mcp_servers."pagefile"]\ncommand = "mine"\n',
    '[mcp_servers.pagefile.env]\nX = "1"\n',
    "mcp_servers = {}\n",
    'mcp_servers.git.command = "uvx"\n',
)


@pytest.mark.parametrize("text", OWN_TABLES)
def test_a_table_that_is_written_in_another_way_is_not_broken(tmp_path, text):
    known, path = CLIENTS["codex"], tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    try:
        known.installed(path, COMMAND).make()
    except (ConflictError, TransferError):
        assert text == path.read_text(encoding="utf-8")
    tomllib.loads(path.read_text(encoding="utf-8"))


def test_comments_and_tables_behind_ours_stay(tmp_path):
    known, path = CLIENTS["codex"], tmp_path / "config.toml"
    known.installed(path, COMMAND).make()
    with path.open("a", encoding="utf-8") as file:
        file.write('\n[mcp_servers.pagefile.env]\nX = "1"\n\n# about the next\n[tui]\nx = 1\n')
    known.uninstalled(path).take_back(tmp_path)
    assert "# about the next\n[tui]\nx = 1\n" == path.read_text(encoding="utf-8")


def test_what_takes_it_back_names_the_project(tmp_path):
    said = pagefile("mcp", "install", "cursor", "--project", str(tmp_path), "--yes").out
    assert f"pagefile mcp uninstall cursor --project {tmp_path}`" in said
