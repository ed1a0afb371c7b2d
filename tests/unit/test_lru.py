"""What is kept at hand: the newest, as much as fits, and always the one in use."""

import pytest

from pagefile.lru import Lru


def test_what_was_used_longest_ago_goes_first():
    """Reading is using, and so is putting; asking whether it is there is not."""
    kept = Lru(2)
    kept["a"], kept["b"] = 1, 2
    assert 1 == kept["a"]
    assert "b" in kept
    kept["c"] = 3
    assert ["a", "c"] == list(kept)
    assert 1 == kept.get("a")
    kept.update(d=4)
    assert ["a", "d"] == list(kept)


def test_what_is_not_there():
    """As in every mapping."""
    kept = Lru(1)
    assert (None, 7) == (kept.get("a"), kept.get("a", 7))
    assert [1] == kept.setdefault("a", [1])
    assert [1] == kept.setdefault("a", [2])
    assert [1] == kept.pop("a")
    with pytest.raises(KeyError):
        kept["a"]


def test_values_that_grow_are_weighed_again():
    """Whoever makes one heavier says so; the one in use stays, however heavy."""
    kept = Lru(10, len)
    kept["a"], kept["b"] = "x" * 4, "y" * 4
    assert ["a", "b"] == list(kept)
    kept["b"] += "y" * 8
    assert ["b"] == list(kept)
    grown = Lru(3, len)
    grown["a"] = grown["b"] = []
    grown["b"].extend([1, 2])
    grown.trim()
    assert ["b"] == list(grown)


def test_one_is_always_kept():
    """Also where nothing fits."""
    kept = Lru(0)
    kept["a"] = 1
    assert ["a"] == list(kept)
