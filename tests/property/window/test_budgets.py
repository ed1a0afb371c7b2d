"""Every budget beside the window's own: never over, and never under while something that fits and is worth it was left out.

Those of the window, of its blocks and of recall are in `test_compile_properties`; passages of pages, what the load tool shows and
synopses in `text/test_passages_properties`; facts in `text/test_facts_properties`; chunks in `workspace`; the allowance of
Claude's hook in `integration/claude/test_updates`.
"""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from pagefile.records import Checkpoint, Scope
from pagefile.text.sentences import fitting_sentences, sentences
from pagefile.text.tokens import open_counter
from pagefile.window.forms import ANCHOR_SHARE, ANCHOR_TOKENS, shown_summary
from pagefile.window.recalled import passage
from pagefile.window.wording import WORDINGS

COUNT = open_counter().count
SENTENCES = st.lists(
    st.sampled_from(
        ["He takes 5 mg. ", "房租是4500元。", "They moved to Leeds in May! ", "Why? ", "x" * 80 + ". "]
    ),
    max_size=30,
).map("".join)


@given(SENTENCES, st.integers(1, 200))
def test_a_summary_fits_and_the_next_sentence_does_not(text, limit):
    """Whole sentences from the beginning, as many as there is room for."""
    fitting = fitting_sentences(text, limit, COUNT)
    assert COUNT(fitting) <= limit
    parts = sentences(text.strip())
    for number in range(1, len(parts) + 1):
        if COUNT("".join(parts[:number]).rstrip()) > limit:
            break
        assert "".join(parts[:number]).strip() in fitting


@given(
    st.lists(st.sampled_from(["5 mg", "1,240", "2025-06-30", "E119"]).map(str), max_size=40),
    st.integers(1, 5000),
)
def test_anchors_beside_a_summary_keep_to_their_share(anchors, tokens):
    """The newest of them, within a sixteenth of the window."""
    said = tuple(f"{anchor} no. {n}" for n, anchor in enumerate(anchors))
    checkpoint = Checkpoint("k", Scope("t"), 9, 1, "They talked.", 8, 8, datetime.now(UTC), 3, "", said)
    for wording in WORDINGS.values():
        bare, _ = shown_summary(replace(checkpoint, anchors=()), "", COUNT, tokens, wording)
        text, _ = shown_summary(checkpoint, "", COUNT, tokens, wording)
        more = COUNT(text) - COUNT(bare) - COUNT(f"\n{wording.anchors}")
        assert more <= 2 * min(ANCHOR_TOKENS, tokens // ANCHOR_SHARE) + 2


@given(SENTENCES, st.lists(st.sampled_from(["leeds", "房租", "mg"]), max_size=2), st.integers(60, 450))
def test_a_passage_is_within_its_length_and_whole_if_it_can_be(text, words, chars):
    """Of what somebody said no more than asked for, with the first mark; a text that fits is not cut."""
    shown = passage(text, tuple(words), chars)
    assert len(shown) <= chars + len("… ")
    if len(text) <= chars and not words:
        assert shown == text
