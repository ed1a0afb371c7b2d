"""Whether a message has no matter at all: the weather, a mood, a wish, thanks, praise, a goodbye.

Such a message resembles others of its kind that were said before, and needs none of them: no similarity tells that.
"""

import re
from functools import cache

from pagefile.text.sentences import HAN
from pagefile.text.tables import table
from pagefile.text.words import STOP_WORDS

#: A longer message has a matter.
_MOST_CHARS = 80
#: As many Chinese characters may be left as are part of no listed word: names of what is meant have two.
_LEFT = 1
_HAN = re.compile(f"[{HAN}]")
_ENGLISH = re.compile(r"[a-z']+")
_QUESTION = re.compile(r"[?？]\s*$|[吗么]\s*$")


@cache
def _words(*kinds: str) -> tuple[frozenset[str], re.Pattern[str]]:
    """The English words of these kinds, and a pattern of the Chinese ones."""
    listed = {word for kind in kinds for word in table("pagefile.text", "small_talk")[kind].split()}
    chinese = sorted((word for word in listed if not word.isascii()), key=len, reverse=True)
    return frozenset(word for word in listed if word.isascii()) | STOP_WORDS, re.compile("|".join(chinese))


def is_small_talk(message: str) -> bool:
    """Whether a message says nothing that memory could be about, or asks for nothing but the weather or the day."""
    text = message.strip().casefold().replace("\u2019", "'")
    if not text or len(text) > _MOST_CHARS or any(character.isdigit() for character in text):
        return False
    kinds = ("weather", "days") if _QUESTION.search(text) else ("weather", "days", "said")
    english, chinese = _words(*kinds)
    if kinds != ("weather", "days", "said"):
        # Only the particles of a Chinese question.
        text = re.sub("[吗呢啊呀吧会不要是了的怎么样如何有]", " ", text)
    return all(word.split("'")[0] in english for word in _ENGLISH.findall(text)) and (
        len(_HAN.findall(chinese.sub(" ", text))) <= _LEFT
    )
