"""How a synopsis, a window or a loaded passage is judged: by what a reader could read off it."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, cast

from benchmarks.judged.case import Case

#: How much of a synopsis a reader sees.
SYNOPSIS_CHARS = 200
#: Words, or single characters of a script without spaces.
_UNIT = re.compile(r"[\u3040-\u9fff]|[^\W\u3040-\u9fff]+")
#: This many units in a row are the result's own.
_RUN = 3


def folded(text: str) -> str:
    """Without case, and every stretch of whitespace as one space."""
    return " ".join(text.casefold().split())


def says(text: str, words: str) -> bool:
    """Whether a text has these words; a number only as a number of its own, not as part of a longer one."""
    if re.fullmatch(r"\d[\d,]*", words):
        return re.search(rf"(?<![\d.])(?<!\d,){re.escape(words)}(?!\d|[.,]\d)", text) is not None
    return folded(words) in folded(text)


def lacking(synopsis: str, case: Case) -> list[tuple[str, ...]]:
    """The groups of the key of which the synopsis has no alternative."""
    shown = synopsis[:SYNOPSIS_CHARS]
    return [group for group in case.key if not any(says(shown, words) for words in group)]


def misleading(synopsis: str, sources: Sequence[str], case: Case) -> list[str]:
    """What the synopsis or its sources say and must not."""
    shown = "\n".join([synopsis[:SYNOPSIS_CHARS], *sources])
    return [words for words in case.wrong if says(shown, words)]


def holds(text: str, answer: str) -> bool:
    """Whether an answer can be read in a text, plain or escaped as JSON."""
    shown = folded(text)
    escaped = (json.dumps(answer)[1:-1], json.dumps(answer, ensure_ascii=False)[1:-1])
    return any(folded(form) in shown for form in (answer, *escaped))


def language_of(question: str) -> str:
    """The language of a question, which may quote a name in the other one."""
    chinese = len(re.findall(r"[\u4e00-\u9fff]", question))
    return "zh" if chinese > len(re.findall(r"[A-Za-z]+", question)) else "en"


def decoded(result: str) -> str:
    """The strings inside a result that is JSON (also JSON inside of JSON), line by line; "" if it is not JSON."""
    return "\n".join(_strings(_parsed(result)))


def _parsed(text: str) -> Any:
    with suppress(ValueError):
        return json.loads(text)
    return None


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if value[:1] in {"{", "["}:
            yield from _strings(_parsed(value))
    elif isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield name
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _strings(inner)


def own_share(shown: str, case: Case) -> float:
    """The share of a text, by characters of its words, that was taken from the result rather than said about it."""
    units = _UNIT.findall(shown.casefold())
    theirs = _runs(case.result)
    own: set[int] = set()
    for start in range(len(units) - _RUN + 1):
        if tuple(units[start : start + _RUN]) in theirs:
            own.update(range(start, start + _RUN))
    total = sum(map(len, units))
    return sum(len(units[n]) for n in own) / total if total else 0.0


@cache
def _runs(result: str) -> frozenset[tuple[str, ...]]:
    """Every few units that follow one another in a result, as it is and decoded."""
    made: set[tuple[str, ...]] = set()
    for text in (result, decoded(result)):
        units = _UNIT.findall(text.casefold())
        made.update(zip(*(units[start:] for start in range(_RUN)), strict=False))
    return frozenset(made)
