"""What holds for the passages of every text."""

import html
import json
import re
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.judged import Case, cases
from pagefile.text.passages import page_slice, render_excerpt, select, selected, split
from pagefile.text.reading import Frame, pieces
from pagefile.text.reading.json_tree import unescaped
from pagefile.text.sources import MAX_CHARS, MOST, sources
from pagefile.text.synopsis import synopsis
from pagefile.text.tokens import open_counter

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
COUNTER = open_counter()
#: Results of every kind, each with its questions, with one that nothing answers, and with none.
ASKED = st.sampled_from(
    [(case, ask) for case in cases() for ask in (*(ask for ask, _ in case.questions), "zebra", "")]
)
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
    """An image of plain text is whole in one passage (in data, the value it is in does)."""
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
    """Rendered with the lines around it, in order, each part where it says."""
    found = select(split(text, target_chars=40, max_chars=80), query, budget=budget, cost=len)
    assert len(render_excerpt(found, len(text))) <= max(0, budget)
    assert sorted(found, key=lambda passage: (passage.start, passage.end)) == found
    assert all(0 <= passage.start < passage.end <= len(text) for passage in found)


def letters(text: str) -> Counter[str]:
    return Counter(char for char in text if char.isalnum())


@given(ASKED, st.sampled_from([100, 250, 400, 1500, 4000]))
@settings(max_examples=150, deadline=None)
def test_a_budget_is_used_while_there_is_more_to_show(asked: tuple[Case, str], budget: int):
    """Of a result of any kind, for any question or none: most of the budget is spent, most of that on its own text."""
    case, query = asked
    found = selected(case.result, query, budget=budget, cost=COUNTER.count)
    spent = COUNTER.count(render_excerpt(found, len(case.result)))
    readable = sum(COUNTER.count(piece.text) for piece in pieces(Frame(case.result)))
    assert spent <= budget
    own = sum(COUNTER.count(passage.text) for passage in found)
    # In so little room the line that says where it stands takes more of it.
    least = 250 * budget // 400 if budget >= 400 else 180 * budget // 400
    assert own >= min(least, readable * 9 // 10)


@given(ASKED, st.integers(20, 2000))
@settings(max_examples=150, deadline=None)
def test_offsets_lead_to_what_is_shown(asked: tuple[Case, str], budget: int):
    """The page, from the first offset to the second, has all that is shown, escaped or in its markup."""
    case, query = asked
    for passage in selected(case.result, query, budget=budget, cost=COUNTER.count):
        raw = case.result[passage.start : passage.end]
        for _ in range(3):
            # JSON inside of JSON inside of a page.
            if letters(passage.text) <= letters(raw):
                break
            raw = html.unescape(unescaped(raw))
        assert letters(passage.text) <= letters(raw)


@given(JSON, st.sampled_from([None, 1]))
def test_pieces_leave_nothing_out(value: object, indent: int | None):
    """Every key and every value of JSON is in one of its pieces or in the path of one, and pieces are in order."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    found = pieces(Frame(text))
    held = Counter[str]()
    for piece in found:
        held += letters(text[piece.frame.place(piece.start) : piece.frame.place(piece.end)] + piece.where)
    assert letters(re.sub(r"\\u[0-9a-f]{4}|\\.", "", text)) <= held + letters("ntrbfu" * len(text))
    places = [piece.frame.place(piece.start) for piece in found]
    assert sorted(places) == places


@given(TEXT)
def test_pieces_of_text_leave_nothing_out(text: str):
    """Whatever the text, if it is neither JSON nor markup: all that is written is in its pieces, once."""
    text = f"x {text.replace('<', ' ')}"
    assert "".join(text.split()) == "".join("".join(piece.text for piece in pieces(Frame(text))).split())


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
