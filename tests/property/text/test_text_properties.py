"""What holds for every text."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pagefile.text.bm25 import WordIndex
from pagefile.text.extract import anchors, summarize
from pagefile.text.fact_ranking import FactIndex
from pagefile.text.sentences import cjk_share, clip, fitting_sentences, sentences
from pagefile.text.tokens import open_counter
from pagefile.text.words import terms

#: Any text, lone surrogates included, with pieces that the scans care about made likely.
PIECES = st.sampled_from(
    [
        "。",
        ". ",
        "！",
        "```",
        "`",
        "![a](b)",
        "https://x.org/a.",
        "3.5",
        "2024年5月3日",
        "Dr. ",
        "\n",
        "汉字",
        "the cat",
        "《",
        "“",
        "：",
        "user: ",
    ]
)
ANYTHING = st.text(st.characters(codec=None), max_size=60)
TEXT = st.lists(PIECES | ANYTHING, max_size=12).map("".join)
WORDS = st.lists(st.sampled_from("abcdef"), max_size=6)


@given(TEXT, st.sampled_from(["cl100k_base", "o200k_base", "estimate"]))
def test_counting_never_fails_and_never_changes_its_mind(text: str, name: str):
    """Any text has a count, 0 for none, at least 1 for some, the same each time."""
    counter = open_counter(name)
    count = counter.count(text)
    assert bool(text) == (count > 0)
    assert count == counter.count(text)
    assert 0 == counter.count("")


@given(TEXT)
def test_sentences_lose_nothing(text: str):
    """Joined, they are the text; none is empty."""
    found = sentences(text)
    assert text == "".join(found)
    assert "" not in found


@given(TEXT)
def test_terms_never_fail_and_are_never_empty(text: str):
    """Terms are folded words, and folding them again finds the same index entry."""
    assert all(term and term == term.casefold() for term in terms(text))
    assert 0 <= cjk_share(text) <= 1


@given(TEXT, st.integers(-5, 300))
def test_an_excerpt_never_exceeds_its_limit(text: str, max_chars: int):
    """And a text that fits is left alone."""
    excerpt = clip(text, max_chars)
    assert len(excerpt) <= max(0, max_chars)
    assert len(text) > max_chars or text == excerpt


@given(TEXT)
def test_anchors_stand_in_the_text(text: str):
    """Nothing is invented and nothing said twice."""
    found = anchors(text)
    assert len(found) == len(set(found))
    assert all(anchor and anchor in text for anchor in found)


@given(
    st.lists(st.tuples(st.sampled_from(["user", "AI", "用户", ""]), TEXT), max_size=4),
    st.integers(0, 200),
    st.none() | TEXT,
)
@example([("user", "3.5"), ("user", "2")], 11, None)
def test_a_summary_never_exceeds_its_limit(
    texts: list[tuple[str, str]], max_chars: int, previous: str | None
):
    """Whatever was said before."""
    assert len(summarize(texts, limit=max_chars, previous=previous)) <= max_chars


@given(TEXT, st.lists(TEXT, max_size=4))
def test_similarities_are_shares(query: str, texts: list[str]):
    """One for each text, from 0 to 1."""
    index: FactIndex[int] = FactIndex()
    index.add(enumerate(texts))
    found = index.similarity_array(query, range(len(texts)))
    assert len(texts) == len(found)
    assert all(0 <= share <= 1 for share in found)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12), WORDS), max_size=40), WORDS)
def test_an_index_forgets_its_history(steps: list[tuple[bool, int, list[str]]], query: list[str]):
    """After any adding and removing, the results are those of an index that only ever saw what is left."""
    index: WordIndex[int] = WordIndex()
    left: dict[int, list[str]] = {}
    for adds, key, words in steps:
        if adds:
            index.add(key, words)
            left.setdefault(key, words)
        else:
            index.remove([key])
            left.pop(key, None)
    fresh: WordIndex[int] = WordIndex()
    for key, words in left.items():
        fresh.add(key, words)
    assert fresh.search(query, 5) == index.search(query, 5)
    assert len(left) == len(index)


@given(TEXT, st.integers(1, 80), st.sampled_from([len, open_counter("estimate").count]))
def test_sentences_that_fit_are_the_beginning(text: str, limit: int, measure):
    """Never longer than the limit, and whole sentences unless not even the first fits."""
    kept = fitting_sentences(text, limit, measure)
    assert measure(kept) <= limit
    assert text.strip().startswith(kept.removesuffix("…").strip())
