"""How a past turn is shown beside a question: on one line under its day, long sides as the passage that answers."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from pagefile.records import Turn
from pagefile.text.sentences import cut
from pagefile.window.candidates import Form
from pagefile.window.measure import Count
from pagefile.window.parts import escape
from pagefile.window.value import worth

#: What somebody said stays whole up to this many characters, or as many as the window has tokens; of more, a passage is shown.
SAID_CHARS = 1300
#: The length of a passage in characters, and of an answer that stays whole; in a small window a quarter of its tokens.
PASSAGE_CHARS, LEAST_CHARS, PASSAGE_WINDOW = 450, 60, 4
#: A longer side is never shown whole.
MOST_CHARS = 4000
#: Size of the pattern cache: the same question is matched against many turns.
_QUESTIONS = 16
#: Occurrences of words that are looked at.
_MOST_PLACES = 40
#: A token has about this many characters.
_TOKEN_CHARS = 4
_SENTENCE_END = re.compile(r"[.!?]\s+|[。！？]")
#: The tokens of a line beside what was said.
_LINE_TOKENS = 4
#: How much of a turn's value is in its passages.
PASSAGE_SHARE = 0.85


_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def is_day(line: str) -> bool:
    """Whether a line is the heading of the turns of a day."""
    return _DAY.fullmatch(line) is not None


@lru_cache(_QUESTIONS)
def pattern_of(words: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the words of a question in a text; to compile it takes longer than all else that is done for a turn."""
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)", re.IGNORECASE)


def about(turn: Turn, window_tokens: int, fetched: str = "") -> tuple[int, float]:
    """About what the shortest form of a turn takes, and its share of the value: to make all forms takes ten times as long."""
    said, answered = len(turn.user or ""), len(turn.assistant or "") + len(fetched)
    most, chars = min(SAID_CHARS, window_tokens), _passage_chars(window_tokens)
    shown = (said if said <= most else chars) + min(answered, chars)
    counted = turn.user_tokens + turn.assistant_tokens + len(fetched) // _TOKEN_CHARS
    tokens = counted * shown // max(1, said + answered)
    return tokens + _LINE_TOKENS, 1.0 if said <= most and answered <= chars else PASSAGE_SHARE


def _passage_chars(window_tokens: int) -> int:
    return min(PASSAGE_CHARS, max(LEAST_CHARS, window_tokens // PASSAGE_WINDOW))


def recalled_forms(
    turn: Turn, value: float, asked: tuple[str, ...], window_tokens: int, count: Count, fetched: str = ""
) -> tuple[Form, ...]:
    """The turn as the passages with most of the question's words, if it is long; and whole, if that may be worth it.

    `fetched` is what tools returned; it comes behind the answer, which is shown where no word says what is asked.
    """
    said = " ".join((turn.user or "").split())
    answered = " ".join([*(turn.assistant or "").split(), *([fetched] if fetched else ())])
    chars = _passage_chars(window_tokens)
    shown = said if len(said) <= min(SAID_CHARS, window_tokens) else passage(said, asked, chars)
    reply = answered if len(answered) <= chars else passage(answered, asked, chars)
    short = line(shown, reply)
    if (shown, reply) == (said, answered):
        return (Form(count(f"{short}\n"), text=short),)
    brief = Form(count(f"{short}\n"), text=short, name="passage", share=PASSAGE_SHARE)
    # The head of a longer side might lack what its passage says.
    whole = [side if len(side) <= MOST_CHARS else part for side, part in ((said, shown), (answered, reply))]
    more = sum(map(len, whole)) - len(shown) - len(reply)
    if whole == [shown, reply] or not worth((1 - PASSAGE_SHARE) * value, more // _TOKEN_CHARS):
        return (brief,)
    full = line(*whole)
    return Form(count(f"{full}\n"), text=full), brief


def line(said: str, answered: str) -> str:
    """Both sides on one line, the answer behind an arrow."""
    sides = escape(f"{said} → {answered}" if said and answered else said or answered)
    return f"- {sides}" if said else f"- → {sides}"


def passage(text: str, asked: tuple[str, ...], chars: int) -> str:
    """The part of a text, of at most this many characters, that has most of the words; the beginning if none is there."""
    places = [
        (match.start(), match[0].lower()) for match in islice(pattern_of(asked).finditer(text), _MOST_PLACES)
    ]
    start = _densest(places, chars * 3 // 4)
    # From the beginning of its sentence, if that is near.
    lead = max(0, start - chars // 4)
    ends = [match.end() for match in _SENTENCE_END.finditer(text, lead, start)]
    start = ends[-1] if ends else (lead if lead == 0 else start)
    shown = cut(text[start:], chars)
    return f"… {shown}" if start else shown


def _densest(places: Sequence[tuple[int, str]], reach: int) -> int:
    """The first place from which most different words follow within that many characters; 0 if there is none."""
    near: dict[str, int] = {}
    best = start = end = 0
    for place, word in places:
        while end < len(places) and places[end][0] - place <= reach:
            near[places[end][1]] = near.get(places[end][1], 0) + 1
            end += 1
        if len(near) > best:
            best, start = len(near), place
        near[word] -= 1
        if not near[word]:
            del near[word]
    return start
