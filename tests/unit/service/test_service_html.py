"""Pages from files."""

import pytest

from pagefile.service.inspector_auth import prefers_chinese
from pagefile.service.reference import Html, fill, fragments


def test_what_is_filled_in_is_escaped():
    """Text cannot become markup; a fragment stays one."""
    row = fill("docs.html", "row", name="<b>", star="", type=Html("<i>x</i>"), description='"&"')
    assert "<code>&lt;b&gt;</code>" in row
    assert "<i>x</i>" in row
    assert "&quot;&amp;&quot;" in row


def test_fragments_are_named():
    """The page comes first, then its fragments."""
    assert {"page", "row", "operation", "schema"} <= set(fragments("docs.html"))


@pytest.mark.parametrize(
    ("header", "chinese"),
    [
        ("", False),
        ("zh", True),
        ("zh-Hant-TW", True),
        ("en,zh", False),
        ("en;q=0.5, zh ; q=0.6", True),
        ("zh;q=0, en;q=0", False),
        ("zh;q=2", True),
        ("zhuang", False),
        ("*", False),
    ],
)
def test_the_language_of_the_reader(header, chinese):
    """The heavier of the two wins, English when they are equal."""
    assert chinese == prefers_chinese(header)
