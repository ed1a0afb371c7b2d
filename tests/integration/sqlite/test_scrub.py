"""`pagefile forget` on a file whose freed pages still hold words."""

import apsw
import pytest

from pagefile import BlockingMemory
from tests.acceptance.cli_calling import pagefile
from tests.findings.security.looking import files_with


@pytest.mark.parametrize("scrub", [True, False])
def test_what_was_freed_before_is_overwritten(tmp_path, scrub):
    """Rows that another program deleted lie in free pages until the file is rewritten; nothing else is lost."""
    path = tmp_path / "a.db"
    with BlockingMemory.open(f"sqlite:///{path}") as memory:
        for number in range(200):
            memory.conversation("chat", user_id="ada").record(f"ERASED words {number} " * 20, "Noted.")
            memory.conversation("bobs", user_id="bob").record(f"KEPT {number}", "Noted.")
    careless = apsw.Connection(str(path))
    careless.pragma("secure_delete", False)
    careless.execute("DELETE FROM ai_message WHERE conversation_id = 'chat'")
    careless.close()
    done = pagefile(
        "forget", "--user-id", "ada", "--yes", *(["--scrub"] if scrub else []), "--db", f"sqlite:///{path}"
    )
    assert 0 == done.code
    assert [] == files_with(tmp_path, "ERASED")
    with BlockingMemory.open(f"sqlite:///{path}") as memory:
        assert 200 == len(memory.conversation("bobs", user_id="bob").turns(limit=1000))
