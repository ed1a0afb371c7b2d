"""`wrap` and `unwrap`: the settings of coding agents, and a plug-in folder."""

import json

import pytest

from pagefile.agents.coding_agents import AGENTS, local_address, plugin_files
from tests.acceptance.cli_calling import pagefile

OWN = '{\n    "permissions": {"allow": ["Bash(ls)"]},\n    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]},\n    "env": {"BASH_MAX_OUTPUT_LENGTH": "9"}\n}'
FILES = {"claude": ".claude/settings.local.json", "codex": ".codex/hooks.json", "opencode": "opencode.json"}


def files_in(folder):
    """Folders as well: they are a trace."""
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*"))


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
    assert {"X-Pagefile-Project": f"project:{tmp_path}", "X-Pagefile-Key": "${PAGEFILE_KEY:-}"} == server[
        "headers"
    ]


def test_without_a_yes_nothing_is_changed(tmp_path):
    refused = pagefile("wrap", "claude", "--project", str(tmp_path))
    assert 2 == refused.code
    assert "UserPromptSubmit" in refused.out
    assert [] == files_in(tmp_path)


def test_a_plugin_folder_is_written_once(tmp_path):
    folder = tmp_path / "plugin"
    asked = ("wrap", "claude", "--plugin", str(folder), "--db", str(tmp_path / "m.db"))
    assert 0 == pagefile(*asked).code
    assert sorted(plugin_files("", "")) == [one for one in files_in(folder) if (folder / one).is_file()]
    assert 2 == pagefile(*asked).code
    assert 2 == pagefile("wrap", "codex", "--plugin", str(tmp_path / "other")).code


def command_of(entry):
    return entry["hooks"][0]["command"]


def test_hooks_of_an_earlier_installation_are_replaced_and_removed(tmp_path):
    """The Python that they name may be gone."""
    own, asked = tmp_path / FILES["claude"], ("claude", "--project", str(tmp_path), "--yes")
    assert 0 == pagefile("wrap", *asked).code
    text = own.read_text(encoding="utf-8")
    script = command_of(json.loads(text)["hooks"]["Stop"][0]).split()[3]
    older = "/old/lib/python3.11/site-packages/pagefile/agents/hook.py"
    own.write_text(text.replace(script, older), encoding="utf-8")
    assert 0 == pagefile("wrap", *asked).code
    assert 1 == len(json.loads(own.read_text(encoding="utf-8"))["hooks"]["Stop"])
    own.write_text(text.replace(script, older), encoding="utf-8")
    assert 0 == pagefile("unwrap", *asked).code
    assert [] == files_in(tmp_path)


def test_a_hook_that_was_put_beside_ours_stays(tmp_path):
    own, asked = tmp_path / FILES["claude"], ("claude", "--project", str(tmp_path), "--yes")
    assert 0 == pagefile("wrap", *asked).code
    settings = json.loads(own.read_text(encoding="utf-8"))
    settings["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "say done"})
    own.write_text(json.dumps(settings), encoding="utf-8")
    assert 0 == pagefile("unwrap", *asked).code
    left = json.loads(own.read_text(encoding="utf-8"))
    assert {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}} == left


@pytest.mark.parametrize(
    "text", ['{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"enabledMcpjsonServers": "all"}', '{"env": 1}']
)
def test_settings_of_another_shape_are_not_overwritten(tmp_path, text):
    own = tmp_path / FILES["claude"]
    own.parent.mkdir()
    own.write_text(text, encoding="utf-8")
    assert 0 != pagefile("wrap", "claude", "--project", str(tmp_path), "--yes").code
    assert text == own.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text", ["{}", '{"hooks": {}}', '{"hooks": {"Stop": []}, "env": {}}', '{"a": 1}\r\n']
)
def test_settings_that_say_little_come_back_byte_for_byte(tmp_path, text):
    own, asked = tmp_path / FILES["claude"], ("claude", "--project", str(tmp_path), "--yes")
    own.parent.mkdir()
    own.write_bytes(text.encode())
    assert 0 == pagefile("wrap", *asked).code
    assert 0 == pagefile("unwrap", *asked).code
    assert text.encode() == own.read_bytes()
    assert [".claude", FILES["claude"]] == files_in(tmp_path)


def test_a_plugin_of_ones_own_is_not_overwritten(tmp_path):
    own = tmp_path / ".opencode" / "plugin" / "pagefile.js"
    own.parent.mkdir(parents=True)
    own.write_text("// mine", encoding="utf-8")
    assert 0 != pagefile("wrap", "opencode", "--project", str(tmp_path), "--yes").code
    assert "// mine" == own.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "url", ["https://box:8780", "box:8780", "http://box:8780/memory", "http://box:x", "ftp://x"]
)
def test_an_address_that_hooks_cannot_ask_is_refused(tmp_path, url):
    """They would do nothing, and say nothing."""
    refused = pagefile("wrap", "claude", "--project", str(tmp_path), "--yes", "--url", url)
    assert 0 != refused.code
    assert "URL" in refused.err
    assert [] == files_in(tmp_path)


def test_an_address_without_a_port_gets_one(tmp_path):
    said = pagefile("wrap", "claude", "--project", str(tmp_path), "--url", "http://box/").out
    assert "http://box:80 claude" in said


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("0.0.0.0", "http://127.0.0.1:8780"),
        ("::", "http://[::1]:8780"),
        ("fe80::1", "http://[fe80::1]:8780"),
        ("localhost", "http://localhost:8780"),
    ],
)
def test_a_service_is_asked_where_it_listens(host, address):
    assert address == local_address(host, 8780)


def test_a_plugin_folder_keeps_the_deadline(tmp_path):
    folder = tmp_path / "plugin"
    asked = ("wrap", "claude", "--plugin", str(folder), "--deadline", "2", "--db", str(tmp_path / "m.db"))
    assert 0 == pagefile(*asked).code
    hooks = json.loads((folder / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"]
    assert command_of(hooks["Stop"][0]).endswith('"$CLAUDE_PROJECT_DIR" 2')
