"""The contract of tiers notices what a tier that looks well does wrong."""

from contextlib import asynccontextmanager

import pytest

from pagefile import Memory
from pagefile.testing.contracts.tiers import _SETTINGS, TierContract
from pagefile.tiers import Tier

pytestmark = pytest.mark.anyio


class Notes(Tier):
    """Keeps what users say in a list that outlives it; the flaws are switched on one by one."""

    name = "notes"

    def __init__(self, kept, flaw):
        self._kept, self._flaw, self._new = kept, flaw, []

    async def absorb(self, turn):
        place = [*self._owner(turn.scope), turn.scope.conversation, turn.id]
        if turn.status == "done" and (turn.scope.user or self._flaw == "keeps what nobody said"):
            kept = self._new if self._flaw == "writes later" else self._kept
            if self._flaw == "counts twice" or place not in [known for known, _ in kept]:
                kept.append((place, turn.said))
        return False

    async def offer(self, request):
        owner = self._owner(request.scope)
        said = [text for place, text in [*self._kept, *self._new] if place[:2] == owner]
        return [request.text(f"note:{rank}", text, rank=rank) for rank, text in enumerate(said)]

    def _owner(self, scope):
        return [None if self._flaw == "forgets the tenant" else scope.tenant, scope.user]


class Contract(TierContract):
    __test__ = False

    said = "Remember the plants."
    question = "What is on?"
    shown = "the plants"


@asynccontextmanager
async def opened(flaw):
    kept = []
    async with Memory.open("memory://", settings=_SETTINGS, tiers=[Notes(kept, flaw)]) as memory:
        await memory.conversation("first", user_id="ada").record(user=Contract.said, assistant="Noted.")
        yield memory, lambda: Notes(kept, flaw)


CAUGHT = {
    "forgets the tenant": lambda memory, _: Contract().test_other_tenants_do_not_see_it(memory),
    "keeps what nobody said": lambda memory, _: (
        Contract().test_what_nobody_in_particular_said_stays_where_it_was_said(memory)
    ),
    "counts twice": lambda memory, _: Contract().test_a_turn_that_is_written_again_counts_once(memory),
    "writes later": lambda memory, make: Contract().test_what_was_recorded_survives_a_kill(memory, make),
}


@pytest.mark.parametrize("flaw", CAUGHT)
async def test_a_flaw_is_caught(flaw):
    """By the test that is about it, which the same tier passes without the flaw."""
    async with opened(None) as given:
        await CAUGHT[flaw](*given)
    async with opened(flaw) as given:
        with pytest.raises(AssertionError):
            await CAUGHT[flaw](*given)
