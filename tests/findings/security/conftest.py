"""Both databases, for what must hold on each."""

import pytest

from tests.integration.postgres.serving import fresh_url


@pytest.fixture(autouse=True)
def _without_vectors(monkeypatch):
    """Commands and services that a test starts need not load the encoder, which takes seconds."""
    monkeypatch.setenv("PAGEFILE_EMBEDDER__NAME", "none")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    """A database that nobody used."""
    return f"sqlite:///{tmp_path}/a.db" if request.param == "sqlite" else fresh_url()
