"""Every budget beside the window's own: never over, and never under while something that fits and is worth it was left out.

Those of the window, of its blocks and of recall are in `test_compile_properties`; passages of pages, what the load tool shows and
synopses in `text/test_passages_properties`; facts in `text/test_facts_properties`; chunks in `workspace`; the allowance of
Claude's hook in `integration/claude/test_updates`.
"""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from pagefile.records import Checkpoint, Page, Scope
from pagefile.text.sentences import fitting_sentences, sentences
from pagefile.text.tokens import open_counter
from pagefile.window.forms import (
    ANCHOR_SHARE,
    ANCHOR_TOKENS,
    PAGES_SHARE,
    PAGES_TOKENS,
    shown_pages,
    shown_summary,
)
from pagefile.window.placeholder import ABOUT_TIGHT, described
from pagefile.window.recalled import passage
from pagefile.window.wording import WORDINGS

COUNT = open_counter().count
NOW = datetime(2025, 3, 1, tzinfo=UTC)
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
    st.lists(st.sampled_from(["x5", "x1240", "xabcdefgh-20250630", "E119"]).map(str), max_size=40),
    st.integers(1, 5000),
)
def test_anchors_beside_a_summary_keep_to_their_share(anchors, tokens):
    """The newest of them, within a sixteenth of the window, and as many as that holds."""
    said = tuple(f"ref{n:03d}{anchor}" for n, anchor in enumerate(anchors))
    checkpoint = Checkpoint("k", Scope("t"), 9, 1, "They talked.", 8, 8, datetime.now(UTC), 3, "", said)
    for wording in WORDINGS.values():
        bare, _ = shown_summary(replace(checkpoint, anchors=()), "", COUNT, tokens, wording)
        text, _ = shown_summary(checkpoint, "", COUNT, tokens, wording)
        more = COUNT(text) - COUNT(bare) - COUNT(f"\n{wording.anchors}")
        room = min(ANCHOR_TOKENS, tokens // ANCHOR_SHARE)
        assert more <= 2 * room + 2
        spent = 0
        for number, anchor in reversed(list(enumerate(said))):
            spent += COUNT(anchor) + 1
            # The room ends where the first does not fit; none of these overrules another.
            assert (anchor in text) == (spent <= room), number


PAGES = st.lists(st.tuples(st.integers(0, 120), st.integers(0, 400)), min_size=1, max_size=40)


@given(PAGES, st.integers(100, 20_000))
def test_the_pages_beside_a_summary_keep_to_their_share_and_use_it(sizes, tokens):
    """Newest first; one that is not named does not fit, even in its short form."""
    pages = [
        Page(f"u{n}", Scope("t"), "fetch", {}, "query " * asked, "about " * said, 9, (), NOW, 3, "", "")
        for n, (asked, said) in enumerate(sizes)
    ]
    known, newest = {page.uuid: page for page in pages}, pages[::-1]
    room = min(PAGES_TOKENS, tokens // PAGES_SHARE)
    for wording in WORDINGS.values():
        lines = shown_pages(list(known), known, COUNT, tokens, wording).splitlines()[1:]
        named = [line for line in lines if line.startswith("- u")]
        assert sum(COUNT(line) + 1 for line in named) <= room
        assert [line.split()[1] for line in named] == [page.uuid for page in newest[: len(named)]]
        short = [COUNT(f"- {page.uuid} {described(page, ABOUT_TIGHT)}") + 1 for page in newest]
        if len(named) < len(pages):
            assert sum(short[: len(named) + 1]) > room
            assert str(len(pages) - len(named)) in lines[-1]


@given(SENTENCES, st.lists(st.sampled_from(["leeds", "房租", "mg"]), max_size=2), st.integers(60, 450))
def test_a_passage_is_within_its_length_and_whole_if_it_can_be(text, words, chars):
    """Of what somebody said no more than asked for, with the first mark; a text that fits is not cut."""
    shown = passage(text, tuple(words), chars)
    assert len(shown) <= chars + len("… ")
    if len(text) <= chars and not words:
        assert shown == text
