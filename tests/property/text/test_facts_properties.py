"""What holds for all facts: the index says what a fresh one says, the budget is kept, quotes are quotes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile.standalone import _count_tokens, format_memory_for_injection
from pagefile.text.fact_ranking import FactIndex, diverse, scores
from pagefile.text.fact_rules import secret_in, stated

WORDS = st.sampled_from(
    [
        "python",
        "pytest",
        "我喜欢",
        "青霉素",
        "过敏",
        "I like ",
        "tea",
        "，",
        "。",
        "不对，应该是",
        "?",
        "<",
        "&",
        "\n",
        "“",
        "4111",
    ]
)
TEXTS = st.lists(WORDS | st.text(max_size=4), max_size=8).map("".join)
CHANGES = st.lists(st.tuples(st.booleans(), st.integers(0, 12), TEXTS), max_size=40)


@given(CHANGES, TEXTS)
@settings(max_examples=80)
def test_an_index_that_changed_is_as_good_as_a_new_one(changes, query):
    """Whatever came and went, in whatever order."""
    index: FactIndex[int] = FactIndex()
    held: dict[int, str] = {}
    for adds, key, text in changes:
        if adds:
            index.add([(key, text)])
            held[key] = text
        else:
            index.remove([key])
            held.pop(key, None)
    fresh: FactIndex[int] = FactIndex()
    fresh.add(held.items())
    found = index.similarity_array(query, list(held))
    assert found == pytest.approx(fresh.similarity_array(query, list(held)), abs=1e-9)
    assert all(0 <= value <= 1 for value in found)


CONFIDENCES = st.none() | st.floats() | st.integers(-3, 3) | st.text(max_size=3)
FACTS = st.lists(
    st.fixed_dictionaries(
        {
            "content": TEXTS | st.none() | st.integers(),
            "confidence": CONFIDENCES,
            "category": st.sampled_from([None, "correction", "x"]),
        }
    ),
    max_size=30,
)
SUMMARY = st.fixed_dictionaries({"summary": TEXTS.map(lambda text: text * 20)})


@given(FACTS, SUMMARY, SUMMARY, st.integers(-1, 400), st.none() | TEXTS)
@settings(max_examples=60, deadline=None)
def test_the_budget_is_never_exceeded(facts, work, recent, max_tokens, context):
    """Counted in one piece, by the exact counter; and nothing opens a tag."""
    data = {"user": {"workContext": work}, "history": {"recentMonths": recent}, "facts": facts}
    text = format_memory_for_injection(data, max_tokens, context)
    assert _count_tokens(text) <= max(0, max_tokens)
    assert "<" not in text
    assert text == format_memory_for_injection(data, max_tokens, context)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=40), st.integers(0, 300))
@settings(max_examples=40, deadline=None)
def test_the_budget_is_used(lengths, max_tokens):
    """No fact that was left out would still have fitted."""
    texts = [f"fact {number} {'word ' * length}".strip() for number, length in enumerate(lengths)]
    data = {"facts": [{"content": text, "confidence": 0.9} for text in texts]}
    shown = format_memory_for_injection(data, max_tokens, "which word?")
    lines = shown.splitlines()
    left_out = [f"- {text}" for text in texts if f"- {text}" not in lines]
    heading = "" if shown else "Facts:\n"
    assert all(_count_tokens(f"{shown}{heading}\n{line}") >= max_tokens - 2 for line in left_out)


@given(TEXTS)
def test_quotes_are_quotes(text):
    """Every statement rests on words that are there, exactly so."""
    for one in stated(text):
        assert one.quote
        assert one.quote in text


@given(st.text())
def test_the_filter_reads_anything(text):
    """And says the same twice."""
    assert secret_in(text) == secret_in(text)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1))
def test_scores_stay_in_range(pairs):
    """0 to 1, and the more alike of two equally sure facts is never behind."""
    values = scores([alike for alike, _ in pairs], [sure for _, sure in pairs])
    assert all(0 <= value <= 1 + 1e-9 for value in values)


@given(st.lists(TEXTS, max_size=80))
def test_diversity_loses_nothing(texts):
    """It is an order, and the first stays first."""
    order = diverse(texts)
    assert sorted(order) == list(range(len(texts)))
    assert order[:1] == list(range(len(texts)))[:1]
