"""A flaky store is its store until it is told to fail."""

import pytest

from pagefile.errors import StoreFullError, StoreUnavailableError
from pagefile.stores import InMemoryStore
from pagefile.testing import FakeClock, FlakyStore, contracts
from pagefile.testing.drafts import CHAT, done, view


class Backend:
    @pytest.fixture
    async def store(self, clock):
        return FlakyStore(InMemoryStore(clock))


class TestTurnLog(Backend, contracts.TurnLogContract): ...


class TestMessages(Backend, contracts.MessagesContract): ...


class TestMedia(Backend, contracts.MediaStoreContract): ...


class TestEpochs(Backend, contracts.EpochContract): ...


class TestErasures(Backend, contracts.ErasuresContract): ...


class TestPageKeeper(Backend, contracts.PageKeeperContract): ...


class TestPageIndex(Backend, contracts.PageIndexContract): ...


class TestWatermarks(Backend, contracts.WatermarksContract): ...


class TestTermStore(Backend, contracts.TermStoreContract): ...


class TestKeyStore(Backend, contracts.KeyStoreContract): ...


class TestLeaseStore(Backend, contracts.LeaseStoreContract): ...


class TestStore(Backend, contracts.StoreContract): ...


async def test_only_the_named_verbs_fail():
    """They never reach the store behind, until it is mended."""
    store = FlakyStore(InMemoryStore(FakeClock()))
    store.fail(["log.append", "page_index.uuids", "describe"])
    for verb in (store.log.append(done("a")), store.page_index.uuids(CHAT), store.describe()):
        with pytest.raises(StoreUnavailableError):
            await verb
    assert (await store.reader.view(view())).head.last_seq == 0
    store.mend()
    assert (await store.log.append(done("a"))).seq == 1


async def test_a_verb_may_fail_a_few_times_with_an_error_of_choice():
    """Then it works again."""
    store = FlakyStore(InMemoryStore(FakeClock()))
    store.fail(["log.append"], error=StoreFullError(), times=2)
    for _ in range(2):
        with pytest.raises(StoreFullError):
            await store.log.append(done("a"))
    assert (await store.log.append(done("a"))).seq == 1
