"""The example runs as a user would run it, twice on one memory, against a stand-in for the Messages API."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.heavy import heavy

from .stub import MessagesStub

EXAMPLE = Path(__file__).parents[3] / "examples" / "claude_agent.py"
pytestmark = [heavy("claude"), pytest.mark.slow]


def script(request):
    """Tells whether the model was given what was said in an earlier session."""
    given = json.dumps(request["messages"], ensure_ascii=False)
    known = re.search(r"<memory>(?:(?!</memory>).)*杭州", given)
    return [{"type": "text", "text": "杭州" if known else "你好"}]


def run(stub, folder, *prompts):
    environment = {
        **os.environ,
        "ANTHROPIC_BASE_URL": stub.url,
        "ANTHROPIC_API_KEY": "sk-stub",
        "HOME": str(folder),
        "CLAUDE_CONFIG_DIR": str(folder / ".claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
    }
    ran = subprocess.run(
        [sys.executable, "-X", "utf8", str(EXAMPLE), *prompts],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_second_session_knows_the_first(tmp_path):
    """What was said in one session comes back with a prompt of another that touches it."""
    with MessagesStub(script) as stub:
        assert "> 我叫小林，住在杭州。\n你好\n1 conversations" in run(stub, tmp_path, "我叫小林，住在杭州。")
        assert "> 我住在哪里？\n杭州\n2 conversations" in run(stub, tmp_path, "我住在哪里？")
