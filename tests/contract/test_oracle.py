"""The oracle keeps the promises of the ports that stores are compared in."""

import pytest

from pagefile.testing import contracts
from tests.oracle import OracleStore


class Backend:
    @pytest.fixture
    async def store(self, clock):
        store = OracleStore(clock)
        yield store
        await store.close()


class TestTurnLog(Backend, contracts.TurnLogContract): ...


class TestMessages(Backend, contracts.MessagesContract): ...


class TestMedia(Backend, contracts.MediaStoreContract): ...


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


class TestSessionStore(Backend, contracts.SessionStoreContract): ...


class TestWatermarks(Backend, contracts.WatermarksContract): ...


class TestTermStore(Backend, contracts.TermStoreContract): ...
