"""Whatever text goes into a page comes out of it as that text, and as nothing else."""

from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from pagefile.inspector.charts import Part, stacked
from pagefile.inspector.markup import document, el
from pagefile.inspector.page_request import PageRequest, Reader

#: What a page may hold as it is: no control characters, nothing that turns the direction of text, no halves of characters.
PLAIN = st.text(
    st.characters(
        exclude_categories=("Cs", "Cc"),
        exclude_characters="\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
    )
    | st.sampled_from("<>&\"'`=/!-\n\t")
)
MARKUP = st.sampled_from(
    [
        "<script>",
        "</p>",
        "<!--",
        "]]>",
        '" onload="x',
        "' onload='x",
        "&lt;",
        "&#60;",
        "<![CDATA[",
        "</textarea>",
        "\x00<b>",
    ]
)


class Taken(HTMLParser):
    """What a page is made of."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text, self.odd = [], [], "", []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        self.odd.append(data)

    def unknown_decl(self, data):
        self.odd.append(data)


@given(PLAIN, PLAIN)
def test_text_comes_out_as_it_went_in(text, value):
    """In an element and in an attribute."""
    taken = Taken(str(el("p", text, title=value)))
    assert ["p"] == taken.tags
    assert text.replace("\r", "\n") == taken.text
    assert [("title", value)] == taken.attributes
    assert [] == taken.odd


@given(st.lists(PLAIN | MARKUP, max_size=8), st.lists(MARKUP, max_size=3))
def test_nothing_becomes_markup(pieces, values):
    """However pieces of markup are put together, the page has the elements it was built of."""
    inner = el("td", "".join(pieces), data_x="".join(values), aria_label="".join(pieces))
    taken = Taken(document(el("html", el("body", el("table", el("tr", inner, list(pieces)))))))
    assert ["html", "body", "table", "tr", "td"] == taken.tags
    assert {"data-x", "aria-label"} == {name for name, _ in taken.attributes}
    assert [] == taken.odd


@given(
    st.dictionaries(st.text(st.characters(categories=["Ll"]), min_size=1, max_size=8), PLAIN, max_size=4),
    PLAIN,
)
def test_links_stay_on_the_site(values, tenant):
    """Whatever ids are called, a link leads to its own page and brings them along whole."""
    asked = PageRequest(tenant=tenant or None)
    place = asked.to("/inspector/page", **values)
    assert place.partition("?")[0] == "/inspector/page"
    assert [("href", place)] == Taken(str(el("a", "x", href=place))).attributes


@given(st.lists(st.integers(-50, 100_000), max_size=14), st.integers(0, 200_000))
def test_a_bar_never_runs_over(values, whole):
    """Pieces are side by side within the picture, in order, and none below nothing."""
    taken = Taken(str(stacked([Part("recent", value, "x") for value in values], whole, "bar")))
    shown = sum(1 for value in values if value > 0)
    rects = [float(value) for name, value in taken.attributes if name == "x"]
    widths = [float(value) for name, value in taken.attributes if name == "width"]
    # Behind them, where the whole is too small for its parts, a mark says where it ends.
    assert shown + (sum(max(0, value) for value in values) > whole > 0) == len(rects)
    assert rects[:shown] == sorted(rects[:shown])
    assert all(width > 0 for width in widths)
    assert all(at + width <= 1002.5 for at, width in zip(rects, widths, strict=True))


@given(st.integers(0, 10**15), st.timedeltas(timedelta(days=-400), timedelta(days=4000)))
def test_numbers_and_times_can_be_told(size, age):
    """Every size and every age has words in both languages."""
    now = datetime(2026, 11, 15, tzinfo=UTC)
    for language in ("en", "zh"):
        reader = Reader(PageRequest(), now, language)
        told = reader.size(size)
        assert told.split(" ")[1] in {"B", "kB", "MB", "GB"}
        assert float(told.split(" ")[0].replace(",", "")) >= 0
        assert reader.ago(now - age)
        assert str(reader.time(now - age)).startswith("<time ")
