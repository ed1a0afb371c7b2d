"""`wrap` and `unwrap`: the settings of coding agents, and a plug-in folder."""

import json

import pytest

from pagefile.agents.coding_agents import AGENTS, plugin_files
from tests.acceptance.cli_calling import pagefile

OWN = '{\n    "permissions": {"allow": ["Bash(ls)"]},\n    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]},\n    "env": {"BASH_MAX_OUTPUT_LENGTH": "9"}\n}'
FILES = {"claude": ".claude/settings.local.json", "codex": ".codex/hooks.json", "opencode": "opencode.json"}


def files_in(folder):
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())


@pytest.mark.parametrize("agent", ["claude", "codex"])
@pytest.mark.parametrize("there", [False, True])
def test_a_project_is_wrapped_and_unwrapped_without_a_trace(tmp_path, agent, there):
    own = tmp_path / FILES[agent]
    if there:
        own.parent.mkdir()
        own.write_text(OWN, encoding="utf-8")
    before = files_in(tmp_path)
    asked = (agent, "--project", str(tmp_path), "--yes")
    assert 0 == pagefile("wrap", *asked).code
    settings = json.loads(own.read_text(encoding="utf-8"))
    assert set(AGENTS[agent].events) <= set(settings["hooks"])
    assert (2 if there else 1) == len(settings["hooks"]["Stop"])
    assert "already" in pagefile("wrap", *asked).out
    assert 0 == pagefile("unwrap", *asked).code
    assert before == files_in(tmp_path)
    assert not there or OWN == own.read_text(encoding="utf-8")
    assert "not set up" in pagefile("unwrap", *asked).out


@pytest.mark.parametrize("there", [False, True])
def test_opencode_gets_a_plugin_of_its_own(tmp_path, there):
    own = tmp_path / "opencode.json"
    if there:
        own.write_text('{"model": "x/y"}', encoding="utf-8")
    before, asked = files_in(tmp_path), ("opencode", "--project", str(tmp_path), "--yes")
    assert 0 == pagefile("wrap", *asked).code
    plugin = (tmp_path / ".opencode" / "plugin" / "pagefile.js").read_text(encoding="utf-8")
    assert json.dumps(str(tmp_path)) in plugin
    assert "/* settings */" not in plugin
    assert "remote" == json.loads(own.read_text(encoding="utf-8"))["mcp"]["pagefile"]["type"]
    assert "already" in pagefile("wrap", *asked).out
    assert 0 == pagefile("unwrap", *asked).code
    assert before == files_in(tmp_path)
    assert not there or '{"model": "x/y"}' == own.read_text(encoding="utf-8")


def test_ones_own_limits_stay(tmp_path):
    own = tmp_path / FILES["claude"]
    own.parent.mkdir()
    own.write_text(OWN, encoding="utf-8")
    assert 0 == pagefile("wrap", "claude", "--project", str(tmp_path), "--yes").code
    settings = json.loads(own.read_text(encoding="utf-8"))
    assert "9" == settings["env"]["BASH_MAX_OUTPUT_LENGTH"]
    assert {"allow": ["Bash(ls)"]} == settings["permissions"]
    server = json.loads((tmp_path / ".mcp.json").read_text(encoding="utf-8"))["mcpServers"]["pagefile"]
    assert f"project:{tmp_path}" == server["headers"]["X-Pagefile-User"]


def test_without_a_yes_nothing_is_changed(tmp_path):
    refused = pagefile("wrap", "claude", "--project", str(tmp_path))
    assert 2 == refused.code
    assert "UserPromptSubmit" in refused.out
    assert [] == files_in(tmp_path)


def test_a_plugin_folder_is_written_once(tmp_path):
    folder = tmp_path / "plugin"
    asked = ("wrap", "claude", "--plugin", str(folder), "--db", str(tmp_path / "m.db"))
    assert 0 == pagefile(*asked).code
    assert sorted(plugin_files("", "")) == files_in(folder)
    assert 2 == pagefile(*asked).code
    assert 2 == pagefile("wrap", "codex", "--plugin", str(tmp_path / "other")).code
