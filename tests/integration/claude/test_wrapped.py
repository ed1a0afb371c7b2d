"""Claude Code itself, wrapped: two runs, the second of which remembers the first."""

import json
import os
import subprocess
import sys

import pytest

from pagefile import Settings
from pagefile.settings import ServiceSettings
from tests.acceptance.http_server import listening
from tests.heavy import heavy, is_there

if is_there("claude"):
    from .remembering import ran, recorded, wrapped_project
    from .stub import MessagesStub

pytestmark = [heavy("claude"), pytest.mark.slow]


def test_claude_code_remembers_over_two_runs():
    """Bulky output reaches it as a placeholder; a compaction costs nothing; another project, and what is unwrapped, know nothing."""
    ends = ["Noted.", "A placeholder came.", "It is 5544.", "It is 5544.", "I do not know.", "I do not know."]
    assert ends == [lines.strip().splitlines()[-1] for lines in recorded()]


def pagefile(url, *words):
    done = subprocess.run(
        [sys.executable, "-m", "pagefile", *words], env={**os.environ, "PAGEFILE_URL": url},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize("has_key", [True, False])
def test_the_mcp_server_of_a_wrapped_project_sends_the_key_of_the_environment(tmp_path, has_key):
    """A service that requires keys accepts Claude Code with one, and refuses it without."""
    database, keyed = f"sqlite:///{tmp_path}/memory.db", ServiceSettings(require_keys=True)
    key = json.loads(pagefile(database, "keys", "add", "laptop", "--user-id", "ada", "--json"))["key"]
    log, given = tmp_path / "claude.log", {"PAGEFILE_KEY": key} if has_key else {}
    with (
        MessagesStub(lambda _request: [{"type": "text", "text": "Hello."}]) as stub,
        listening(Settings(url=database, service=keyed)) as url,
        wrapped_project(url) as folder,
    ):
        assert "Hello." in ran(folder, stub.url, "-p", "Hi", "--debug-file", str(log), **given)
    told = [line for line in log.read_text("utf-8").splitlines() if 'MCP server "pagefile"' in line]
    assert told
    assert has_key == any("Successfully connected" in line for line in told), told
