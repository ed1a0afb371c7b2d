"""Chinese and English text: which language it is in, where its sentences end, and what to show of one that is too long."""

import re
from collections.abc import Callable, Iterable
from typing import Literal

Language = Literal["zh", "en"]

# Chinese is segmented into words, Japanese and Korean into pairs of characters, the rest at spaces.

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


def language(text: str) -> Language:
    """The language to answer in: Chinese if its script carries most of the meaning, else English.

    A Chinese character says as much as three Latin letters: a sentence full of product names is still Chinese.
    """
    return "zh" if cjk_share(text) >= 0.25 else "en"


#: What says nothing about the language its author speaks: code, links, paths, addresses and quotations …
_NOT_SPOKEN = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|(?<![!-~])(?=[!-~]*?[/\\@_])[!-~]+|\b\w++\([^()\n]*\)|\"[^\"\n]*\"|“[^”\n]*”|「[^」\n]*」|《[^》\n]*》",
    re.DOTALL,
)
#: … and lines of a program, of a stack trace or of data.
_NOT_PROSE = re.compile(
    r"^\s*(?:[{}<>\[|$#]|Traceback |File |at |(?:def|class|import|from|return|const|let|var|select|insert)\b).*"
    r"|^.*(?:[{};]$|[=!<>]=|=>|->|::| = ).*",
    re.MULTILINE | re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[\n。！？：:；;]|[.!?](?=\s)")
_WORD = re.compile(rf"(?:(?![{CJK}])[^\W\d_])+(?:['’-](?:(?![{CJK}])[^\W\d_])+)*")
_HAN = re.compile(f"[{HAN}]")
_OTHER_CJK = re.compile(f"[{KANA}{HANGUL}]")
_ENGLISH = re.compile(
    r"\b(?:the|an?|is|are|was|do|does|did|what|how|why|when|where|who|which|can|could|please|this|that|these|in|on|of|to|for|"
    r"and|with|my|me|you|your|it|not)\b",
    re.IGNORECASE,
)
#: What tells a language: this many Chinese characters or words in one clause.
_ENOUGH_HAN, _ENOUGH_WORDS = 4, 3
#: Beyond this a message is material rather than what its author says.
_SPOKEN_CHARS = 2000


def spoken_language(messages: Iterable[str]) -> Language | None:
    """The language of the first message with a clause that tells it; None if none does. Any but Chinese counts as English.

    Code, links and quotations tell nothing, and "hi" or "ok" is too little: with "hi" and then a sentence in
    Chinese, the sentence decides. In a mixed clause, such as a Chinese question full of product names, words
    like "the" and "what" tell English apart.
    """
    for message in messages:
        prose = _NOT_PROSE.sub("", _NOT_SPOKEN.sub(" ", message[:_SPOKEN_CHARS]))
        for clause in _CLAUSE_END.split(prose):
            if (found := _clause_language(clause)) is not None:
                return found
    return None


def _clause_language(clause: str) -> Language | None:
    han, words = len(_HAN.findall(clause)), len(_WORD.findall(clause))
    if (other := len(_OTHER_CJK.findall(clause))) and han + other >= _ENOUGH_HAN:
        return "en"  # Japanese or Korean
    english = _ENGLISH.search(clause) is not None
    if han >= _ENOUGH_HAN:
        return "en" if english and words >= han else "zh"
    return "en" if words + english >= _ENOUGH_WORDS and words > han else None


#: A sentence never ends inside these: fenced and inline code, images and links, URLs.
_WHOLE = (
    r"```.*?(?:```|\Z)"
    r"|`[^`\n]*`"
    r"|!?\[[^\[\]\n]*\]\([^()\n]*\)"
    r"|(?:https?|ftp)://[^\s<>\"'，。；！？）」】]*[^\s<>\"'，。；！？）」】.,;:!?)]"
)
_CLOSING = r"[\"'”’」』）)\]】》]*"
_SCAN = re.compile(
    rf"(?P<whole>{_WHOLE})"
    rf"|(?P<hard>[。！？…]+{_CLOSING}\s*)"
    rf"|(?P<soft>(?<![.!?])[.!?]++{_CLOSING}(?:\s+|\Z|(?=[{CJK}])))"
    r"|(?P<line>\n\s*)",
    re.DOTALL,
)
_ABBREVIATION = re.compile(
    r"(?:(?<![A-Za-z])(?:mr|mrs|ms|dr|prof|sr|jr|st|vs|etc|e\.g|i\.e|cf|approx|no|fig|inc|ltd|co|a\.m|p\.m)|(?<![A-Za-z0-9_.'/-])[A-Z]|(?:^|\n)\s*\d{1,3})\Z",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with the whitespace after it: joined, they are the text again.

    A line break ends a sentence. Numbers (3.5), abbreviations, list numbers, URLs, code, images stay whole.
    """
    found: list[str] = []
    start = 0
    for match in _SCAN.finditer(text):
        if match.lastgroup == "whole" or (match.lastgroup == "soft" and _goes_on(text, start, match)):
            continue
        if text[start : match.end()].strip():
            found.append(text[start : match.end()])
            start = match.end()
    if start < len(text):
        found.append(text[start:])
    return found


def _goes_on(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether a full stop belongs to an abbreviation, an initial or a list number, with more text on the line."""
    mark = match.group()
    if not mark.startswith(". ") or match.end() == len(text) or "\n" in mark:
        return False
    return _ABBREVIATION.search(text[max(start, match.start() - 12) : match.start()]) is not None


#: Where to cut, best first.
_BOUNDARIES = (re.compile(r"\n"), re.compile(r"[。！？；]|[.!?;](?=\s)"), re.compile(r"[\s，、,]"))
#: Below this there is no room for two ends and a marker: only the beginning is shown.
_SMALLEST = 60


def clip(text: str, max_chars: int) -> str:
    """The text if it fits, else its head and tail around a marker with the number of characters left out.

    Never longer than `max_chars`. Both ends are moved to the nearest line, sentence or word boundary.
    """
    if len(text) <= max_chars:
        return text
    if max_chars < _SMALLEST:
        return cut(text, max_chars)
    zh = language(text[:4000]) == "zh"
    room = max_chars - len(_marker(len(text), zh=zh))
    head = _head(text, room * 2 // 3)
    tail = _tail(text, room - room * 2 // 3)
    return head + _marker(len(text) - len(head) - len(tail), zh=zh) + tail


def cut(text: str, max_chars: int) -> str:
    """The beginning of a text up to a boundary, with an ellipsis if something is missing."""
    if len(text) <= max_chars:
        return text
    if max_chars <= 0:
        return ""
    return _head(text, max_chars - 1).rstrip() + "…"


def fitting_sentences(text: str, limit: int, measure: Callable[[str], int]) -> str:
    """As many whole sentences as fit within a limit of tokens; a first one that does not fit is cut."""
    text = text.strip()
    if measure(text) <= limit:
        return text
    kept = ""
    for sentence in sentences(text):
        if measure(kept + sentence.rstrip()) > limit:
            break
        kept += sentence
    return kept.strip() or cut_to(text, limit, measure)


def cut_to(text: str, limit: int, measure: Callable[[str], int]) -> str:
    """The beginning of a text that fits within a limit of tokens, up to a boundary."""
    # A token has at least a fraction of a character; what is far too long need not be measured as a whole.
    room = min(len(text), 20 * limit)
    while room and measure(shorter := cut(text[: room + 1], room)) > limit:
        room = min(room - 1, room * limit // measure(shorter))
    return cut(text, room)


def _marker(missing: int, *, zh: bool) -> str:
    return f"\n…（此处略去 {missing} 字）…\n" if zh else f"\n… ({missing} characters left out) …\n"


def _head(text: str, room: int) -> str:
    """At most `room` characters from the beginning; up to a quarter is sacrificed for a better boundary."""
    floor = room - room // 4
    for boundary in _BOUNDARIES:
        # Look one character further: a word that ends at the limit is complete if a space follows it.
        if ends := [min(room, match.end()) for match in boundary.finditer(text, floor, room + 1)]:
            return text[: ends[-1]]
    return text[:room]


def _tail(text: str, room: int) -> str:
    """At most `room` characters from the end, starting after a boundary."""
    start = len(text) - room
    for boundary in _BOUNDARIES:
        if match := boundary.search(text, start, start + room // 4):
            return text[match.end() :].lstrip(" ")
    return text[start:]
