"""What bad input is made of, for every test of this folder."""

import json
from dataclasses import dataclass

from hypothesis import strategies as st
from pydantic import BaseModel


def nested(depth: int, *, as_dict: bool = False) -> object:
    """Lists in lists, or dicts in dicts."""
    value: object = "底"
    for _ in range(depth):
        value = {"a": value} if as_dict else [value]
    return value


class Unspeakable:
    """Raises when it is looked at."""

    def __str__(self) -> str:
        raise RuntimeError("nobody may look at this")

    __repr__ = __str__


class Model(BaseModel):
    """A result as frameworks have it."""

    text: str = "正文"
    score: float = 0.5


@dataclass
class Record:
    """Another."""

    content: str = "正文"


def circular() -> list[object]:
    """A list that holds itself."""
    value: list[object] = ["甲"]
    value.append(value)
    return value


#: Characters that end strings, lines, tags, numbers and encodings.
ODD = "\0\x1b\x7f\x85\ud800\udfff\ufeff\u200b\u202e\u2028\U000e0041\r\n\t\"'\\{}[]<>&%$#`|:;,.=+-_/?@ aA1١²中文😀é"
TEXT = st.text(alphabet=ODD, max_size=40)
#: Pieces that parsers look for, in any order.
PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                '{"', '":', "[", "]", "}", ",", "null", "NaN", "-Infinity", "1e999", "9" * 30, "\\u0000", "\\ud800", "\ufeff",
                "true", '"type"', '"turn"', "- ", ": ", "&a ", "*a", "!!python/object", "|", ">", "---\n", "event: ", "data: ",
                "://", "@", "[::1]", "%00", "%zz", "?", "#", "=", "2026-13-45", "0001-01-01T00:00:00+23:59", "\r\n", "\n", "\r",
            ]
        ),
        TEXT,
    ),
    max_size=12,
).map("".join)  # fmt: skip
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.integers(),
    st.floats(),
    st.sampled_from([10**30, -(10**30), 2**63, 10**400, float("nan"), float("inf"), -0.0]),
)
LEAVES = st.one_of(st.none(), st.booleans(), NUMBERS, TEXT, st.binary(max_size=12))
#: Anything that JSON may hold, and more.
JSONISH = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(TEXT, inner, max_size=4),
        st.dictionaries(st.one_of(st.integers(), st.none(), st.tuples(st.integers())), inner, max_size=2),
        st.tuples(inner),
    ),
    max_leaves=12,
)
#: What tools and frameworks return, besides.
FOREIGN: dict[str, object] = {
    "deep lists": nested(5_000),
    "deep dicts": nested(5_000, as_dict=True),
    "rather deep": nested(400, as_dict=True),
    "deep JSON": "[" * 100_000,
    "closed deep JSON": "[" * 3_000 + "]" * 3_000,
    "itself": circular(),
    "unspeakable": Unspeakable(),
    "an unspeakable part": ["可读", Unspeakable(), {"a": Unspeakable()}],
    "keys of all kinds": {(1, 2): 3, None: 4, 1.5: 5, "a": 6, b"b": 7},
    "a huge number": 10**5_000,
    "a huge number inside": {"n": [10**5_000]},
    "a huge number as JSON": '{"n": ' + "9" * 5_000 + "}",
    "no number": {"x": float("nan"), "y": [float("-inf")]},
    "equal keys": '{"a": 1, "a": 2, "content": "b", "content": "c"}',
    "a mark before JSON": '\ufeff{"results": [{"content": "甲"}]}',
    "bytes": b"\xff\xfe\x00binary",
    "bytes that are text": "正文".encode(),
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(200),
    "memory": memoryview(b"ab"),
    "half a character": "\ud83d \ude00\0",
    "keys with half a character": {"\ud800": "\0", "\0": ["\udfff"]},
    "mixed lines": "a\r\nb\rc\nd\u2028e\x85f",
    "a set": {1, 2, 3},
    "a model": Model(),
    "a record": Record(),
    "a class": int,
    "an error": ValueError("x"),
    "a generator": (letter for letter in "ab"),
    "content blocks": [{"type": "text", "text": "甲"}, {"type": "image", "source": {"data": "AAAA"}}],
    "blocks of blocks": [{"type": "text", "text": json.dumps([{"type": "text", "text": "乙"}])}],
    "a failed call": {"isError": True, "content": [{"type": "text", "text": "timeout"}]},
    "nothing": None,
    "a lie": True,
}  # fmt: skip
