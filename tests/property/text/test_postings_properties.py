"""Pairs of terms and documents are the same, however they were added, merged and removed."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefile.text import postings
from pagefile.text.postings import ASIDE, Document, Postings

WORDS = ["tea", "茶", "cat", "42", "rain"]
texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
documents = st.builds(Document, texts, texts)
#: Batches, each added at once or one by one.
batches = st.lists(st.tuples(st.lists(documents, max_size=9), st.booleans()), max_size=6)


def expected(said: list[Document]) -> dict[str, dict[int, float]]:
    held: dict[str, dict[int, float]] = {word: {} for word in WORDS}
    for slot, one in enumerate(said):
        for word in {*one.words.split(), *one.aside.split()}:
            held[word][slot] = Counter(one.words.split())[word] + ASIDE * Counter(one.aside.split())[word]
    return held


def check(index: Postings, said: list[Document]) -> None:
    held = expected(said)
    assert sum(map(len, held.values())) == index.entries
    assert [len(held[word]) for word in WORDS] == index.numbers(WORDS)
    for word, (slots, counts) in zip(WORDS, index.find(WORDS), strict=True):
        assert sorted(held[word]) == slots.tolist()
        assert pytest.approx([held[word][slot] for slot in slots.tolist()], rel=1e-6) == counts.tolist()
        assert [slot in held[word] for slot in range(len(said))] == [
            index.has(word, slot) for slot in range(len(said))
        ]
    assert [0] == index.numbers(["unheard"])


@given(parts=batches, recent=st.integers(1, 12), pairs=st.integers(1, 12), data=st.data())
def test_segments_hold_what_was_added(
    parts: list[tuple[list[Document], bool]], recent: int, pairs: int, data: st.DataObject
):
    """Small segments, so that all of it happens: sealing, merging, removing."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(postings, "_RECENT", recent)
        patched.setattr(postings, "_PAIRS_AT_ONCE", pairs)
        index, said = Postings(), list[Document]()
        for some, at_once in parts:
            if at_once:
                index.extend(some)
            else:
                for one in some:
                    index.add(one)
            said += some
        check(index, said)
        alive = np.array([data.draw(st.booleans()) for _ in said], dtype=np.bool_)
        packed = index.packed(alive, np.cumsum(alive, dtype=np.int32) - np.int32(1))
        check(packed, [one for one, lives in zip(said, alive, strict=True) if lives])
