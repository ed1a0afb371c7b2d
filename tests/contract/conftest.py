"""Contracts live in the package; their asserts should explain themselves as well as ours."""

import pytest

pytest.register_assert_rewrite("pagefile.testing.contracts")
