"""What the tests of the homes share."""

import pytest

from pagefile.testing import FakeClock


@pytest.fixture
def clock():
    return FakeClock()
