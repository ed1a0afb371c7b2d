"""Brings archived pages back into a window.

Which pages a window shows (what the running turn fetched or loaded, what stays resident, what was requested) is
decided in `window/`; here they are read, whole or as the passages that answer the question.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import accumulate, takewhile
from typing import NamedTuple, TypeAlias
from uuid import UUID

from pagefile.errors import HandleNotFoundError, InvalidArgumentError, PagefileError, PagePurgedError
from pagefile.lru import Lru
from pagefile.ports import LogView, PageKeeper, PageStore
from pagefile.records import Scope, Step, Turn, WindowRecord
from pagefile.text.outcomes import outcome
from pagefile.text.passages import page_slice, render_excerpt, selected
from pagefile.text.queries import searched
from pagefile.text.synopsis.binary import masked, unmasked
from pagefile.tiers.base import Counter, WindowRequest, off_loop
from pagefile.window import residency
from pagefile.window.candidates import Candidate, Form
from pagefile.window.compile import CUT_TURNS
from pagefile.window.eviction import HIGH_WATER, LITTLE_STAYS, Evictions
from pagefile.window.forms import MOST_NAMED, Text, summary_most
from pagefile.window.measure import Count
from pagefile.window.parts import escape
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL, says_in_view
from pagefile.window.receipt import Window, receipt_from
from pagefile.window.run_items import SPEECH, Source, long_speech
from pagefile.window.wording import WORDINGS, ZH, Language, Wording

#: What these tools return is already archived: it is never archived again.
LOADING_TOOLS = frozenset({LOAD_TOOL, SEARCH_TOOL})
#: The tool by which a model recalls turns, and how our answer to it begins: others may have a tool of the
#: same name.
RECALL_TOOL, SAVE_TOOL, CORRECT_TOOL, RETRACT_TOOL = "recall", "remember", "correct", "retract"
#: Tools of ours: their results say what memory has already.
_OWN_TOOLS = LOADING_TOOLS | {RECALL_TOOL, SAVE_TOOL, CORRECT_TOOL, RETRACT_TOOL}
_RECALLED = re.compile(r"(?:- )?\[\d{4}-\d\d-\d\d[\] ]")
#: The arguments of the reading tools.
_ARGUMENTS: Mapping[str, Sequence[str]] = {
    LOAD_TOOL: ("uuid", "query", "offset", "limit"),
    SEARCH_TOOL: ("query", "limit"),
}
#: How answers begin that load nothing.
_EXCUSES = tuple(
    wording.answers[name].partition("{")[0]
    for wording in WORDINGS.values()
    for name in ("bad_limit", "unknown_argument", "window_full", "unavailable")
)
#: A number as a model writes it in text.
_DIGITS = re.compile(r"[+-]?[0-9]{1,18}")
#: Texts of pages cached between the calls of a tool loop, in characters.
CACHE_CHARS = 16_000_000
#: The forms of a result in a receipt that are all of it.
_WHOLE = frozenset({"full", "loaded"})
#: A shorter excerpt would say nothing.
LEAST_EXCERPT_TOKENS = 200
#: Most tokens of the passages that answer a query, unless a limit is given.
_ANSWER_TOKENS = 1000
#: From this many characters on, processing a text would block the event loop.
THREAD_FROM_CHARS = 20_000


class Part(NamedTuple):
    """A part of a page as a model reads it, and the offset to read on from."""

    text: str
    read_on: int


async def readable(text: str) -> str:
    """A page as it is shown whole: without the base64 in it."""
    return unmasked(await off_loop(partial(masked, text), len(text), THREAD_FROM_CHARS))


async def excerpt(
    text: str,
    query: str,
    budget_tokens: int,
    count: Count,
    wording: Wording,
    *,
    start: int = 0,
    limit: int | None = None,
    implied: bool = False,
) -> Part:
    """The passages of a text that answer a query, in order, with their positions, within a budget.

    They are sought from `start` on; `limit` bounds the characters of the answer. That nothing matches is said, unless the
    question was `implied`. How a run of tests ended comes before
    anything that the words of a question find.
    """
    nothing_matched, zh = wording.answers["nothing_matched"] + "\n", wording is ZH
    text = await off_loop(partial(masked, text), len(text), THREAD_FROM_CHARS)
    rest = text[start:]

    def cost(written: str) -> int:
        shown = unmasked(written)
        chars = 0 if limit is None else -(-len(shown) * budget_tokens // limit)
        return max(count(shown), chars)

    def choose() -> Part:
        ended = "".join(f"{line}\n" for line in _fitting_lines(outcome(rest), budget_tokens // 3, cost))
        budget = budget_tokens - (cost(ended) if ended else 0)
        chosen = selected(rest, query, budget=budget, cost=cost, zh=zh)
        if [(passage.start, passage.end) for passage in chosen] == [(0, len(text))]:
            return Part(text, len(text))
        note = "" if implied or chosen.answers or not query.strip() else nothing_matched
        if note:
            chosen = selected(rest, query, budget=budget - cost(note), cost=cost, zh=zh)
        if not chosen and ended:
            return Part(ended, start)
        if not chosen:
            # There is hardly room for a word, and none for its position.
            begin, words = (start + place for place in chosen.found_at)
            part = _from(text, begin, limit, budget_tokens, count)
            return part if words < part.read_on else _from(text, words, limit, budget_tokens, count)
        placed = [replace(one, start=one.start + start, end=one.end + start) for one in chosen]
        # A caller that asked for the page, not for passages, continues from the first gap.
        read_on = (implied and chosen.gap) or chosen.read_on
        return Part(ended + note + render_excerpt(placed, len(text), zh=zh), start + read_on)

    chosen = await off_loop(choose, len(text), THREAD_FROM_CHARS)
    return chosen._replace(text=unmasked(chosen.text))


def _fitting_lines(lines: Sequence[str], budget: int, cost: Count) -> list[str]:
    """The lines that fit into a budget: the last first, which have the counts."""
    spent = accumulate(cost(f"{line}\n") for line in reversed(lines))
    fitting = sum(1 for _ in takewhile(lambda tokens: tokens <= budget, spent))
    return list(lines[len(lines) - fitting :])


async def part_of(
    text: str, asked: "Asked", budget_tokens: int, count: Count, wording: Wording, *, implied: bool = False
) -> Part:
    """The part of a page that a call asks for, within a budget; for an offset behind its end, how long it is."""
    start = asked.offset or 0
    if start >= len(text):
        return Part(wording.answers["behind_end"].format(offset=start, chars=len(text)), start)
    if asked.query or not asked.in_part:
        query, limit = searched(asked.query or ""), asked.limit
        return await excerpt(
            text, query, budget_tokens, count, wording, start=start, limit=limit, implied=implied
        )
    return _from(text, start, asked.limit, budget_tokens, count)


def _from(text: str, offset: int, limit: int | None, budget_tokens: int, count: Count) -> Part:
    part = fitting_slice(text, offset, limit, budget_tokens, count)
    return Part(part, offset + len(part))


def is_quoted(tool: str, result: str) -> bool:
    """Whether a result is an answer of our own reading tools: archived, it would be found instead of what it quotes."""
    return tool in LOADING_TOOLS or (tool == RECALL_TOOL and _RECALLED.match(result) is not None)


def unpaged_results(turn: Turn) -> str:
    """What tools returned in a turn and no page has: results so short that only the turn brings them back."""
    return " ".join(
        f"[{step.tool}: {' '.join(step.result.split())}]"
        for step in turn.steps
        if step.page is None and step.tool not in _OWN_TOOLS and step.result.strip()
    )


def arguments_of(step: Step | None) -> Mapping[str, object]:
    """The arguments of a call of our own tools; none for any other step."""
    if step is None or step.tool not in LOADING_TOOLS or not isinstance(step.input, Mapping):
        return {}
    return step.input


_UUID = re.compile(r"(?<![0-9A-Za-z-])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Za-z-])")
#: A whole placeholder fits into it.
_COPIED_CHARS = 2_000


def checked_uuid(uuid: object) -> str:
    """A well-formed uuid, alone or in what a model copied with it, or an error that says where to find one."""
    text = str(uuid).strip()
    found = {one.lower() for one in _UUID.findall(text[:_COPIED_CHARS])}
    try:
        return found.pop() if len(found) == 1 else str(UUID(text))
    except ValueError as error:
        raise HandleNotFoundError(
            f"{str(uuid)[:80]!r} is not a uuid: copy it from the placeholder, which begins with 📎."
        ) from error


def explained(error: HandleNotFoundError, uuid: object, wording: Wording) -> str:
    """What the model reads instead of a page: an explanation it can act on."""
    if isinstance(error, PagePurgedError) and error.left:
        return wording.answers["purged"].format(**error.left)
    try:
        return wording.answers["not_found"].format(uuid=checked_uuid(uuid))
    except HandleNotFoundError:
        return wording.answers["malformed"].format(uuid=repr(str(uuid)[:80]))


class Asked(NamedTuple):
    """Which part of a page a call asks for. Offset and limit are characters."""

    query: str = ""
    offset: int | None = None
    limit: int | None = None

    @property
    def in_part(self) -> bool:
        return self != Asked()

    def room(self, tokens: int) -> int:
        """How many tokens its answer may take, of those available: a query wants what answers it, and is told how to read on."""
        return min(tokens, _ANSWER_TOKENS) if self.query and self.limit is None else tokens

    @classmethod
    def by(cls, arguments: Mapping[str, object]) -> "Asked":
        """What a model asks for; numbers may be written as text, and what makes no sense (`complaint`) is ignored."""
        query = arguments.get("query")
        offset, limit = _number(arguments.get("offset")), _number(arguments.get("limit"))
        return cls(
            query.strip() if isinstance(query, str) else "",
            None if offset is None else max(0, offset),
            limit if limit and limit > 0 else None,
        )


def complaint(tool: str, arguments: Mapping[str, object], wording: Wording) -> str | None:
    """What is wrong with the arguments of a call of our tools, in words; None if nothing is."""
    query = arguments.get("query")
    if query is not None and not isinstance(query, str):
        return wording.answers["bad_query"].format(given=repr(query)[:80])
    for name, least in (("offset", 0), ("limit", 1)):
        value = arguments.get(name)
        number = _number(value)
        if value not in (None, "") and (number is None or number < least):
            return wording.answers[f"bad_{name}"].format(given=repr(value)[:80])
    known = _ARGUMENTS[tool]
    if strange := [name for name, value in arguments.items() if name not in known and value is not None]:
        named = wording.comma.join(known)
        return wording.answers["unknown_argument"].format(name=strange[0][:80], known=named)
    if tool == LOAD_TOOL and arguments.get("uuid") is None:
        return wording.answers["missing_uuid"]
    return None


def loaded_nothing(answer: str) -> bool:
    """Whether an answer of the load tool is only words of ours, and no part of a page."""
    return answer.startswith(_EXCUSES) or says_in_view(answer)


def _number(value: object) -> int | None:
    """A whole number, however a model writes it."""
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def fitting_slice(text: str, offset: int, limit: int | None, budget_tokens: int, count: Count) -> str:
    """A part as `slice_of` gives it, shortened until it fits a budget."""
    part = slice_of(text, offset, limit)
    while len(part) > 1 and (tokens := count(part)) > budget_tokens:
        part = slice_of(text, offset, max(1, len(part) * budget_tokens // tokens - 1))
    return part


def behind_the_end(offset: int, text: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"offset is {offset}, the page has {len(text)} characters.")


def slice_of(text: str, offset: int, limit: int | None) -> str:
    """At most `limit` characters from `offset`, without splitting an image, a table, a code block or a value.

    Reading on from `offset + len(result)` tiles the text exactly.
    """
    if offset > len(text):
        raise behind_the_end(offset, text)
    if limit is None:
        return text[offset:]
    _, end = page_slice(text, offset, limit)
    return text[offset:end]


# -- pages in a window -------------------------------------------------------------------------------------------------

#: A conversation, the limit, and the wording.
_FoldKey: TypeAlias = tuple[Scope, int, str]
#: The page, what is asked for and whether only implied, the budget, and the language of what is written around the passages.
_PartKey: TypeAlias = "tuple[Scope, str, Asked, bool, int, Language]"


@dataclass(eq=False, repr=False)
class Paging:
    """Reads the pages that a window shows."""

    pages: PageStore
    keeper: PageKeeper
    counter: Counter
    strategy: residency.Strategy
    #: Results take at most this many tokens; 0: as many as fit.
    running_tokens: int
    #: After results left, the others take this share of the room for results.
    low_water: float
    #: Values in the arguments of calls with more characters than this can leave; 0: none.
    inputs_from: int
    #: Finds the pages of a conversation that have something in common with a question, best first.
    find: Callable[[Scope, str], Awaitable[Sequence[residency.Relevance]]]
    #: Within how many turns two loads make a page stay; 0: it never does.
    resident_turns: int

    def __post_init__(self) -> None:
        # Keyed by scope as well: a uuid alone grants no access, and two tenants may have the same one.
        self._texts: Lru[tuple[Scope, str], tuple[str, int]] = Lru(CACHE_CHARS, lambda kept: len(kept[0]))
        self._evictions: Lru[_FoldKey, Evictions] = Lru(CACHE_CHARS, lambda kept: kept.chars)
        self._parts: Lru[_PartKey, tuple[str, int]] = Lru(64)

    async def bring(self, request: WindowRequest) -> Sequence[Candidate]:
        """Add what this window shows of the archive to the request, and return pages whose turn is not in the window.

        What cannot be read is noted and stays a placeholder.
        """
        view = request.view
        known = await self.keeper.named(request.scope, sorted(named)) if (named := _named(view)) else ()
        request.known_pages.update({page.uuid: page for page in known})
        wanted = await self._wanted(request)
        steps = () if view.open_turn is None else view.open_turn.steps
        running = _newest_whole({n: step for n, step in enumerate(steps) if step.page and not step.whole})
        share = max(LEAST_EXCERPT_TOKENS, request.window_tokens // (2 * max(1, len(wanted) + len(running))))
        held = {step.page for step in running.values()}
        wanted = [uuid for uuid in wanted if uuid not in held]
        earlier = {uuid: await self._shown(request, uuid, None, share) for uuid in wanted}
        current = {n: await self._shown(request, step.page or "", step, share) for n, step in running.items()}
        await self._let_leave(request, current)
        # Only once everything is read: a window gets all of it or, if the tier fails, none.
        request.running.update(current)
        places = _places(view)
        elsewhere: list[Candidate] = []
        for rank, (uuid, texts) in enumerate(earlier.items()):
            if texts and uuid in places:
                request.pages[places[uuid]] = texts
            elif texts:
                # In the memory block, escaped like everything there.
                mark = request.wording.back.format(uuid=uuid)
                shown = [(text.name, f"- {mark}\n{escape(text.text)}") for text in texts]
                forms = tuple(Form(self.counter.count(text), text=text, name=name) for name, text in shown)
                elsewhere.append(Candidate(f"page:{uuid}", "loaded", forms, rank))
        return elsewhere

    async def _let_leave(self, request: WindowRequest, current: Mapping[int, Sequence[Text]]) -> None:
        """Page out what is too much for this window."""
        # The guide is at the beginning of the prompt: where something will leave soon, a prompt cache loses least if it is there at once.
        request.leaving.is_filling = self.low_water < LITTLE_STAYS
        view, turn = request.view, request.view.open_turn
        turns = in_blocks(view)
        shown = (*turns, *([turn] if turn else ()))
        if not any(step.pages for one in shown for step in one.steps) and not self._speaks_at_length(shown):
            return
        loaded = {(turn.id, n): texts[0][1:] for n, texts in current.items() if turn is not None and texts}
        source = Source(self.counter.count, request.wording, loaded, self.inputs_from, request.known_pages)
        items = source.items(turns, turn)
        stays = request.instructions_tokens + summary_most(view.checkpoint, request.window_tokens)
        room = request.window_tokens - stays
        limit = int(HIGH_WATER * room)
        key = request.scope, limit, request.wording.gathered
        # Removed while in use, possibly by a thread: a concurrent caller starts from the log.
        folded = self._evictions.pop(key, None)
        if folded is None or not folded.follows(items):
            folded = Evictions(
                limit,
                self.running_tokens or limit,
                self.low_water,
                request.wording.gathered,
                self.counter.count,
                zh=request.wording is ZH,
            )
        coming = items[len(folded.items) :]
        await off_loop(
            partial(folded.advance, coming), sum(len(item.text) for item in coming), THREAD_FROM_CHARS
        )
        self._evictions[key] = folded
        leaving = request.leaving
        leaving.pageable_tokens = folded.pageable
        for (turn_id, number, pointer), out in folded.out.items():
            place, reason = (turn_id, number), folded.reason((turn_id, number, pointer))
            if pointer == SPEECH:
                leaving.speech[place], leaving.reasons[turn_id, ~number] = out.text, reason
            elif pointer:
                leaving.inputs.setdefault(place, {})[pointer] = out.text
                leaving.reasons.setdefault(place, reason)
            else:
                leaving.remains[place] = Text("paged out", out.text, out.tokens)
                leaving.reasons[place] = reason
        for place, line in folded.named.items():
            leaving.named[place] = line
            leaving.reasons[place] = f"only named, since speech and calls took too much of {limit} tokens"

    def _speaks_at_length(self, turns: Iterable[Turn]) -> bool:
        if not self.inputs_from:
            return False
        return any(long_speech(one, self.inputs_from) for turn in turns for one in turn.layout or ())

    async def _wanted(self, request: WindowRequest) -> list[str]:
        """Requested pages, then those picked by the strategy, then resident ones."""
        view = request.view
        paged = list(_paged(view))
        loads = [residency.Use(at, page) for at, _, _, step, page in paged if step.tool in LOADING_TOOLS]
        sizes = {page: step.page_tokens for _, _, _, step, page in paged}
        pinned: set[str] = set()
        if sizes or (view.checkpoint is not None and view.checkpoint.archive_refs):
            for page in await self.keeper.pinned(request.scope):
                pinned.add(page.uuid)
                sizes[page.uuid] = page.tokens
            request.traces["pinned"] = sorted(pinned)
        picked = await self._picked(request)
        most, now = request.window_tokens // residency.WORKING_SET_SHARE, len(view.turns)
        limits = {"reuse_turns": self.resident_turns, "limit_tokens": most}
        resident = residency.resident_pages(loads, now, pinned=pinned, tokens=sizes, **limits)
        return list(dict.fromkeys([*request.load, *picked, *resident]))

    async def _picked(self, request: WindowRequest) -> list[str]:
        """What the strategy loads for the question: pages of this conversation, also those before its checkpoint."""
        question = request.searched
        if self.strategy == "model" or not question.strip():
            return []
        subject = residency.subject(question)
        found = await self.find(request.scope, subject) if subject else ()
        newest = next((page.uuid for page in reversed(request.known_pages.values()) if not page.purged), None)
        return residency.pages_to_load(self.strategy, question, found, newest)

    async def _shown(
        self, request: WindowRequest, uuid: str, step: Step | None, share: int
    ) -> tuple[Text, ...]:
        """A page as it may appear in this window, from whole to a few passages; empty if it cannot be read."""
        asked = Asked.by(arguments_of(step))
        try:
            text, tokens = await self._readable(request.scope, uuid)
            half = request.window_tokens // 2
            if asked.in_part:
                # The same part as `call_tool` returns; passages share the window with other pages.
                name, size = ("passages", asked.room(share)) if asked.query else ("part", half)
                return (Text(name, *await self._part(request, uuid, asked, size)),)
            if step is not None and step.tool not in LOADING_TOOLS:
                # What it is too long for leaves like any other result.
                return (Text("loaded", text, tokens),)
            forms: list[Text] = []
            # A page requested by name is shown whole up to half of the window, as in `call_tool`.
            most = request.window_tokens if step is None else half
            if tokens <= most:
                forms.append(Text("loaded", text, tokens))
            if tokens > share or not forms:
                question = Asked(request.searched)
                forms.append(
                    Text("passages", *await self._part(request, uuid, question, share, implied=True))
                )
            return tuple(forms)
        except PagefileError as error:
            request.note(f"page {uuid} stays a placeholder: {error}")
            return ()

    async def _text(self, scope: Scope, uuid: str) -> tuple[str, int]:
        if (kept := self._texts.get((scope, uuid))) is not None:
            with suppress(HandleNotFoundError):
                if (await self.keeper.page(scope, uuid)).purged is None:
                    return kept
            # Another process has purged or erased it since; loading it says which.
            self._texts.pop((scope, uuid), None)
            self._parts.clear()
        page, text = await self.pages.load(scope, uuid)
        tokens = page.tokens if page.counter == self.counter.name else self.counter.count(text)
        self._texts[scope, uuid] = text, tokens
        return text, tokens

    async def _readable(self, scope: Scope, uuid: str) -> tuple[str, int]:
        text, tokens = await self._text(scope, uuid)
        shown = await readable(text)
        return (text, tokens) if shown == text else (shown, self.counter.count(shown))

    async def _part(
        self, request: WindowRequest, uuid: str, asked: Asked, budget: int, *, implied: bool = False
    ) -> tuple[str, int]:
        key = request.scope, uuid, asked, implied, budget, request.language
        if key not in self._parts:
            text, _ = await self._text(request.scope, uuid)
            count = self.counter.count
            chosen = await part_of(text, asked, budget, count, request.wording, implied=implied)
            self._parts[key] = chosen.text, count(chosen.text)
        return self._parts[key]

    def forget(self) -> None:
        self._texts.clear()
        self._parts.clear()
        self._evictions.clear()


def in_blocks(view: LogView) -> Sequence[Turn]:
    """The turns that were read; if there are more, from where a window may begin, so that what follows is decided alike."""
    if len(view.turns) == view.head.live_turns:
        return view.turns
    first = next((n for n, turn in enumerate(view.turns) if (turn.seq or 0) % CUT_TURNS == 0), 0)
    return view.turns[first:]


class InView(NamedTuple):
    """Which pages a window showed whole, for which open turn."""

    window: str
    at: datetime
    turn: str | None
    pages: frozenset[str]


def pages_in_view(view: LogView, window: Window, at: datetime) -> InView:
    """What a window shows whole."""
    running = view.open_turn
    turns = {turn.id: turn for turn in (*view.turns, *([] if running is None else [running]))}
    parts = window.parts
    shown = [*parts.turns, *([] if parts.current is None else [parts.current])]
    whole = {
        step.page
        for one in shown
        for number, result in one.steps.items()
        if (step := turns[one.turn_id].steps[number]).page and len(result.result) == step.page_chars
    }
    return InView(window.id, at, running and running.id, frozenset(filter(None, whole)))


def was_whole(call: WindowRecord, turn: Turn, uuid: str) -> bool:
    """Whether a recorded window of an open turn showed a page whole, at the step that fetched or loaded it."""
    steps = {f"{turn.id}/step/{n}" for n, step in enumerate(turn.steps) if step.page == uuid}
    return call.turn_id == turn.id and any(
        one.kept and one.id in steps and one.form in _WHOLE for one in receipt_from(call.receipt)
    )


def _newest_whole(steps: Mapping[int, Step]) -> dict[int, Step]:
    """Steps of the running turn with a page, without those whose whole page a later step brings again."""
    whole = {step.page: n for n, step in steps.items() if not Asked.by(arguments_of(step)).in_part}
    again = {n for n, step in steps.items() if whole.get(step.page, n) > n}
    return {n: step for n, step in steps.items() if n not in again}


def _paged(view: LogView) -> Iterator[tuple[int, Turn, int, Step, str]]:
    """The steps of earlier turns that have a page: number of the turn, turn, index of the step, step, page."""
    for at, turn in enumerate(view.turns):
        for number, step in enumerate(turn.steps):
            if step.page:
                yield at, turn, number, step, step.page


def _named(view: LogView) -> set[str]:
    """The pages that a window may name."""
    running = () if view.open_turn is None else view.open_turn.steps
    refs = () if view.checkpoint is None else view.checkpoint.archive_refs[-MOST_NAMED:]
    steps = [*(step for turn in view.turns for step in turn.steps), *running]
    return {uuid for step in steps for uuid in step.pages}.union(refs)


def _places(view: LogView) -> dict[str, tuple[str, int]]:
    """Where each page is shown, once: at the step that fetched it, else at the newest one that loaded it."""
    fetched: dict[str, tuple[str, int]] = {}
    loaded: dict[str, tuple[str, int]] = {}
    for _, turn, number, step, page in _paged(view):
        (loaded if step.tool in LOADING_TOOLS else fetched)[page] = turn.id, number
    return loaded | fetched
