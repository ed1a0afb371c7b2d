"""How many values a JSON text has, without reading it."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefile.text.json_size import has_many_values

SOME_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def size_of(value):
    """A value for each element of a list, two for each entry of an object, and one for either that is empty."""
    if isinstance(value, dict):
        return max(1, 2 * len(value)) + sum(map(size_of, value.values()))
    return max(1, len(value)) + sum(map(size_of, value)) if isinstance(value, list) else 0


@given(SOME_JSON)
def test_only_what_is_between_values_counts(value):
    """Whatever its strings contain."""
    text, size = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"), size_of(value)
    assert not has_many_values(text, size)
    assert not size or has_many_values(text, size - 1)


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"1," * 3_000_000 + b"1]",
        b"{" + b'"k":1,' * 1_000_000 + b'"k":1}',
        b"[" * 100_000,
        b'["' + b'","' * 100_000 + b'"]',
    ],
)
def test_a_long_list_is_found(text):
    assert has_many_values(text)


def test_text_is_not_a_list():
    """Commas, quotes and brackets within strings do not count."""
    said = 'well, [he said: \\"no\\"], {and: left}, ' * 50_000
    assert not has_many_values(json.dumps({"user": said}).encode())


def test_it_takes_no_longer_for_a_longer_list():
    began = time.process_time()
    assert has_many_values(b"[" + b'"a",' * 8_000_000 + b"1]")
    assert time.process_time() - began < 2
