"""CONTRIBUTING.md is true: what it tells a contributor to run, read and write is there."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import pagefile
from pagefile.ports import Store
from pagefile.stores import InMemoryStore, open_store
from pagefile.testing import contracts

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([^`\n]+)`", PAGE))
#: What a contributor makes.
TO_BE_WRITTEN = {"src/pagefile/stores/yours/"}


def test_what_to_run_is_a_target_of_make():
    """Every `make …` that the page names, in its text and in its list."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", PAGE, re.MULTILINE))
    assert {"setup", "test", "check", "lock"} <= named <= targets


@pytest.mark.parametrize("path", sorted(name for name in NAMED if "/" in name and " " not in name))
def test_what_to_read_is_there(path):
    """Folders and files, from the root or inside the package."""
    assert path in TO_BE_WRITTEN or (ROOT / path).exists() or (ROOT / "src/pagefile" / path).exists()


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", PAGE))
def test_links_lead_somewhere(link):
    """Into the repository."""
    assert (ROOT / link).exists()


@pytest.mark.parametrize("name", sorted(name for name in NAMED if re.fullmatch(r"pagefile(\.\w+)+", name)))
def test_what_to_use_can_be_imported(name):
    """Modules, and names in them."""
    module, _, last = name.rpartition(".")
    assert hasattr(import_module(module), last) or import_module(name)


async def test_a_store_is_added_in_five_steps():
    """A store fills every port (1, 2), has a suite for each (4), and a URL (5); what is missing says how to get it."""
    ports = {name for name in Store.__annotations__ if name != "audit"}
    assert 5 == len(re.findall(r"^\d\. ", PAGE, re.MULTILINE))
    store = await open_store("memory://")
    assert isinstance(store, InMemoryStore)
    assert ports <= vars(store).keys()
    tested = (ROOT / "tests/contract/test_sqlite.py").read_text(encoding="utf-8")
    apart = {"SessionCacheContract", "TierContract", "VectorIndexContract"}
    assert [] == [
        name for name in contracts.__all__ if f"contracts.{name})" not in tested and name not in apart
    ]
    assert issubclass(pagefile.MissingExtraError, ImportError)
    await store.close()
