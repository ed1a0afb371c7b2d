"""A service that cannot start leaves nothing open."""

import pytest

from pagefile import Settings
from pagefile.errors import StoreUnavailableError
from pagefile.service import app as service


class Model:
    def __init__(self):
        self.closed = 0

    async def close(self):
        self.closed += 1


async def test_the_model_is_closed_when_the_database_cannot_be_opened(monkeypatch, tmp_path):
    """It is made before the memory, whose folder is missing here."""
    model = Model()
    monkeypatch.setattr(service, "chat_model", lambda _: model)
    app = service.create_app(Settings(url=f"sqlite:///{tmp_path}/missing/a.db"))
    with pytest.raises(StoreUnavailableError):
        async with app.router.lifespan_context(app):
            pass
    assert 1 == model.closed
