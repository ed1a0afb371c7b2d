from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from pagefile import BlockingMemory, Scope, Settings
from pagefile.settings import EmbedderSettings, ServiceSettings
from pagefile.stores.key_secrets import new_key
from tests.acceptance.http_server import listening


@pytest.fixture
def url(tmp_path) -> Iterator[str]:
    """The address of a service that asks for no key."""
    with listening(_settings(tmp_path)) as address:
        yield address


@pytest.fixture
def keyed(tmp_path) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a service that requires keys, and keys of a tenant, of two users, and of another tenant."""
    settings = _settings(tmp_path, service=ServiceSettings(require_keys=True))
    with listening(settings) as address, _beside(settings) as memory:
        scopes = {
            "tenant": Scope("clinic"),
            "ada": Scope("clinic", "ada"),
            "bob": Scope("clinic", "bob"),
            "other": Scope("bakery"),
        }
        yield address, {name: _key(memory, name, scope) for name, scope in scopes.items()}


def _settings(path, **more) -> Settings:
    return Settings(url=f"sqlite:///{path}/m.db", embedder=EmbedderSettings(name="none"), **more)


@contextmanager
def _beside(settings: Settings) -> Iterator[BlockingMemory]:
    with BlockingMemory.open(settings=settings) as memory:
        yield memory


def _key(memory: BlockingMemory, name: str, scope: Scope) -> str:
    key, text = new_key(name, scope, created=datetime.now(UTC))
    memory.loop.wait(lambda: memory.inner.engine.store.keys.add(key))
    return text
