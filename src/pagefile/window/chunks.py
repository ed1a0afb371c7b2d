"""Which passages of older tool results stay when most of their text leaves: those that the agent's last steps point to.

A result is cut at line ends into chunks. A chunk is worth the words it shares with what the agent called and
said last, rare words more than common ones, recent steps more than older ones; per character, so that many short
chunks beat a few long ones; and less the older its result is. Lines that are in view already are not kept again.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import NamedTuple

Span = tuple[int, int]

#: The characters of a chunk, about. Shorter ones tear what belongs together, longer ones keep too much beside it.
CHUNK_CHARS = 400
#: How many of the last steps are considered, and what each is worth compared with the one after it.
STEPS_BACK, STEP_DECAY = 30, 0.95
#: What a result is worth compared with the one after it.
RESULT_DECAY = 0.97
#: From this share of known lines on, a chunk says nothing new.
KNOWN_SHARE = 0.8
#: A chunk that shares no word is worth this much: what room is left goes to the newest results.
_UNRELATED = 1e-6
#: The line above the passages of a result, about.
_TITLE_TOKENS = 30
#: Sources that results name (what a report cites) come before other passages, within this share of the room, and
#: this many of a result: more is a list of links.
SOURCE_SHARE, MOST_SOURCES = 0.5, 10
_STRING = r'"(?:[^"\\\n]|\\.){1,200}"'
_ADDRESS = r'"https?://[^"\s]{4,300}"'
_SOURCE = re.compile(
    rf'"(?:title|name)"\s*:\s*{_STRING}\s*,\s*"(?:url|link|href)"\s*:\s*{_ADDRESS}'
    rf'|"image_url"\s*:\s*{_ADDRESS}(?:\s*,\s*"image_description"\s*:\s*{_STRING})?'
)
#: How the agent itself cites them: a link in Markdown.
_CITED = re.compile(r"!?\[[^\]\n]{0,200}\]\(https?://[^\s()]{4,300}\)")
#: Shorter lines (a bracket, a blank) say nothing.
_LINE_CHARS = 4
_LINE_END = re.compile(r"\n|\\n")
_WORD = re.compile(r"[^\W\d_\u3040-\u9fff][^\W\u3040-\u9fff]{2,63}|[\u3040-\u9fff]+")


def words(text: str) -> frozenset[str]:
    """The identifiers and words of a text, as they are written; a run of Chinese gives its pairs of characters."""
    found = set(_WORD.findall(_unescape(text)))
    runs = [word for word in found if "\u3040" <= word[0] <= "\u9fff"]
    found.difference_update(runs)
    found.update(a + b for run in runs for a, b in pairwise(run))
    return frozenset(found)


def _unescape(text: str) -> str:
    """Strings of JSON have their line ends escaped: without this, a line would begin with the letter of the escape."""
    return text.replace("\\n", "\n").replace("\\t", "\t") if "\\" in text else text


def chunk_spans(text: str, size: int = CHUNK_CHARS) -> list[Span]:
    """The text cut at line ends into chunks of about `size` characters; a long line is cut where it must be."""
    spans: list[Span] = []
    start = 0
    while start < len(text):
        end = start + size
        if end < len(text):
            before = _line_ends(text, start + size // 3, end)
            after = _line_ends(text, end, end + size)
            end = max(before, default=min(after, default=end))
        spans.append((start, min(end, len(text))))
        start = end
    return spans


def _line_ends(text: str, start: int, end: int) -> list[int]:
    """Where lines end between two places, those in strings of JSON, too."""
    return [found.end() for found in _LINE_END.finditer(text, start, end)]


class Chunked:
    """A result and its chunks, which are worked out once."""

    def __init__(self, text: str, tokens: int, weight: float = 1.0, *, is_own: bool = False) -> None:
        self.text = text
        #: Whether the agent wrote it.
        self.is_own = is_own
        #: What a word in it is worth compared with others.
        self.weight = weight
        self._tokens_per_char = tokens / max(1, len(text))

    @cached_property
    def spans(self) -> list[Span]:
        return chunk_spans(self.text)

    @cached_property
    def sources(self) -> list[Span]:
        """Where it names a source: a title with its address, an image with its description; in the agent's own words, all that it cites."""
        if self.is_own:
            return [found.span() for found in _CITED.finditer(self.text)]
        return [found.span() for found in islice(_SOURCE.finditer(self.text), MOST_SOURCES)]

    @cached_property
    def words(self) -> list[frozenset[str]]:
        return [words(self.text[start:end]) for start, end in self.spans]

    def tokens(self, span: Span) -> float:
        """About as many tokens as these characters have."""
        return (span[1] - span[0]) * self._tokens_per_char + 1

    def lines(self, span: Span) -> list[str]:
        return informative_lines(self.text[span[0] : span[1]])


