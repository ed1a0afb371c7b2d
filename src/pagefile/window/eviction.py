"""When a long run fills its window, older tool results leave it, in few large steps.

The decisions are a fold over what happened, in order: speech, calls and results are added up, and when they exceed the
limit, everything but the last results becomes one line that leads back to its page. The passages that the last
steps point to are gathered behind the last of these lines. So the lines before it never change again, and between two
such steps a window only grows at its end, which is what prompt caches need. Nothing but the log decides, so that any
process derives the same window from it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeAlias

from pagefile.content import JsonValue, Message, Reasoning, Text, ToolCall, ToolResult
from pagefile.records import Page, Step, Turn
from pagefile.shapes.tool_arguments import large_values
from pagefile.text.passages import render_excerpt, selected
from pagefile.text.sentences import clip
from pagefile.text.tokens import MESSAGE_OVERHEAD
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
from pagefile.window.placeholder import step_note
from pagefile.window.wording import Wording

#: What can leave: its turn, the index of the step, and which value of the call's arguments (a JSON pointer); "" is the result.
Key: TypeAlias = tuple[str, int, str]

#: This many of the last results stay whole, if they take no more than this share of what results keep.
WHOLE_RESULTS, WHOLE_SHARE = 3, 0.6
#: The newest stays whole even if it takes `NEWEST_MOST` of the results' budget. With a low water below `_LITTLE_STAYS`, its share is
#: the low water, but at least `NEWEST_LEAST`.
NEWEST_LEAST, NEWEST_MOST, _LITTLE_STAYS = 0.15, 0.5, 0.4
#: Where little stays, a newest result that takes more than this share is shown in part at once, though there would be room for it:
#: whole, it would take the place of the others soon, and leave itself.
CUT_FROM = 0.4
#: The share of what is shown of it that the sources it names may take: a report cites them, whatever was asked.
NEWEST_SOURCES = 0.5
#: Results leave when a window is this full: the rest is for what changes from call to call, such as memories.
HIGH_WATER = 0.875
#: Where little stays, the guide to placeholders comes when results take this share of the limit, though nothing left yet: it is at
#: the beginning of the prompt, and later a prompt cache would lose more.
GUIDE_FROM = 0.05
#: How many of the last messages and calls form the query for the newest result.
_ASKING_ITEMS = 8
#: What the line of a result shows of its query, which the call above it has in full, and of its synopsis.
_LEFT_SHOWN = (30, 60)
#: How much of a large argument its line shows, and how much of a call is shown above its passages.
_ABOUT_CHARS, _ASKED_CHARS = 40, 60
#: Between two passages of a result.
GAP = "\n…\n"
#: What a passage of the agent's own arguments is worth compared with one of a result: it knows what it wrote.
OWN_WEIGHT = 0.3
#: The share of the limit that results may take, however much is said and called.
LEAST_ROOM = 1 / 8
#: Of how many results passages are looked for: what is older counts next to nothing.
_GATHERED = 60


class Said(NamedTuple):
    """What stays as it is: speech, a call, a result that has no page."""

    #: What it tells about the agent's interest.
    text: str
    tokens: int


class Pageable(NamedTuple):
    """A result, or a large value in the arguments of a call, that can leave."""

    key: Key
    text: str
    tokens: int
    #: The line that remains of it, and its tokens.
    note: str
    note_tokens: int
    #: What its passages are introduced with.
    title: str

    @property
    def is_input(self) -> bool:
        return bool(self.key[2])


Item: TypeAlias = Said | Pageable


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
    #: Tokens of all that can leave, as they came.
    fetched: int = 0
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
                weight = OWN_WEIGHT if item.is_input else 1.0
                self._results[item.key] = item, Chunked(item.text, item.tokens, weight)
                self.fixed += item.note_tokens if item.is_input else MESSAGE_OVERHEAD + item.note_tokens
                self.pageable += item.tokens - item.note_tokens
                self.fetched += item.tokens
            else:
                self.fixed += MESSAGE_OVERHEAD + item.tokens
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
        """Whether it is an argument of the newest call, which the result that comes next answers."""
        return bool(key[2]) and key[:2] == next(reversed(self._results))[:2]

    @property
    def _newest_share(self) -> float:
        """The share of the results' budget up to which the newest result stays whole."""
        return max(NEWEST_LEAST, self.low_water) if self._little_stays else NEWEST_MOST

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
        if not isinstance(result, Pageable) or result.is_input:
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
    def is_filling(self) -> bool:
        """Whether results began to fill the window, where little stays: some will leave soon."""
        return self._little_stays and self.fetched >= GUIDE_FROM * self.limit

    @property
    def _little_stays(self) -> bool:
        return self.low_water < _LITTLE_STAYS

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

    def _page_out(self) -> None:
        self.steps += 1
        room = self.low_water * self._room
        whole = self._stay_whole(room)
        stay = {*whole, *(key for key in self._results if self._is_last(key))}
        newest = next((one for one, _ in reversed(self._results.values()) if not one.is_input), None)
        if newest is not None and newest.key not in whole and newest.key not in self.out:
            self.out[newest.key] = self._excerpt(newest, self.steps)
            stay.add(newest.key)
        self.pageable = sum(self._shown_tokens(key) - self._results[key][0].note_tokens for key in stay)
        older = [pair for key, pair in self._results.items() if key not in stay]
        for result, _ in older[:-_GATHERED]:
            self.out[result.key] = PagedOut(result.note, result.note_tokens, (), self.steps)
        self._gather(older[-_GATHERED:], room - self.pageable, whole)

    def _shown_tokens(self, key: Key) -> int:
        return self.out[key].tokens if key in self.out else self._results[key][0].tokens

    def _excerpt(self, result: Pageable, step: int) -> PagedOut:
        """The newest result, too long to be shown whole: what answers the question and the call, as much as a whole one might take."""
        said = [item.text for item in self.items[-_ASKING_ITEMS:] if isinstance(item, Said) and item.text]
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
        last = next((result for result, _ in reversed(older) if not result.is_input), None)
        if last is None:
            return
        wanted = interest(item.text for item in reversed(self.items) if isinstance(item, Said) and item.text)
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
        results = (result for result, _ in reversed(self._results.values()) if not result.is_input)
        for result in islice(results, WHOLE_RESULTS):
            if result.key in self.out or result.tokens > left:
                break
            whole[result.key] = result
            left = WHOLE_SHARE * room - sum(one.tokens for one in whole.values())
        return whole


