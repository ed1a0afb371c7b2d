"""Which script a character belongs to: Chinese is cut into words, Japanese and Korean into pairs, the rest at spaces."""

import re
from typing import Literal

#: Chinese characters (and 々〇), as the inside of a regular expression's class.
HAN = r"\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = r"\u3041-\u30ff\u31f0-\u31ff"
HANGUL = r"\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
CJK = HAN + KANA + HANGUL

_CJK = re.compile(f"[{CJK}]")
_LETTER = re.compile(r"[^\W\d_]")


def is_cjk(char: str) -> bool:
    """Whether the character is Chinese, Japanese or Korean script (not punctuation)."""
    return _CJK.match(char) is not None


def cjk_share(text: str) -> float:
    """How much of the text's letters are Chinese, Japanese or Korean: 0 to 1, and 0 when it has no letters."""
    letters = len(_LETTER.findall(text))
    return len(_CJK.findall(text)) / letters if letters else 0.0


def language(text: str) -> Literal["zh", "en"]:
    """The language to answer in: Chinese when its script carries most of the meaning, else English.

    A Chinese character says about as much as three Latin letters, so a Chinese sentence full of product names
    is still Chinese.
    """
    return "zh" if cjk_share(text) >= 0.25 else "en"
