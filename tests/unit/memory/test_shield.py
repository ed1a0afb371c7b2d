"""What a caller who is cancelled must still do is done, and holds nobody up for ever."""

import anyio
import pytest

from pagefile.engine import lifetime
from pagefile.engine.lifetime import shielded
from tests.waiting import PATIENCE_S


async def test_a_cancelled_caller_gets_it_done():
    """The work's own answer comes back; the cancellation goes on behind it."""
    told = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        told.append(await shielded(lambda: answered(0.01)))
        await anyio.sleep(0)
        told.append("not reached")
    assert told == ["done"]
    assert scope.cancelled_caught


@pytest.mark.waits
async def test_it_holds_a_cancelled_caller_up_for_a_while_only(monkeypatch):
    """What hangs is left behind."""
    monkeypatch.setattr(lifetime, "SHIELD_S", 0.02)
    with anyio.fail_after(PATIENCE_S), anyio.CancelScope() as scope:
        scope.cancel()
        await shielded(anyio.sleep_forever)
    assert scope.cancelled_caught


@pytest.mark.waits
async def test_nobody_else_is_hurried(monkeypatch):
    """Slow work is waited for, as without a shield."""
    monkeypatch.setattr(lifetime, "SHIELD_S", 0.01)
    assert await shielded(lambda: answered(0.05)) == "done"


async def test_its_errors_are_the_caller_s():
    """As they are."""

    async def failed():
        raise LookupError("no such turn")

    with pytest.raises(LookupError, match="no such turn"):
        await shielded(failed)


async def answered(seconds):
    await anyio.sleep(seconds)
    return "done"
