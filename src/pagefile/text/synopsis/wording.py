"""How a synopsis is worded: on one line, in the language of the text, without cutting what must stay whole."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pagefile.text.extract import summarize
from pagefile.text.sentences import cut, sentences

#: Images and links, including those truncated by the end of the text.
_IMAGE = re.compile(r"!\[([^\[\]]*+)(?:\]\((?:[^()\n]++|\([^()\n]*+\))*+(?:\)|\Z)|\Z)")
_LINK = re.compile(r"\[([^\[\]]*+)\]\((?:[^()\n]++|\([^()\n]*+\))*+(?:\)|\Z)")
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u2029\ufeff\ud800-\udfff]+")
_FENCED = re.compile(r"^ {0,3}(?:```|~~~).*?(?:^ {0,3}(?:```|~~~)[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_NOT_PROSE = re.compile(r"^[ \t]*(?:\|.*|#{1,6} .*|[-=*_]{3,}[ \t]*)$", re.MULTILINE)
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*+>]|\d{1,3}[.)])[ \t]+", re.MULTILINE)
_EMPHASIS = re.compile(r"\*\*|__|`")

_REFERENCE = re.compile(r"[(\[]#?\d+[)\]]\.?")
#: The lead of a text is a sentence of this many words, or characters of a script without spaces, among its first.
_LEAD_WORD = re.compile(r"[\u3040-\u9fff]|[^\W\d_\u3040-\u9fff]+")
_LEAD_WORDS, _LEAD_AMONG, _LEAD_ENDS = 6, 8, (".", "。", "!", "！")

#: What is read of a long text to summarise it: its beginning, and a sample of its middle and its end.
_OPENING, _LOOK = 3000, 1000


def squeeze(text: str, max_chars: int) -> str:
    """The beginning of a text on one line, with images replaced by their names, and without invisible characters."""
    seen = _IMAGE.sub(r"\1", text[: max_chars * 6 + 400]).replace("![", "[")
    line = " ".join(_UNSEEN.sub(" ", seen).split())
    return cut(line, max_chars)


@dataclass(frozen=True, slots=True)
class Voice:
    """The language a synopsis is written in: `say(chinese, english)` is one of two wordings."""

    zh: bool

    def __call__(self, chinese: str, english: str) -> str:
        return chinese if self.zh else english

    def listed(self, names: Iterable[str], total: int, *, most: int, name_chars: int = 60) -> str:
        """Names in a row, as many as fit into `most` characters, and how many more there are."""
        shown: list[str] = []
        room = most
        for name in names:
            if not (short := squeeze(name, name_chars)):
                total -= 1
                continue
            if shown and len(short) + 2 > room:
                break
            shown.append(short)
            room -= len(short) + 2
        more = total - len(shown)
        joined = self("、", ", ").join(shown)
        return joined + (self(f" 等 {total:,} 项", f" and {more:,} more") if more > 0 else "")

    def assemble(self, parts: Sequence[str], max_chars: int) -> str:
        """Parts as sentences, in order; one that does not fit is cut if enough of it remains."""
        out = ""
        for sentence in filter(None, (squeeze(part, max_chars) for part in parts)):
            ended = sentence if sentence[-1] in ".。…!?！？" else sentence + self("。", ".")
            gap = "" if self.zh or not out else " "
            room = max_chars - len(out) - len(gap)
            if len(ended) <= room:
                out += gap + ended
            elif not out or room >= 40:
                return out + gap + cut(sentence, room)
        return out


def prose(text: str, max_chars: int) -> str:
    """The most important sentences of a text; for a long text, from its beginning, middle and end."""
    pieces = [text]
    if len(text) > _OPENING + 2 * _LOOK:
        middle = len(text) // 2
        pieces = [
            text[:_OPENING],
            _behind_boundary(text[middle : middle + _LOOK]),
            _behind_boundary(text[-_LOOK:]),
        ]
        pieces[:2] = [_to_boundary(piece) for piece in pieces[:2]]
    read = [_without_references(once(plain_text(piece))) for piece in pieces]
    lead, read[0] = _lead(read[0], max_chars // 2)
    said = summarize([("", piece) for piece in read], limit=max_chars - len(lead))
    return squeeze(lead + said, max_chars)


def _without_references(text: str) -> str:
    """A text without the numbers in brackets behind its sentences, of tickets or footnotes."""
    return "".join(one for one in sentences(text) if not _REFERENCE.fullmatch(one.strip()))


def _lead(text: str, max_chars: int) -> tuple[str, str]:
    """The first sentence of a text, if it is short, and the rest: authors say first what follows. Above it may be the menu of a page."""
    found = sentences(text)
    for at, sentence in enumerate(found[:_LEAD_AMONG]):
        said = sentence.strip()
        if not said.endswith(_LEAD_ENDS) or len(_LEAD_WORD.findall(said)) < _LEAD_WORDS:
            continue
        if len(said) > max_chars:
            break
        before = [one for one in found[:at] if one.rstrip().endswith(_LEAD_ENDS)]
        return said + (" " if said.isascii() else ""), "".join([*before, *found[at + 1 :]])
    return "", text


def once(text: str) -> str:
    """A text without the sentences that it says again."""
    said: dict[str, str] = {}
    for sentence in sentences(text):
        said.setdefault(sentence.strip(), sentence)
    return "".join(said.values())


def plain_text(text: str) -> str:
    """Markdown as plain text: no code, no tables, no images, links as their names."""
    text = _NOT_PROSE.sub("", _FENCED.sub("\n", text))
    text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", text)).replace("![", "[")
    return _UNSEEN.sub(" ", _EMPHASIS.sub("", _LIST_MARK.sub("", text)))


def _behind_boundary(piece: str) -> str:
    """A piece from the middle of a text, without the partial sentence at its beginning."""
    match = re.search(r"[。！？\n]|[.!?]\s", piece[: _LOOK // 2])
    return piece[match.end() :] if match else piece


def _to_boundary(piece: str) -> str:
    """A piece of a text without the partial sentence at its end."""
    ends = [match.end() for match in re.finditer(r"[。！？\n]|[.!?]\s", piece[-_LOOK // 2 :])]
    return piece[: len(piece[: -_LOOK // 2]) + ends[-1]] if ends else piece
