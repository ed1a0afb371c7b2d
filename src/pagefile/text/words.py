"""The one segmenter: what an index stores and what a query asks must be split the same way, in Chinese and in English.

English words are stemmed and stop words left out; a Chinese run gives its dictionary words and its pairs of
characters (measured: both together find more than either alone). What people look up literally (order
numbers, dates, doses, paths, addresses) stays whole, and its parts are terms as well.
"""

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib import import_module

from pagefile.text.sentences import CJK, HANGUL, KANA
from pagefile.text.tables import table

#: Words that are no terms, terms that only make a question one, words that ask for anything at all, and messages
#: that say nothing.
STOP_WORDS, ASKING_TERMS, GENERAL_WORDS, TRIVIAL = (
    frozenset(table("pagefile.text", "words")[name].split())
    for name in ("stop", "asking", "general", "trivial")
)
#: A longer run is not a word (base64, hashes): its head is enough to find it again.
MAX_TERM_CHARS = 64
#: A longer run seldom recurs, and is not cached.
_SHORT = 16

_WORD = rf"[^\W_{CJK}]"
_UNITS = (
    "毫克|微克|千克|公斤|克|毫升|升|厘米|毫米|公里|千米|米|度|万元|亿元|元|块|万|亿|年|月|日|号|天|周|岁|次|片|粒|颗|小时|分钟|秒|点|"
    "人|个|页|章"
)
#: The tokens of a text, in order of precedence. Every alternative starts with a fixed character class, and
#: none can match the same text in two ways, so that the scan is linear.
_SCAN = re.compile(
    rf"(?P<date>\d{{4}}年\d{{1,2}}月\d{{1,2}}[日号]?|\d{{4}}([-/.])\d{{1,2}}\2\d{{1,2}}(?![\d-]))"
    rf"|(?P<measure>\d+(?:\.\d+)?(?:{_UNITS})|\d+\.\d+[a-z]{{0,4}}(?![\w-]|\.\w))"
    rf"|(?P<thousands>\d{{1,3}}(?:,\d{{3}})+(?!\d))"
    rf"|(?P<latin>{_WORD}+(?:(?:://|[-_./:@+'&=?~\\]){_WORD}+)*(?:\+\+|\#)?(?!{_WORD}))"
    rf"|(?P<cjk>[{CJK}]+)"
)
_PART = re.compile(rf"{_WORD}+(?:'{_WORD}+)*")
_NUMBER_UNIT = re.compile(r"(\d+(?:\.\d+)?)([^\W\d_]+)\Z")
_SPACED_UNIT = re.compile(r"(?<=\d) (?=(?:mg|mcg|kg|g|ml|l|cm|mm|km|m|gb|mb|kb|tb|ms|px|usd|rmb|cny|eur)\b)")
_PAIRED = re.compile(f"[{KANA}{HANGUL}]")


#: Nothing but messages that say nothing, and words around them.
_SMALL_TALK = re.compile(
    r"(?:(?:{})|\W)*+".format(
        "|".join(
            rf"\b{re.escape(word)}\b" if word.isascii() else re.escape(word)
            for word in sorted(
                TRIVIAL | frozenset(table("pagefile.text", "words")["small_talk"].split()),
                key=len,
                reverse=True,
            )
        )
    )
)


class _Stemmers(threading.local):
    """One stemmer per thread: PyStemmer's is not thread-safe."""

    def __init__(self) -> None:
        self.english = import_module("Stemmer").Stemmer("english")


_stemmers = _Stemmers()


def terms(text: str, *, keep_stop_words_if_empty: bool = True) -> list[str]:
    """The terms of a text in order, with repetitions; the same for index and query.

    Stop words are left out, unless the text has nothing else: "who are you" is a valid query.
    """
    plain = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    plain = _SPACED_UNIT.sub("", plain.replace("\u2019", "'"))
    kept: list[str] = []
    for match in _SCAN.finditer(plain):
        found = match[0]
        kept += (_remembered if len(found) <= _SHORT else _worked_out)(match.lastgroup, found)
    if kept or not keep_stop_words_if_empty:
        return kept
    return [term for match in _SCAN.finditer(plain) for _, term in _every_term(match.lastgroup, match[0])]


def _worked_out(kind: str | None, found: str) -> tuple[str, ...]:
    return tuple([term for word, term in _every_term(kind, found) if word not in STOP_WORDS])


#: People use few words, many times: most of the work is done once per word.
_remembered = lru_cache(maxsize=1 << 15)(_worked_out)


def is_trivial(message: str) -> bool:
    """Whether a message says nothing that memory could be about: greetings, thanks, words of agreement."""
    return _SMALL_TALK.fullmatch(message.casefold()) is not None


def forget_words() -> None:
    _remembered.cache_clear()


def _every_term(kind: str | None, found: str) -> Iterator[tuple[str, str]]:
    """Pairs of a word as written and the term it becomes."""
    match kind:
        case "cjk":
            yield from _cjk_terms(found)
        case "latin":
            yield from _latin_terms(found)
        case "thousands":
            yield found, found.replace(",", "")
        case "measure":
            # Also the number and the unit of 500毫克 or 3.5mg.
            number = re.sub(r"[^\d.]+\Z", "", found)
            parts = (found,) if number == found else (found, number, found[len(number) :])
            yield from ((part, part) for part in parts)
        case _:
            yield from _date_terms(found)


def _date_terms(date: str) -> Iterator[tuple[str, str]]:
    """A date as written, and as year-month-day, so that 2024年5月3日 and 2024/5/3 find each other."""
    numbers = re.findall(r"\d+", date)
    iso = f"{numbers[0]}-{int(numbers[1]):02}-{int(numbers[2]):02}"
    written = (date,) if iso == date else (date, iso)
    yield from ((term, term) for term in (*written, *numbers))


def _latin_terms(found: str) -> Iterator[tuple[str, str]]:
    """A word; or a compound (an id, a path, an address, a version): the whole and its parts."""
    parts = _PART.findall(found)
    if parts != [found]:
        yield found, found[:MAX_TERM_CHARS]
    for part in parts:
        yield part, _stemmers.english.stemWord(part[:MAX_TERM_CHARS])
        if measure := _NUMBER_UNIT.match(part):
            yield from ((piece, piece) for piece in measure.groups())


@cache
def _cut() -> Callable[[str], list[str]]:
    """The segmenter; its import reads a dictionary for a quarter of a second, which English never needs."""
    import rjieba  # noqa: PLC0415

    return rjieba.cut_for_search


def _cjk_terms(run: str) -> Iterator[tuple[str, str]]:
    """Dictionary words of a Chinese run, and its pairs of characters; for Japanese and Korean only the pairs."""
    if not _PAIRED.search(run):
        for word in _cut()(run):
            yield word, word
    elif len(run) == 1:
        yield run, run
    for start in range(len(run) - 1):
        pair = run[start : start + 2]
        says_nothing = pair[0] in STOP_WORDS and pair[1] in STOP_WORDS
        yield (pair[0] if says_nothing else pair), pair
