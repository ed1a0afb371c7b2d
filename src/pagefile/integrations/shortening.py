"""Shortens tool results that are too long for a request, whatever framework's messages hold them."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from pagefile.text.sentences import clip

K = TypeVar("K")
Count = Callable[[str], int]

#: A result without a page is not cut below this length.
_SMALLEST_RESULT_CHARS = 200


def shortened(texts: Mapping[K, str], over: int, count: Count) -> dict[K, str]:
    """Those of the texts, longest first, whose middle is cut out until `over` tokens are saved."""
    tokens = {key: count(text) for key, text in texts.items()}
    cut: dict[K, str] = {}
    for key in sorted(tokens, key=lambda key: -tokens[key]):
        if over <= 0:
            break
        cut[key] = cut_to(texts[key], max(0, tokens[key] - over), count)
        over -= tokens[key] - count(cut[key])
    return cut


def cut_to(text: str, tokens: int, count: Count) -> str:
    """A text with its middle cut out to fit a number of tokens, but never below a readable minimum."""
    chars = len(text)
    while chars > _SMALLEST_RESULT_CHARS and (cost := count(clip(text, chars))) > tokens:
        chars = max(_SMALLEST_RESULT_CHARS, min(chars - 1, chars * tokens // max(cost, 1)))
    return clip(text, chars)
