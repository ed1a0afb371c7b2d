"""PostgreSQL keeps every promise of the ports, for a role that row-level security holds."""

from functools import cache

import pytest

from pagefile.testing import contracts
from tests.integration.postgres.serving import emptied, opened, walled_url


@cache
def url():
    """A schema that one test after the other uses: making one takes longer than most of them."""
    return walled_url()


class Backend:
    @pytest.fixture
    async def store(self, clock):
        store = await opened(url(), clock)
        yield store
        await store.close()
        await emptied(url())


class TestTurnLog(Backend, contracts.TurnLogContract): ...


class TestMessages(Backend, contracts.MessagesContract): ...


class TestMedia(Backend, contracts.MediaStoreContract): ...


class TestEpochs(Backend, contracts.EpochContract): ...


class TestErasures(Backend, contracts.ErasuresContract): ...


class TestMarkers(Backend, contracts.MarkerContract): ...


class TestRestore(Backend, contracts.RestoreContract): ...


class TestLogReader(Backend, contracts.LogReaderContract): ...


class TestTurnSource(Backend, contracts.TurnSourceContract): ...


class TestFactStore(Backend, contracts.FactStoreContract): ...


class TestFactRestore(Backend, contracts.FactRestoreContract): ...


class TestPageStore(Backend, contracts.PageStoreContract): ...


class TestPageKeeper(Backend, contracts.PageKeeperContract): ...


class TestPageIndex(Backend, contracts.PageIndexContract): ...


class TestCallLog(Backend, contracts.WindowLogContract): ...


class TestItemStore(Backend, contracts.ItemStoreContract): ...


class TestSessionStore(Backend, contracts.SessionStoreContract): ...


class TestWatermarks(Backend, contracts.WatermarksContract): ...


class TestTermStore(Backend, contracts.TermStoreContract): ...


class TestKeyStore(Backend, contracts.KeyStoreContract): ...


class TestLeaseStore(Backend, contracts.LeaseStoreContract): ...


class TestStore(Backend, contracts.StoreContract): ...


class TestParts(Backend, contracts.PartContract): ...


class TestAuditor(Backend, contracts.AuditorContract): ...
