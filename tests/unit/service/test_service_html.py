"""The language of pages."""

import pytest

from pagefile.service.inspector_auth import prefers_chinese


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
