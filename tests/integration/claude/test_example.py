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

EXAMPLES = Path(__file__).parents[3] / "examples"
pytestmark = [heavy("claude"), pytest.mark.slow]


def script(request):
    """Tells whether the model was given what was said in an earlier session."""
    given = json.dumps(request["messages"], ensure_ascii=False)
    known = re.search(r"<memory>(?:(?!</memory>).)*(杭州|Porto)", given)
    return [{"type": "text", "text": known[1] if known else "你好"}]


def run(stub, folder, example, *prompts):
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
        [sys.executable, "-X", "utf8", str(EXAMPLES / example), *prompts],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize(
    ("example", "told", "asked", "place"),
    [
        ("claude_agent.py", "My name is Ada and I live in Porto.", "Where do I live?", "Porto"),
        ("zh/claude_agent.py", "我叫小林，住在杭州。", "我住在哪里？", "杭州"),
    ],
)
def test_the_second_session_knows_the_first(tmp_path, example, told, asked, place):
    """What was said in one session comes back with a prompt of another that touches it."""
    with MessagesStub(script) as stub:
        assert f"> {told}\n你好\n1 conversations" in run(stub, tmp_path, example, told)
        assert f"> {asked}\n{place}\n2 conversations" in run(stub, tmp_path, example, asked)
