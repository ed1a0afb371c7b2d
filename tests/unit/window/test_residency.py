"""Which pages stay in full after the turn that fetched them."""

from hypothesis import given
from hypothesis import strategies as st

from pagefile.window.residency import Use, resident_pages

SIZES = {"a": 10, "b": 20, "c": 30}


def staying(
    uses: list[tuple[int, str]],
    now: int,
    *,
    pinned: frozenset[str] = frozenset(),
    limit: int = 100,
    reuse_turns: int = 3,
) -> list[str]:
    limits = {"limit_tokens": limit, "reuse_turns": reuse_turns}
    return resident_pages([Use(*use) for use in uses], now, pinned=pinned, tokens=SIZES, **limits)


def test_a_page_leaves_after_the_turn_that_fetched_it():
    """Used once, gone next turn."""
    assert staying([(1, "a")], 2) == []


def test_a_page_loaded_twice_within_three_turns_stays():
    """The model needs it again and again: no more page faults, if that is asked for."""
    assert staying([(1, "a"), (3, "a")], 4) == ["a"]
    assert staying([(1, "a"), (2, "a"), (3, "a")], 4, reuse_turns=0) == []
    assert staying([(1, "a"), (4, "a")], 5) == []


def test_a_resident_page_leaves_when_three_turns_pass_without_a_use():
    """And stays while it keeps being used, with pauses no longer than that."""
    uses = [(1, "a"), (2, "a"), (5, "a")]
    assert staying(uses, 8) == ["a"]
    assert staying(uses, 9) == []


def test_twice_in_one_turn_is_one_use():
    """A loop inside one turn is no habit."""
    assert staying([(1, "a"), (1, "a")], 2) == []


def test_a_pinned_page_stays_without_being_used():
    """Pins come first."""
    assert staying([(1, "a"), (2, "a")], 3, pinned=frozenset({"c"})) == ["c", "a"]


def test_the_working_set_has_a_limit_and_prefers_the_latest():
    """The most recently used that fit; an unknown page cannot stay."""
    uses = [(n, page) for n in (1, 2) for page in "abc"] + [(3, "b"), (1, "x"), (2, "x")]
    assert staying(uses, 4, limit=45) == ["b", "a"]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abcx"))),
    st.integers(0, 12),
    st.sets(st.sampled_from("abcx")),
    st.integers(0, 80),
)
def test_no_sequence_of_loads_exceeds_the_working_set(uses, now, pinned, limit):
    """Whatever is loaded and pinned, the sum of what stays is within the limit, each page once."""
    pages = staying(uses, now, pinned=frozenset(pinned), limit=limit)
    assert sum(SIZES[page] for page in pages) <= limit
    assert len(pages) == len(set(pages))