def informative_lines(text: str) -> list[str]:
    """The lines of a text that say something, without their indents."""
    return [line for raw in _LINE_END.split(text) if len(line := raw.strip()) >= _LINE_CHARS]


class _Valued(NamedTuple):
    value: float
    #: 0 is the newest result.
    age: int
    span: Span


def interest(said: Iterable[str]) -> dict[str, float]:
    """What the last steps are about: their words, by weight; `said` is given newest first."""
    wanted: dict[str, float] = {}
    weight = 1.0
    for _, text in zip(range(STEPS_BACK), said, strict=False):
        for word in words(text):
            wanted.setdefault(word, weight)
        weight *= STEP_DECAY
    return wanted


def chosen_spans(
    results: Sequence[Chunked], wanted: Mapping[str, float], room: float, known: Iterable[str] = ()
) -> list[list[Span]]:
    """What stays of each result (given oldest first) within a number of tokens; `known` lines are in view."""
    kept = named_sources(results, SOURCE_SHARE * room)
    room -= sum(result.tokens(span) for result, spans in zip(results, kept, strict=True) for span in spans)
    seen = set(known)
    for _, age, span in sorted(_valued(results, wanted), key=lambda one: (-one.value, one.age, one.span)):
        result = results[-1 - age]
        cost = result.tokens(span) + (0 if kept[-1 - age] else _TITLE_TOKENS)
        if cost > room:
            continue
        lines = result.lines(span)
        if not lines or sum(line in seen for line in lines) >= KNOWN_SHARE * len(lines):
            continue
        seen.update(lines)
        room -= cost
        kept[-1 - age].append(span)
    return [joined(spans) for spans in kept]


def named_sources(results: Sequence[Chunked], room: float) -> list[list[Span]]:
    """The sources that results name, each once: those that the agent cited first, then those of the newest results."""
    kept: list[list[Span]] = [[] for _ in results]
    seen: set[str] = set()
    newest_first = zip(reversed(results), reversed(kept), strict=True)
    for result, spans in sorted(newest_first, key=lambda one: not one[0].is_own):
        for start, end in result.sources:
            source, cost = result.text[start:end], result.tokens((start, end))
            if source in seen:
                continue
            if cost > room:
                return kept
            seen.add(source)
            room -= cost
            spans.append((start, end))
    return kept


def _valued(results: Sequence[Chunked], wanted: Mapping[str, float]) -> Iterable[_Valued]:
    common = Counter(word for result in results for chunk in result.words for word in chunk if word in wanted)
    chunks = sum(len(result.spans) for result in results)
    worth = {word: wanted[word] * math.log(1 + chunks / (1 + n)) for word, n in common.items()}
    for age, result in enumerate(reversed(results)):
        decay = result.weight * RESULT_DECAY**age
        for span, chunk in zip(result.spans, result.words, strict=True):
            shared = math.fsum(worth[word] for word in chunk if word in worth) or _UNRELATED
            yield _Valued(shared * decay / math.sqrt(span[1] - span[0]), age, span)


def joined(spans: Iterable[Span]) -> list[Span]:
    """In order; what touches or overlaps is one."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and joined[-1][1] >= start:
            before = joined.pop()
            joined.append((before[0], max(before[1], end)))
        else:
            joined.append((start, end))
    return joined
