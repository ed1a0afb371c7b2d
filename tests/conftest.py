"""What every test shares."""

import pytest


@pytest.fixture
def anyio_backend():
    """Pagefile runs on asyncio."""
    return "asyncio"
