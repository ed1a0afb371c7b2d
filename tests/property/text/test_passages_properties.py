"""What holds for the passages of every text."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from pagefile.text.passages import page_slice, render_excerpt, select, split
from pagefile.text.sources import MAX_CHARS, MOST, sources
from pagefile.text.synopsis import synopsis

PIECES = st.sampled_from(
    [
        "。", ". ", "\n", "\n\n", "# H\n", "```", "```\n", "~~~\n", "![a](b)", "[a](", "](c)", "[", "]", "|", "|-|-|\n",
        "| a | b |\n", "<table>", "</table>", "<p class='x'>", "</p>", "<", ">", '"', "'", "{", "}", ",", ":", "\\",
        '{"a": 1}', '[{"url": "https://a.example", "title": "t"}', "a,b,c\n", "1\t2\n", "汉字汉字", "the cat ", "e\u0301",
        "\u200d", "\ud800", "2024-01-02 03:04:05 ERROR x\n", "[1] n (https://b.example)\n", "## 来源文档\n", "Source: s\n",
        "来源：丙\n", "key: value\n", "def f(x):\n", "<!--", "<script>", "\x00",
    ]
)  # fmt: skip
TEXT = st.lists(PIECES | st.text(st.characters(codec=None), max_size=30), max_size=60).map("".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=8), inner, max_size=8),
    max_leaves=60,
).filter(lambda value: isinstance(value, list | dict))
LIMITS = st.tuples(st.integers(1, 60), st.integers(1, 120))
IMAGE = re.compile(r"!\[[^\[\]\n]*\]\([^()\n]*\)")


@given(TEXT, LIMITS)
def test_passages_lose_nothing(text: str, limits: tuple[int, int]):
    """Joined, they are the text; offsets tell where they stand; none is empty."""
    passages = split(text, target_chars=limits[0], max_chars=limits[1])
    assert text == "".join(passage.text for passage in passages)
    assert all(text[passage.start : passage.end] == passage.text != "" for passage in passages)


@given(TEXT, LIMITS)
def test_images_survive_every_split(text: str, limits: tuple[int, int]):
    """An image of plain text stands whole in one passage (in data, the value it stands in does)."""
    if text.lstrip("\ufeff \t\r\n")[:1] in ("[", "{"):
        text = f"x {text}"
    cuts = {passage.end for passage in split(text, target_chars=limits[0], max_chars=limits[1])}
    for image in IMAGE.finditer(text):
        assert not cuts & set(range(image.start() + 1, image.end()))


@given(JSON, LIMITS, st.sampled_from([None, 1]))
def test_json_values_survive_every_split(value: object, limits: tuple[int, int], indent: int | None):
    """Every passage but the last ends behind a comma that is not in a string."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    for passage in split(text, target_chars=limits[0], max_chars=limits[1])[:-1]:
        assert passage.text.rstrip().endswith(",")
        assert 0 == len(re.findall(r'(?<!\\)(?:\\\\)*"', re.sub(r"\\.", "", text[: passage.end]))) % 2


@given(TEXT, st.text(max_size=20), st.integers(-5, 400))
def test_a_selection_fits_its_budget(text: str, query: str, budget: int):
    """Rendered with the lines around it, in order, and only of passages there are."""
    passages = split(text, target_chars=40, max_chars=80)
    found = select(passages, query, budget=budget, cost=len)
    assert len(render_excerpt(found, len(text))) <= max(0, budget)
    assert sorted(found, key=lambda passage: passage.start) == found
    assert {(passage.start, passage.end) for passage in found} <= {(one.start, one.end) for one in passages}


@given(TEXT, st.integers(1, 200))
def test_paging_reaches_the_end(text: str, limit: int):
    """Each window is at most as long as asked, and the windows together show the text once."""
    shown = ""
    offset = 0
    while offset < len(text):
        start, end = page_slice(text, offset, limit)
        assert start <= offset < end <= start + limit
        shown += text[offset:end]
        offset = end
    assert text == shown


@given(TEXT, st.integers(1, 600))
def test_a_synopsis_is_never_empty_and_never_too_long(text: str, max_chars: int):
    """Whatever the text: one line, encodable, no image in it, the same each time."""
    written = synopsis(text, max_chars=max_chars)
    assert bool(text) == bool(written)
    assert len(written) <= max_chars
    assert "\n" not in written
    assert "![" not in written
    assert written == written.encode().decode()
    assert written == synopsis(text, max_chars=max_chars)


@given(TEXT)
def test_sources_are_few_short_and_distinct(text: str):
    """Whatever the text."""
    found = sources(text)
    assert len(found) <= MOST
    assert len(found) == len(set(found))
    assert all(0 < len(source) <= MAX_CHARS and source.encode() for source in found)
