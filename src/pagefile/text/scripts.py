"""Scripts: Chinese is segmented into words, Japanese and Korean into pairs of characters, the rest at spaces."""

import re
from typing import Literal

#: Chinese characters (and 々〇), for use inside a regular expression's character class.
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
    """The share (0 to 1) of the text's letters that are Chinese, Japanese or Korean; 0 if it has no letters."""
    letters = len(_LETTER.findall(text))
    return len(_CJK.findall(text)) / letters if letters else 0.0


def language(text: str) -> Literal["zh", "en"]:
    """The language to answer in: Chinese if its script carries most of the meaning, else English.

    A Chinese character says about as much as three Latin letters, so a Chinese sentence full of product names
    is still Chinese.
    """
    return "zh" if cjk_share(text) >= 0.25 else "en"
