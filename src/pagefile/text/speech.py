"""How something is said: by whom, whether it is only a question, and which texts carry its meaning.

An index keeps nothing of a turn but its terms, so its speaker, and that it asks or wants something from now on, are stored
among them, as marks that cannot be terms of a text. Of a turn both sides are embedded, and its vector is their mean: joined into one text they
retrieve less, and so does either alone (`docs/decisions/0012-recall-fusion.md`).
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from pagefile.arrays import Float32s, np
from pagefile.text.sentences import is_cjk
from pagefile.text.standing import lasts
from pagefile.text.words import is_trivial, terms

#: Mark a turn that ends with a question, and one that says what is wanted from now on.
_ASKS, _LASTS = "?", "!"
_SPEAKER = ":"
_PREFIX = re.compile(r"\s*([^\W\d_][\w.'-]*(?: [\w.'-]+){0,2})(?::(?=\s)|：)")
_MAX_NAME_CHARS = 30


class Speech(NamedTuple):
    """The terms of a turn without its marks, separated by spaces, and what the marks say."""

    words: str
    speaker: str | None
    asks: bool
    lasts: bool = False


def said_terms(text: str) -> list[str]:
    """The terms of what was said, marking a speaker's name before it (`Mia: …`, 李雷：…), a wish that lasts and a question at its end."""
    found = terms(text)
    if (prefix := _PREFIX.match(text)) and len(prefix[1]) <= _MAX_NAME_CHARS:
        found.append(prefix[1].casefold().replace(" ", "_") + _SPEAKER)
    if lasts(text):
        found.append(_LASTS)
    if text.rstrip().endswith(("?", "？")):
        found.append(_ASKS)
    return found


def speech(marked: str) -> Speech:
    """The inverse of `said_terms`, joined by spaces; terms without marks are just words."""
    words, asks = _without(marked, _ASKS)
    words, wants = _without(words, _LASTS)
    speaker = None
    if words.endswith(_SPEAKER):
        words, _, last = words.rpartition(" ")
        speaker = last[:-1].replace("_", " ")
    return Speech(words, speaker, asks, wants)


def _without(words: str, mark: str) -> tuple[str, bool]:
    """The words without a mark at their end, and whether it was there."""
    if not words.endswith(mark):
        return words, False
    return words[: -len(mark)].rstrip(), True


def named(question: str, names: Iterable[str]) -> set[str]:
    """The names (in lower case) that a question mentions."""
    return {name for name in names if _as_name(name).search(question)}


def in_first_person(question: str, names: Collection[str]) -> str:
    """The question as the people it names would ask it about themselves.

    What they said is in the first person: "I painted a sunrise" is closer to "What did I paint?" than to
    "What did Mia paint?", which is close to everything Mia said.
    """
    for name in sorted(names, key=len, reverse=True):
        own = "我" if is_cjk(name[0]) else "I"
        question = _as_name(name).sub(lambda match, own=own: "my" if match["own"] else own, question)
    return question


def _as_name(name: str) -> re.Pattern[str]:
    """Matches a name: Chinese anywhere, others as a capitalised word."""
    written = re.escape(name)
    if is_cjk(name[0]):
        return re.compile(f"{written}(?P<own>)")
    return re.compile(rf"\b(?=[^\W\d_a-z])(?i:{written})\b(?P<own>['’]s\b)?")


#: The topic of a side is usually at its beginning.
SAID_CHARS = 500
ANSWER_CHARS = 300


def embedded_texts(user: str | None, assistant: str | None) -> tuple[str, ...]:
    """The texts whose vectors make up that of a turn: what the user said and the head of the answer.

    "Noted." says nothing: it would make every turn with such an answer mean a little less of what was said.
    """
    said, answered = (user or "").strip(), (assistant or "").strip()
    if said and is_trivial(answered):
        answered = ""
    return tuple(text for text in (said[:SAID_CHARS], answered[:ANSWER_CHARS]) if text)


def question_text(question: str) -> str:
    """The text whose vector is that of a question."""
    return question.strip()[:SAID_CHARS]


def blended(vectors: Sequence[Sequence[float] | Float32s]) -> Float32s:
    """The normalised mean of unit-length vectors; zeros for zeros."""
    mean = np.mean(np.asarray(vectors, dtype=np.float32), axis=0)
    length = float(np.linalg.norm(mean))
    return (mean / length if length else mean).astype(np.float32)
