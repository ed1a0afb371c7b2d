"""What the crossing test has found, each on its own."""

import ast
from pathlib import Path

import pytest

import pagefile
from pagefile import ConflictError, Memory, Settings
from pagefile.settings import EmbedderSettings

from .owners import OWNERSHIP

QUIET = Settings(embedder=EmbedderSettings(name="none"))
STEP = {"tool": "lookup", "result": "y " * 10_000}


async def test_a_refused_turn_is_no_failure_of_the_archive(caplog):
    """Whoever writes into another's conversation is refused. That is in no log, which would name both, and counts as no failure."""
    async with Memory.open("memory://", settings=QUIET) as memory:
        await memory.conversation("c", user_id="ada").record("hello", "hi")
        with pytest.raises(ConflictError):
            await memory.conversation("c", user_id="bob").record("mine", "yes", steps=[STEP])
        assert {} == (await memory.describe())["tier_failures"]
    assert [] == caplog.messages


@pytest.mark.xfail(not OWNERSHIP, reason="decision 0033 is not in force", strict=True)
async def test_a_workspace_in_anothers_conversation_is_refused(caplog):
    """Its page would be in that conversation. That nobody gets it is no failure either."""
    refused = False
    async with Memory.open("memory://", settings=QUIET) as memory:
        await memory.conversation("c", user_id="ada").record("hello", "hi")
        try:
            await memory.conversation("c").workspace().absorb("lookup", {}, STEP["result"])
        except ConflictError:
            refused = True
    assert refused
    assert [] == caplog.messages


#: What says whose a line of the log is about.
NAMING = {"conversation", "conversation_id", "user", "user_id", "tenant", "uuid", "turn_id", "id", "scope"}
#: A key is the operator's own.
KEYS = "auth.py"


def test_no_line_of_the_log_names_anybody():
    """As docs/explanation/security.md says: no texts and no ids of people. What an error says is looked at while calls are played."""
    source = Path(pagefile.__file__).parent
    found = [
        f"{path.relative_to(source)}:{line}"
        for path in sorted(source.rglob("*.py"))
        if path.name != KEYS
        for line in _naming(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert [] == found


def _naming(tree):
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).startswith("logger."):
            parts = [part for one in call.args for part in ast.walk(one)]
            if any(isinstance(part, ast.Attribute) and part.attr in NAMING for part in parts):
                yield call.lineno
