"""The promises of `pagefile.ports` as tests: a backend is done when it passes all of them.

Subclass each class and give it a `store` fixture; the store must be opened with the `clock` fixture:

    class Backend:
        @pytest.fixture
        async def store(self, clock):
            store = await open_my_store(clock=clock)
            yield store
            await store.close()

    class TestTurnLog(Backend, TurnLogContract): ...

The names are listed in `__init__.pyi` and imported on first use: a test of a session cache needs no engine.
"""

import lazy_loader as _lazy  # pyright: ignore[reportMissingTypeStubs] - it has none, and `__init__.pyi` says our types

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)  # pyright: ignore[reportUnknownVariableType]
