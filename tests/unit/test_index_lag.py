"""How far vectors are behind, and who waits for them."""

from pagefile.backoff import LookPause
from pagefile.ports import Behind
from pagefile.records import Scope
from pagefile.tiers.index_lag import LONGEST_WAIT_S, IndexLag

HERE = Scope(user="u", conversation="c")


class Watched:
    """A lag whose clock and log are moved by hand."""

    def __init__(self, limit_s=0.0):
        self.at, self.late, self.slept = 0.0, [], []
        self.lag = IndexLag(self.behind, limit_s, now=lambda: self.at, sleep=self.sleep)

    async def behind(self):
        return self.late

    async def sleep(self, seconds):
        self.slept.append(seconds)

    async def look(self, at, *late):
        self.at, self.late = at, [Behind(HERE, *one) for one in late]
        await self.lag.look()


async def test_a_turn_has_waited_since_it_was_first_seen():
    """Whatever was written behind it."""
    watched = Watched()
    await watched.look(0.0, (0, 1))
    await watched.look(4.0, (0, 3))
    assert (3, 4.0) == (watched.lag.turns(), watched.lag.seconds())


async def test_a_watermark_that_rises_leaves_only_later_turns():
    watched = Watched()
    await watched.look(0.0, (0, 1))
    await watched.look(4.0, (0, 3))
    await watched.look(6.0, (1, 3))
    assert (2, 2.0) == (watched.lag.turns(), watched.lag.seconds())
    await watched.look(7.0)
    assert (0, 0.0) == (watched.lag.turns(), watched.lag.seconds())


async def test_receipts_name_a_lag_of_the_user_only():
    watched = Watched()
    await watched.look(0.0, (0, 2))
    watched.at = 12.0
    assert "12 s behind: 2 turns" in watched.lag.note(Scope(user="u"))
    assert watched.lag.note(Scope(user="other")) is None


async def test_those_who_record_wait_beyond_the_limit():
    """The longer, the further it is; those of other tenants do not."""
    watched = Watched(limit_s=10.0)
    for at in (0.0, 8.0, 16.0):
        await watched.look(at, (int(at), 100))
    watched.at = 24.0
    watched.late = [Behind(HERE, 17, 100)]
    await watched.lag.look()
    assert 0.0 == watched.lag.wait_s("another")
    assert LONGEST_WAIT_S == watched.lag.wait_s("default")
    await watched.lag.slow_down("default")
    assert [LONGEST_WAIT_S] == watched.slept


async def test_nobody_waits_for_vectors_that_are_not_made():
    """An embedder that is down must not stop anyone from recording."""
    watched = Watched(limit_s=10.0)
    await watched.look(0.0, (0, 100))
    await watched.look(60.0, (0, 200))
    assert 0.0 == watched.lag.wait_s("default")


async def test_a_look_that_was_slow_once_does_not_put_off_the_next():
    """On a busy machine one took half a second, and for ten seconds the lag was that of before."""
    pause = LookPause(1.0)
    assert [1.0, 1.0, 1.0] == [pause.after(taken) for taken in (0.01, 2.0, 2.0)]
    assert 40.0 == pause.after(2.0)
    assert 1.0 == pause.after(0.01)
