"""When a long run fills its window, older tool results leave it, in few large steps.

The decisions are a fold over what happened, in order: speech, calls and results are added up, and when they exceed the
limit, everything but the last results becomes one line that leads back to its page. The passages that the last
steps point to are gathered behind the last of these lines. So the lines before it never change again, and between two
such steps a window only grows at its end, which is what prompt caches need. Nothing but the log decides, so that any
process derives the same window from it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from pagefile.text.passages import render_excerpt, selected
from pagefile.window.chunks import (
    Chunked,
    Span,
    chosen_spans,
    informative_lines,
    interest,
    joined,
    named_sources,
)
from pagefile.window.measure import Count
from pagefile.window.run_items import SPEECH, Exchange, Item, Key, Pageable, Place, is_speech

#: This many of the last results stay whole, if they take no more than this share of what results keep.
WHOLE_RESULTS, WHOLE_SHARE = 3, 0.6
#: The newest stays whole even if it takes `NEWEST_MOST` of the results' budget. With a low water below `LITTLE_STAYS`, its share is
#: the low water, but at least `NEWEST_LEAST`.
NEWEST_LEAST, NEWEST_MOST, LITTLE_STAYS = 0.15, 0.5, 0.4
#: Above the first low water, where almost all stays, the second: the newest pushes out less of the rest.
_MUCH_STAYS, NEWEST_OF_MUCH = 0.8, 0.4
#: Where little stays, a newest result that takes more than this share is shown in part at once, though there would be room for it:
#: whole, it would take the place of the others soon, and leave itself.
CUT_FROM = 0.4
#: The share of what is shown of it that the sources it names may take: a report cites them, whatever was asked.
NEWEST_SOURCES = 0.5
#: Results leave when a window is this full: the rest is for what changes from call to call, such as memories.
HIGH_WATER = 0.875
#: How many of the last messages and calls form the query for the newest result.
_ASKING_ITEMS = 8
#: Between two passages of a result.
GAP = "\n…\n"
#: What a passage of the agent's own words is worth compared with one of a result: it knows what it wrote.
OWN_WEIGHT = 0.3
#: The share of the limit that results may take, however much is said and called.
LEAST_ROOM = 1 / 8
#: Where speech and calls take more than this share of the limit, the oldest calls are only named until they take no more than
#: the second; the newest are never only named, and the names take no more than the last share.
NAMED_FROM, NAMED_TO, NAMED_NEVER, NAMED_MOST = 1.0, 0.8, 8, 0.2
#: Of how many results passages are looked for: what is older counts next to nothing.
_GATHERED = 60


class PagedOut(NamedTuple):
    """What is shown in place of a result that left."""

    text: str
    tokens: int
    #: The passages of it that are in view, there or behind a later line.
    spans: tuple[Span, ...]
    #: In which of the large steps this was decided, counted from 1.
    step: int


@dataclass(slots=True)
class Evictions:
    """The fold: what left so far, and how full the window is."""

    #: Results leave when everything exceeds this many tokens.
    limit: int
    #: And when results alone exceed this many.
    results_limit: float
    #: Afterwards, results take this share of the room that the rest leaves them.
    low_water: float
    #: Above the gathered passages.
    heading: str
    count: Count
    #: Whether the positions of passages are given in Chinese.
    zh: bool = False
    items: list[Item] = field(default_factory=list[Item])
    out: dict[Key, PagedOut] = field(default_factory=dict[Key, PagedOut])
    steps: int = 0
    #: Tokens of what always stays, with the notes of all results; and those that results take beyond their notes.
    fixed: int = 0
    pageable: int = 0
    #: The calls that are only named, with what says so, oldest first; and of how many older ones not even that is shown, by turn.
    named: dict[Place, str] = field(default_factory=dict[Place, str])
    unnamed: Counter[str] = field(default_factory=Counter[str])
    _exchanges: dict[Place, Exchange] = field(default_factory=dict[Place, Exchange])
    _results: dict[Key, tuple[Pageable, Chunked]] = field(default_factory=dict[Key, tuple[Pageable, Chunked]])

    def follows(self, items: Sequence[Item]) -> bool:
        """Whether these begin with the items seen so far."""
        return len(items) >= len(self.items) and all(
            seen == item for seen, item in zip(self.items, items, strict=False)
        )

    def advance(self, items: Iterable[Item]) -> None:
        """What happened next."""
        for item in items:
            self.items.append(item)
            if isinstance(item, Pageable):
                weight = OWN_WEIGHT if item.is_own else 1.0
                self._results[item.key] = item, Chunked(item.text, item.tokens, weight, is_own=item.is_own)
                self.pageable += item.tokens - item.note_tokens
            self.fixed += item.least_tokens
            if item.step is not None:
                self._exchanges.setdefault(item.step, Exchange()).add(item)
            self._name_oldest()
            if self._shows_too_much and not self._newest_cut() and self._overfull and self._can_shrink:
                self._page_out()

    @property
    def _room(self) -> float:
        """For results, beyond their notes.

        Never nothing: where speech and calls alone are too much, the oldest of them leave the window, and the newest result stays.
        """
        return min(self.results_limit, max(LEAST_ROOM * self.limit, self.limit - self.fixed))

    @property
    def _can_shrink(self) -> bool:
        return any(
            key not in self.out or self.out[key].spans for key in self._results if not self._is_last(key)
        )

    def _is_last(self, key: Key) -> bool:
        """Whether the agent wrote it just now: an argument of the newest call, which the result that comes next answers, or a message."""
        newest = next(reversed(self._results))
        return bool(key[2]) and (key == newest or (key[2] != SPEECH and key[:2] == newest[:2]))

    @property
    def _newest_share(self) -> float:
        """The share of the results' budget up to which the newest result stays whole."""
        if self._little_stays:
            return max(NEWEST_LEAST, self.low_water)
        return NEWEST_OF_MUCH if self.low_water > _MUCH_STAYS else NEWEST_MOST

    @property
    def _overfull(self) -> bool:
        return self.pageable > self._room

    @property
    def _shows_too_much(self) -> bool:
        """Whether results are too much, or, where little stays, the newest alone takes so much that others would leave soon."""
        newest = self.items[-1]
        if self._overfull or not self._little_stays or not isinstance(newest, Pageable):
            return self._overfull
        return newest.tokens > CUT_FROM * self._room

    def _newest_cut(self) -> bool:
        """Show the newest result in part, if that is enough: what comes before it stays as it is."""
        result = self.items[-1]
        if not isinstance(result, Pageable) or result.is_own:
            return False
        if result.tokens <= self._newest_share * self._room:
            return False
        excerpt = self._excerpt(result, self.steps + 1)
        if (after := self.pageable - result.tokens + excerpt.tokens) > self._room:
            return False
        self.steps += 1
        self.out[result.key], self.pageable = excerpt, after
        return True

    @property
    def _little_stays(self) -> bool:
        return self.low_water < LITTLE_STAYS

    @property
    def chars(self) -> int:
        """How much text it holds."""
        return sum(len(item.text) for item in self.items)

    def reason(self, key: Key) -> str:
        """Why a result left, and what remains of it."""
        shown, (result, _) = self.out[key], self._results[key]
        kept = sum(end - start for start, end in shown.spans)
        return (
            f"paged out in step {shown.step}, when the results were too much for {self.limit} tokens: "
            f"{kept} of {len(result.text)} characters stay, those that the last calls point to"
        )

    def _name_oldest(self) -> None:
        """Where speech and calls alone are too much, the oldest calls become a line each, so that results have room again."""
        if self.fixed <= NAMED_FROM * self.limit:
            return
        before = len(self.named)
        for place in [*self._exchanges][:-NAMED_NEVER]:
            if self.fixed <= NAMED_TO * self.limit:
                break
            if self._exchanges[place].is_answered:
                self._name(place)
        if len(self.named) == before:
            return
        shown, most = sum(map(self.count, self.named.values())), NAMED_MOST * self.limit
        for place, text in [(place, text) for place, text in self.named.items() if text]:
            if shown <= most:
                break
            shown -= (tokens := self.count(text))
            self.fixed -= tokens
            self.unnamed[place[0]] += 1
            self.named[place] = ""
        # Passages may have been behind a line that is gone.
        self._page_out()

    def _name(self, place: Place) -> None:
        exchange = self._exchanges.pop(place)
        for result in exchange.pages:
            self.pageable += result.note_tokens - self._shown_tokens(result.key)
            self.out[result.key] = PagedOut(result.note, result.note_tokens, (), self.steps)
        self.named[place] = exchange.name
        self.fixed += self.count(exchange.name) - exchange.tokens

    def _page_out(self) -> None:
        self.steps += 1
        room = self.low_water * self._room
        whole = self._stay_whole(room)
        own = {key for key in self._results if self._is_last(key)}
        stay = {*whole, *own}
        newest = next((one for one, _ in reversed(self._results.values()) if not one.is_own), None)
        if newest is not None and newest.key not in whole and newest.key not in self.out:
            self.out[newest.key] = self._excerpt(newest, self.steps)
            stay.add(newest.key)
        self.pageable = sum(self._shown_tokens(key) - self._results[key][0].note_tokens for key in stay)
        older = [pair for key, pair in self._results.items() if key not in stay]
        for result, _ in older[:-_GATHERED]:
            self.out[result.key] = PagedOut(result.note, result.note_tokens, (), self.steps)
        # What the agent wrote just now comes on top: it takes no passage's place.
        written = sum(self._shown_tokens(key) - self._results[key][0].note_tokens for key in own)
        self._gather(older[-_GATHERED:], min(room + written, self._room) - self.pageable, whole)

    def _shown_tokens(self, key: Key) -> int:
        return self.out[key].tokens if key in self.out else self._results[key][0].tokens

    def _excerpt(self, result: Pageable, step: int) -> PagedOut:
        """The newest result, too long to be shown whole: what answers the question and the call, as much as a whole one might take."""
        said = [item.text for item in self.items[-_ASKING_ITEMS:] if is_speech(item)]
        room = int(self._newest_share * self._room) - result.note_tokens
        sources = named_sources([self._results[result.key][1]], NEWEST_SOURCES * room)[0]
        room -= sum(self.count(result.text[start:end]) + 1 for start, end in sources)
        chosen = selected(result.text, "\n".join(said), budget=room, cost=self.count, zh=self.zh)
        spans = [(passage.start, passage.end) for passage in chosen]
        named = [one for one in sources if not any(start <= one[0] and one[1] <= end for start, end in spans)]
        shown = [render_excerpt(chosen, len(result.text), zh=self.zh)] if chosen else []
        text = "\n".join([result.note, *(result.text[start:end] for start, end in named), *shown])
        return PagedOut(text, self.count(text), tuple(joined([*named, *spans])), step)

    def _gather(
        self, older: Sequence[tuple[Pageable, Chunked]], room: float, whole: Mapping[Key, Pageable]
    ) -> None:
        """Older results become one line each; passages of them that the last steps refer to follow the line of the last result."""
        for result, _ in older:
            self.out[result.key] = PagedOut(result.note, result.note_tokens, (), self.steps)
        # The line of a result that is only named is not shown.
        lines = (one for one, _ in reversed(older) if not one.is_own and one.key[:2] not in self.named)
        last = next(lines, None)
        if last is None:
            return
        wanted = interest(item.text for item in reversed(self.items) if is_speech(item))
        known = [line for result in whole.values() for line in informative_lines(result.text)]
        while room > 0:
            spans = chosen_spans([chunked for _, chunked in older], wanted, room, known)
            gathered = [
                line for (one, _), kept in zip(older, spans, strict=True) for line in _passages(one, kept)
            ]
            if not gathered:
                return
            text = "\n".join([last.note, self.heading, *gathered])
            more = self.count(text) - last.note_tokens
            if self.pageable + more <= self._room:
                for (result, _), kept in zip(older, spans, strict=True):
                    self.out[result.key] = self.out[result.key]._replace(spans=tuple(kept))
                shown = self.out[last.key]
                self.out[last.key] = shown._replace(text=text, tokens=last.note_tokens + more)
                self.pageable += more
                return
            # The cost was an estimate: shrink and retry.
            room = room * 0.8 - 1

    def _stay_whole(self, room: float) -> dict[Key, Pageable]:
        """The last results that did not leave before, newest first, as far as there is room; the newest if at all possible."""
        whole: dict[Key, Pageable] = {}
        left = self._newest_share * self._room
        results = (result for result, _ in reversed(self._results.values()) if not result.is_own)
        for result in islice(results, WHOLE_RESULTS):
            if result.key in self.out or result.tokens > left:
                break
            whole[result.key] = result
            left = WHOLE_SHARE * room - sum(one.tokens for one in whole.values())
        return whole


def _passages(result: Pageable, spans: Sequence[Span]) -> list[str]:
    texts = [result.text[start:end].strip("\n") for start, end in spans]
    return [result.title, GAP.join(texts)] if texts else []
