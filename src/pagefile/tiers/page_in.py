"""Finds archived pages, and brings them back into a window.

Which pages a window shows (what the running turn fetched or loaded, what stays resident, what was requested) is
decided in `window/`; here they are read, whole or as the passages that answer the question. For the search by
word over all pages of a user, passages are segmented once, when a search first meets their page, and their terms
are stored beside the page, so that the index of a user can be rebuilt without reading the texts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from uuid import UUID

import anyio
import anyio.to_thread

from pagefile.errors import HandleNotFoundError, InvalidArgumentError, PagefileError, PagePurgedError
from pagefile.lru import Lru
from pagefile.ports import LogView, PageIndex, PageKeeper, PageStore, PageTerms
from pagefile.records import PageHit, Scope, Step, Turn
from pagefile.text.bm25 import Ranked, WordIndex
from pagefile.text.passages import page_slice, render_excerpt, selected
from pagefile.text.reading.json_tree import START as JSON_START
from pagefile.text.reading.json_tree import unescaped
from pagefile.text.words import terms
from pagefile.tiers.base import Counter, WindowRequest, off_loop
from pagefile.window import residency
from pagefile.window.candidates import Candidate, Form
from pagefile.window.compile import CUT_TURNS
from pagefile.window.eviction import HIGH_WATER, Evictions, Source
from pagefile.window.forms import Text
from pagefile.window.measure import Count
from pagefile.window.parts import escape
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL, gist, placeholder_uuid
from pagefile.window.wording import WORDINGS, ZH, Language, Wording

#: What these tools return is already archived: it is never archived again.
LOADING_TOOLS = frozenset({LOAD_TOOL, SEARCH_TOOL})
#: The tool by which a model recalls turns, and how our answer to it begins: others may have a tool of the
#: same name.
RECALL_TOOL = "recall"
_RECALLED = re.compile(r"(?:- )?\[\d{4}-\d\d-\d\d[\] ]")
#: Texts of pages cached between the calls of a tool loop, in characters.
CACHE_CHARS = 16_000_000
#: A shorter excerpt would say nothing.
LEAST_EXCERPT_TOKENS = 200
#: From this many characters on, processing a text would block the event loop.
THREAD_FROM_CHARS = 20_000


async def excerpt(text: str, query: str, budget_tokens: int, count: Count, wording: Wording) -> str:
    """The passages of a text that answer a query, in order, with their positions, within a budget."""
    nothing_matched, zh = wording.answers["nothing_matched"] + "\n", wording is ZH

    def choose() -> str:
        chosen = selected(text, query, budget=budget_tokens, cost=count, zh=zh)
        if [(passage.start, passage.end) for passage in chosen] == [(0, len(text))]:
            return text
        note = "" if chosen.answers or not query.strip() else nothing_matched
        if note:
            chosen = selected(text, query, budget=budget_tokens - count(note), cost=count, zh=zh)
        if not chosen:
            # There is hardly room for a word, and none for where it stands.
            return fitting_slice(text, 0, None, budget_tokens, count)
        return note + render_excerpt(chosen, len(text), zh=zh)

    return await off_loop(choose, len(text), THREAD_FROM_CHARS)


def is_quoted(tool: str, result: str) -> bool:
    """Whether a result is an answer of our own reading tools: archived, it would be found instead of what it quotes."""
    return tool in LOADING_TOOLS or (tool == RECALL_TOOL and _RECALLED.match(result) is not None)


def asked(step: Step | None) -> Mapping[str, object]:
    """The arguments of a call of our own tools; none for any other step."""
    if step is None or step.tool not in LOADING_TOOLS or not isinstance(step.input, Mapping):
        return {}
    return step.input


def checked_uuid(uuid: object) -> str:
    """A well-formed uuid, or an error that says where to find one."""
    try:
        return str(UUID(str(uuid).strip()))
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


def asked_range(arguments: Mapping[str, object], text: str) -> tuple[int, int | None] | None:
    """Where a model asks to read, and at most how much; None if it does not say. Impossible values are ignored."""
    offset, limit = arguments.get("offset"), arguments.get("limit")
    if not isinstance(offset, int) and not isinstance(limit, int):
        return None
    start = offset if isinstance(offset, int) and 0 <= offset <= len(text) else 0
    return start, limit if isinstance(limit, int) and limit > 0 else None


def fitting_slice(text: str, offset: int, limit: int | None, budget_tokens: int, count: Count) -> str:
    """A part as `slice_of` gives it, shortened until it fits a budget."""
    part = slice_of(text, offset, limit)
    while len(part) > 1 and (tokens := count(part)) > budget_tokens:
        part = slice_of(text, offset, max(1, len(part) * budget_tokens // tokens - 1))
    return part


def slice_of(text: str, offset: int, limit: int | None) -> str:
    """At most `limit` characters from `offset`, without splitting an image, a table, a code block or a value.

    Reading on from `offset + len(result)` tiles the text exactly.
    """
    if offset > len(text):
        raise InvalidArgumentError(f"offset is {offset}, the page has {len(text)} characters.")
    if limit is None:
        return text[offset:]
    _, end = page_slice(text, offset, limit)
    return text[offset:end]


# -- pages in a window -------------------------------------------------------------------------------------------------

#: A conversation, the limit, and the wording.
_FoldKey: TypeAlias = tuple[Scope, int, str]
#: The page, the query, the budget, and the language of what is written around the passages.
_ExcerptKey: TypeAlias = tuple[Scope, str, str, int, Language]


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

    def __post_init__(self) -> None:
        # Keyed by scope as well: a uuid alone grants no access, and two tenants may have the same one.
        self._texts: Lru[tuple[Scope, str], tuple[str, int]] = Lru(CACHE_CHARS, lambda kept: len(kept[0]))
        self._evictions: Lru[_FoldKey, Evictions] = Lru(CACHE_CHARS, lambda kept: kept.chars)
        self._excerpts: Lru[_ExcerptKey, tuple[str, int]] = Lru(64)

    async def bring(self, request: WindowRequest) -> Sequence[Candidate]:
        """Add what this window shows of the archive to the request, and return pages whose turn is not in the window.

        What cannot be read is noted and stays a placeholder.
        """
        view = request.view
        wanted = await self._wanted(request)
        steps = () if view.open_turn is None else view.open_turn.steps
        running = {number: step for number, step in enumerate(steps) if step.page and not step.whole}
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
        view, turn = request.view, request.view.open_turn
        turns = in_blocks(view)
        if not any(step.page for one in (*turns, *([turn] if turn else ())) for step in one.steps):
            return
        loaded = {(turn.id, n): texts[0][1:] for n, texts in current.items() if turn is not None and texts}
        items = Source(self.counter.count, request.wording, loaded).items(turns, turn)
        room = request.window_tokens - request.instructions_tokens
        limit = int(HIGH_WATER * room)
        key = request.scope, limit, request.wording.gathered
        folded = self._evictions.get(key)
        if folded is None or not folded.follows(items):
            folded = Evictions(
                limit,
                self.running_tokens or limit,
                self.low_water,
                request.wording.gathered,
                self.counter.count,
            )
        folded.advance(items[len(folded.items) :])
        self._evictions[key] = folded
        leaving = request.leaving
        leaving.pageable_tokens = folded.pageable
        for place, out in folded.out.items():
            leaving.remains[place] = Text("paged out", out.text, out.tokens)
            leaving.reasons[place] = folded.reason(place)

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
        picked = residency.pages_to_load(self.strategy, request.query or "", _hints(view))
        most, now = request.window_tokens // residency.WORKING_SET_SHARE, len(view.turns)
        resident = residency.resident_pages(loads, now, pinned=pinned, tokens=sizes, limit_tokens=most)
        return list(dict.fromkeys([*request.load, *picked, *resident]))

    async def _shown(
        self, request: WindowRequest, uuid: str, step: Step | None, share: int
    ) -> tuple[Text, ...]:
        """A page as it may appear in this window, from whole to a few passages; empty if it cannot be read."""
        try:
            text, tokens = await self._text(request.scope, uuid)
            half = request.window_tokens // 2
            # The same part as `call_tool` returns.
            if (wanted := asked_range(asked(step), text)) is not None:
                part = fitting_slice(text, *wanted, half, self.counter.count)
                return (Text("part", part, self.counter.count(part)),)
            given = asked(step).get("query")
            own = given if isinstance(given, str) and given.strip() else ""
            if step is not None and step.tool not in LOADING_TOOLS:
                # What it is too long for leaves like any other result.
                return (Text("loaded", text, tokens),)
            forms: list[Text] = []
            # A page requested by name is shown whole up to half of the window, as in `call_tool`.
            most = request.window_tokens if step is None else half
            if tokens <= most and not own:
                forms.append(Text("loaded", text, tokens))
            if tokens > share or not forms:
                key = request.scope, uuid, own or request.query or "", share, request.language
                forms.append(Text("passages", *await self._excerpt(key, text)))
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
            self._excerpts.clear()
        page, text = await self.pages.load(scope, uuid)
        tokens = page.tokens if page.counter == self.counter.name else self.counter.count(text)
        self._texts[scope, uuid] = text, tokens
        return text, tokens

    async def _excerpt(self, key: _ExcerptKey, text: str) -> tuple[str, int]:
        if key not in self._excerpts:
            _, _, query, budget, tongue = key
            chosen = await excerpt(text, query, budget, self.counter.count, WORDINGS[tongue])
            self._excerpts[key] = chosen, self.counter.count(chosen)
        return self._excerpts[key]

    def forget(self) -> None:
        self._texts.clear()
        self._excerpts.clear()
        self._evictions.clear()


def in_blocks(view: LogView) -> Sequence[Turn]:
    """The turns that were read; if there are more, from where a window may begin, so that what follows is decided alike."""
    if len(view.turns) == view.head.live_turns:
        return view.turns
    first = next((n for n, turn in enumerate(view.turns) if (turn.seq or 0) % CUT_TURNS == 0), 0)
    return view.turns[first:]


def _paged(view: LogView) -> Iterator[tuple[int, Turn, int, Step, str]]:
    """The steps of earlier turns that have a page: number of the turn, turn, index of the step, step, page."""
    for at, turn in enumerate(view.turns):
        for number, step in enumerate(turn.steps):
            if step.page:
                yield at, turn, number, step, step.page


def _places(view: LogView) -> dict[str, tuple[str, int]]:
    """Where each page is shown, once: at the step that fetched it, else at the newest one that loaded it."""
    fetched: dict[str, tuple[str, int]] = {}
    loaded: dict[str, tuple[str, int]] = {}
    for _, turn, number, step, page in _paged(view):
        (loaded if step.tool in LOADING_TOOLS else fetched)[page] = turn.id, number
    return loaded | fetched


def _hints(view: LogView) -> list[residency.PageHint]:
    """What is known about the pages in the history, oldest first, from their placeholders."""
    hints: dict[str, residency.PageHint] = {}
    for _, turn, _, step, page in _paged(view):
        if not step.whole and step.tool not in LOADING_TOOLS and placeholder_uuid(step.result):
            hints[page] = residency.PageHint(page, f"{turn.user or ''} {gist(step.result)}")
    return list(hints.values())


#: Pages whose terms are read at a time.
_BATCH = 50


class _Key(NamedTuple):
    uuid: str
    start: int
    end: int


@dataclass(slots=True)
class _Index:
    words: WordIndex[_Key] = field(default_factory=WordIndex[_Key])
    pages: dict[str, list[_Key]] = field(default_factory=dict[str, list[_Key]])
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    def add(self, page: PageTerms, passages: Sequence[str]) -> None:
        keys = [_Key(page.uuid, start, end) for start, end in page.spans]
        for key, words in zip(keys, passages, strict=True):
            self.words.add(key, words.split(" "))
        self.pages[page.uuid] = keys

    def drop(self, uuids: set[str]) -> None:
        for uuid in uuids:
            self.words.remove(self.pages.pop(uuid))


@dataclass(eq=False, repr=False)
class PageSearch:
    """Finds pages by what is written in them."""

    pages: PageStore
    index: PageIndex
    max_postings: int

    def __post_init__(self) -> None:
        self._indexes: Lru[Scope, _Index] = Lru(self.max_postings, lambda index: index.words.postings)

    async def search(self, scope: Scope, query: str, limit: int) -> list[PageHit]:
        """The pages whose best passage answers the query, best first; one hit per page."""
        if not (wanted := terms(query)):
            return []
        index = await self._caught_up(scope)
        best: dict[str, Ranked[_Key]] = {}
        for ranked in index.words.search(wanted, limit * 20):
            best.setdefault(ranked.key.uuid, ranked)
        hits: list[PageHit] = []
        results: set[object] = set()
        for ranked in best.values():
            if len(hits) == limit:
                break
            try:
                page, text = await self.pages.load(scope, ranked.key.uuid)
            except HandleNotFoundError:
                continue
            if is_quoted(page.tool, text):
                # Earlier versions archived the answers of our own tools.
                continue
            # A fork of a conversation has its own pages for the same results.
            result = page.call_hash, page.content_hash, page.created
            if result in results:
                continue
            results.add(result)
            _, start, end = ranked.key
            hits.append(PageHit(page, ranked.score, text[start:end], start))
        return hits

    def forget(self) -> None:
        self._indexes.clear()

    async def _caught_up(self, scope: Scope) -> _Index:
        index = self._indexes.setdefault(scope, _Index())
        async with index.lock:
            there = await self.index.uuids(scope)
            index.drop(index.pages.keys() - set(there))
            missing = [uuid for uuid in there if uuid not in index.pages]
            for start in range(0, len(missing), _BATCH):
                for page in await self.index.read(scope, missing[start : start + _BATCH]):
                    passages = page.terms
                    if passages is None:
                        _, text = await self.pages.load(scope, page.uuid)
                        passages = await anyio.to_thread.run_sync(segmented, text, page.spans)
                        await self.index.write(scope, page.uuid, passages)
                    await anyio.to_thread.run_sync(index.add, page, passages)
        self._indexes.trim()
        return index


def segmented(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """The terms of a text's passages as they are stored; strings of JSON as they read."""
    read = unescaped if JSON_START.match(text) else str
    return tuple(" ".join(terms(read(text[start:end]))) for start, end in spans)