def _passages(result: Pageable, spans: Sequence[Span]) -> list[str]:
    texts = [result.text[start:end].strip("\n") for start, end in spans]
    return [result.title, GAP.join(texts)] if texts else []


# -- what happened, in order ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """How turns become items."""

    count: Count
    wording: Wording
    #: The full texts of archived results that are shown in full, by turn and step, with their tokens.
    loaded: Mapping[tuple[str, int], tuple[str, int]]
    #: Values of a call's arguments with more characters than this can leave; 0: none.
    inputs_from: int = 0
    #: The pages that the turns name. An argument leaves only if its page can be loaded: nothing else leads back to it.
    known: Mapping[str, Page] = field(default_factory=dict[str, Page])

    def items(self, turns: Iterable[Turn], running: Turn | None) -> list[Item]:
        done = [item for turn in turns for item in self._of(turn, is_running=False)]
        return done if running is None else [*done, *self._of(running, is_running=True)]

    def _of(self, turn: Turn, *, is_running: bool) -> Iterator[Item]:
        if turn.layout is not None:
            for message in turn.layout:
                yield from self._of_message(turn, message, is_running)
            return
        # Counted when they were written.
        if turn.user:
            yield Said(turn.user, turn.user_tokens)
        for number, step in enumerate(turn.steps):
            yield from self._call((turn.id, number), step)
            yield self._result((turn.id, number), step)
        if turn.assistant:
            yield Said(turn.assistant, turn.assistant_tokens)

    def _of_message(self, turn: Turn, message: Message, is_running: bool) -> Iterator[Item]:
        for part in message.parts:
            match part:
                case Text(text):
                    yield Said(text, self.count(text))
                case Reasoning(text) if is_running:
                    yield Said("", self.count(text))
                case ToolCall(step):
                    yield from self._call((turn.id, step), turn.steps[step])
                case ToolResult(step):
                    yield self._result((turn.id, step), turn.steps[step])
                case _:
                    pass

    def _call(self, place: tuple[str, int], step: Step) -> Iterator[Item]:
        said = "\n".join(strings(step.input))
        inputs = [*self._inputs(place, step)]
        yield Said(said, max(0, step.call_tokens - sum(item.tokens for item in inputs)))
        yield from inputs

    def _inputs(self, place: tuple[str, int], step: Step) -> Iterator[Pageable]:
        """The large values in the arguments that have a page."""
        for pointer, text in large_values(step.input, self.inputs_from).items() if self.inputs_from else ():
            page = self.known.get(uuid := step.input_pages.get(pointer, ""))
            if page is not None and not page.purged:
                note = input_note(uuid, text, self.wording)
                tokens, note_tokens = self.count(text), self.count(note)
                if note_tokens < tokens:
                    title = passage_title(uuid, step)
                    yield Pageable((*place, pointer), text, tokens, note, note_tokens, title)

    def _result(self, place: tuple[str, int], step: Step) -> Item:
        text, tokens = self.loaded.get(place, (step.result, step.result_tokens))
        if step.page and (step.whole or place in self.loaded):
            page, wording = self.known.get(step.page), self.wording
            note = step_note(step, wording, page, words=wording.left, shown=_LEFT_SHOWN)
            if (note_tokens := self.count(note)) < tokens:
                title = passage_title(step.page, step)
                return Pageable((*place, ""), text, tokens, note, note_tokens, title)
        return Said("", tokens)


def input_note(uuid: str, text: str, wording: Wording) -> str:
    """What remains of a large argument in its place: the page, the length and how it begins."""
    about = clip(" ".join(text[: 2 * _ABOUT_CHARS].split()), _ABOUT_CHARS)
    return wording.left_input.format(uuid=uuid, chars=len(text), about=about)


def passage_title(uuid: str, step: Step) -> str:
    """Above passages of a page: the beginning of its uuid, and what was asked."""
    asked = clip(" ".join(" ".join(strings(step.input)).split()), _ASKED_CHARS)
    return f"📎 {uuid[:8]} {step.tool}: {asked}"


def strings(value: JsonValue) -> Iterator[str]:
    """The texts in the arguments of a call."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from strings(inner)
