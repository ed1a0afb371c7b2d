"""A long text is counted in parts, so that other threads have their turn; the count is that of the whole."""

import random

import pytest

from pagefile.text import tokens
from pagefile.text.tokens import open_counter, pieces

WORDS = [
    "the",
    "pump",
    "valve,",
    "12,345.67",
    "(broke)",
    "again;",
    "don't",
    "say",
    "你好世界",
    "—",
    "naïve",
    "Straße\n\tif",
    "x",
    "==",
    "1:\n",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "return",
    "'y'",
    "",
    "#",
    "done\r\n",
    "",
]


def texts():
    chance = random.Random(5)
    yield " ".join(chance.choice(WORDS) for _ in range(3000))
    yield "\n".join(" ".join(chance.choice(WORDS) for _ in range(12)) for _ in range(300))
    yield "[" + "1," * 6000 + "1]"
    yield "".join(chance.choice("中文字符没有空格，也有标点。") for _ in range(9000))
    yield "x" * 9000
    yield " " * 500 + "\n" * 500 + "a b" * 2000


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_parts_add_up(monkeypatch, name, number):
    """Wherever there is a place between two tokens; a text without one is cut anyway, and may have a token more per cut."""
    counter, text = open_counter(name), list(texts())[number]
    whole = counter.count(text)
    monkeypatch.setattr(tokens, "_PIECE_CHARS", 300)
    parts = list(pieces(text))
    assert text == "".join(parts)
    assert max(map(len, parts)) <= 600
    uncut = number in {3, 4, 5}
    counted = sum(counter.count(part) for part in parts)
    assert whole == counted or (uncut and 0 <= counted - whole <= len(parts))
