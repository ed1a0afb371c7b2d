"""Marks in texts: each says which write a word came from, wherever it turns up later."""

import re
import zlib
from itertools import count

from pagefile.stores.encoding import packed

#: No vowels and no "s": whoever stems or cuts words leaves a mark whole.
_LETTERS = "bcdfghjkmnpqrtvw"
_DIGITS = 6
#: Four letters of a checksum behind the number: bytes that only look like a mark are none.
MARK = re.compile(rb"zqx([bcdfghjkmnpqrtvw]{6})([bcdfghjkmnpqrtvw]{4})")
#: Of what is compressed, a stretch that no two texts share.
_STRETCH = slice(8, 48)
#: Characters on each side of a mark that are told.
_AROUND = 200
_numbers = count(1)


def new_mark() -> str:
    """A mark that was never used."""
    return _written(next(_numbers))


def marks_in(data: bytes | str) -> set[str]:
    """The marks that are in a text or in bytes, in whatever case."""
    raw = data.encode(errors="replace") if isinstance(data, str) else data
    found = {match[0].decode() for match in MARK.finditer(raw.lower())}
    return {mark for mark in found if mark == _written(_number(mark))}


def places_in(text: str) -> dict[str, str]:
    """The marks that are in a text, each with what stands around it."""
    places = {mark: text.lower().find(mark) for mark in marks_in(text)}
    return {mark: text[max(0, at - _AROUND) : at + _AROUND] for mark, at in places.items()}


def bulky(mark: str) -> str:
    """A result that becomes a page."""
    return f"{mark} " + " ".join(f"line {number} of {mark}." for number in range(40))


def compressed(mark: str) -> bytes:
    """What a page of a mark looks like on disk, where no word of it can be read."""
    return packed(bulky(mark)).data[_STRETCH]


def _written(number: int) -> str:
    return "zqx" + _spelt(number, _DIGITS) + _spelt(zlib.crc32(str(number).encode()), 4)


def _spelt(number: int, digits: int) -> str:
    return "".join(_LETTERS[number >> 4 * place & 15] for place in reversed(range(digits)))


def _number(mark: str) -> int:
    value = 0
    for letter in mark[3 : 3 + _DIGITS]:
        value = value << 4 | _LETTERS.index(letter)
    return value
