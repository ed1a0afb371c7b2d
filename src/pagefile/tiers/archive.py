"""The archive tier: a large tool result becomes a page, and a placeholder takes its place."""

import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID, uuid5

import anyio

from pagefile.errors import ConflictError, ErasedError, HandleNotFoundError, StoreError
from pagefile.lru import Lru
from pagefile.ports import Clock, Embedder, EntryQuery, Meter, PageDraft, PurgeRequest, Store, ViewRequest
from pagefile.records import JsonObject, JsonValue, Page, PageHit, Scope, Step, Turn
from pagefile.shapes.tool_arguments import large_values, with_values
from pagefile.text.passages import split
from pagefile.text.recall_gate import Gate
from pagefile.text.sentences import Language, clip
from pagefile.text.sources import sources
from pagefile.text.synopsis import is_mixed, synopsis
from pagefile.text.synopsis.binary import has_base64
from pagefile.tiers import base, page_in
from pagefile.tiers.languages import Languages
from pagefile.tiers.loading import Loading
from pagefile.tiers.page_recall import PageRecall
from pagefile.tiers.page_search import PageSearch
from pagefile.window.candidates import Block, Candidate
from pagefile.window.measure import measured_step
from pagefile.window.placeholder import LOAD_TOOL, loaded_note, placeholder, query_summary
from pagefile.window.receipt import Window
from pagefile.window.residency import SOME_SIMILARITY, Relevance, Strategy

logger = logging.getLogger("pagefile")

#: How often archiving a page is retried because part of its conversation was erased meanwhile.
_MOST_ATTEMPTS = 3
#: Column limit: a summary of 200 to 500 characters.
SUMMARY_CHARS = 500
#: How much of a result is kept, as head and tail, if the archive cannot be written.
FALLBACK_CHARS = 11_000
#: Apart from whole pages, our own answers are never longer: anything longer came from elsewhere and must not
#: be lost.
ANSWER_CHARS = 10_000
#: Conversations whose last window is remembered.
_CONVERSATIONS = 10_000
#: A conversation that was written to within this time is in use, however short the retention.
IN_USE_S = 1800.0
#: More tokens than any conversation has.
_EVERY_TURN = 2**62
#: Pages that a strategy chooses from.
_RELEVANT = 5
#: Scores below this are ignored.
_TRIFLE = 0.1
#: How often the retention rules are applied.
RETENTION_EVERY_S = 3600.0

Describe = Callable[[str], Awaitable[str]]
#: Beyond this, a model describing a result is considered hung.
DESCRIBE_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class ArchiveRules:
    """When a result becomes a page, and what may be reused."""

    #: Results with more characters leave the window.
    threshold: int
    #: Results with more characters get a page too, so that they can leave when many accumulate.
    page_from: int
    #: An equal call by the same user may be answered from a page no older than this; 0 means never.
    reuse_s: float = 0.0
    #: Whether passages of pages come by themselves when they answer.
    recall: Gate = "auto"
    #: What decides that a page comes back whole.
    strategy: Strategy = "model"
    #: Within how many turns two loads make a page stay; 0: it never does.
    resident_turns: int = 0
    #: Results take at most this many tokens; 0: as many as fit.
    running_tokens: int = 0
    #: After results left a full window, the others take this share of the room for results.
    low_water: float = 0.4
    #: Values in the arguments of a call with more characters than this get a page, and can leave; 0: none.
    inputs_from: int = 0
    #: Upper bound on the in-memory word index of pages.
    max_postings: int = 20_000_000
    #: Texts are purged after this many days, or beyond this size; 0 keeps them.
    retention_days: float = 0.0
    max_bytes: int = 0


class Archive(base.OwnTier):
    """Tool results too long to stay in every window: they leave it as placeholders, and come back as pages."""

    name = "archive"
    incognito = True

    def __init__(
        self,
        store: Store,
        counter: base.Counter,
        clock: Clock,
        languages: Languages,
        rules: ArchiveRules,
        meter: Meter,
        *,
        describe: Describe | None = None,
        embedder: Embedder | None = None,
        timeout_s: float = 1.0,
        loading: Loading | None = None,
    ) -> None:
        self._store = store
        self._pages = store.pages
        self._keeper = store.page_keeper
        self._counter = counter
        self._clock = clock
        self._languages = languages
        self._rules = rules
        self._meter = meter
        self._describe = describe
        self._search = PageSearch(
            store.pages,
            store.page_keeper,
            store.page_index,
            rules.max_postings,
            embedder,
            timeout_s,
            self._failed,
            loading or Loading(),
        )
        limits = rules.running_tokens, rules.low_water, rules.inputs_from
        showing = rules.strategy, *limits, self._relevant, rules.resident_turns
        self._paging = page_in.Paging(store.pages, store.page_keeper, counter, *showing)
        self._recall = PageRecall(self._search, store.pages, counter, rules.recall, self._failed)
        # What the last window that this process made for a conversation showed whole.
        self._in_view: Lru[Scope, page_in.InView] = Lru(_CONVERSATIONS)
        if rules.retention_days or rules.max_bytes:
            self.pace = base.Pace(first_sweep_s=0.0, sweep_every_s=RETENTION_EVERY_S, together=True)
        #: How often a page was loaded: the page faults of this process.
        self.loads = 0

    # -- as a tier ----------------------------------------------------------------------------------------------------

    async def withdraw(self, scope: Scope, steps: Sequence[Step]) -> None:
        own = [step for step in steps if step.tool not in page_in.LOADING_TOOLS]
        await self.erase(scope, [uuid for step in own for uuid in step.pages])

    async def erase(self, scope: Scope, uuids: Sequence[str]) -> None:
        """Erase pages that no turn refers to."""
        if uuids:
            await self._keeper.erase(scope, uuids)
            self._search.forget()

    async def offer(self, request: base.WindowRequest) -> Sequence[Candidate]:
        """Pages that are back: in place of their placeholders, or in the memory block if those are not in the window."""
        loaded = await self._paging.bring(request)
        shown = {*request.load, *(one.id.removeprefix("page:") for one in loaded), *_in_place(request)}
        return [*loaded, *await self._recall.offer(request, shown)]

    async def replay(self, past: base.PastWindow) -> base.Tier:
        self._recall.replay(past)
        return self

    def limits(self, window_tokens: int) -> Mapping[Block, int]:
        return {}

    def shown(self, request: base.WindowRequest, window: Window) -> bool:
        self._in_view[request.scope] = page_in.pages_in_view(request.view, window, self._clock.now())
        return False

    async def in_view(self, scope: Scope, turn: Turn | None, uuid: str) -> bool:
        """Whether the last window of an open turn, or of a conversation without one, had this page whole.

        A later window that another process made is judged by its receipt, which says it of open turns.
        """
        mine = self._in_view.get(scope)
        for call in await self._store.calls.list(scope, limit=1):
            if mine is None or (call.id != mine.window and call.at > mine.at):
                return turn is not None and page_in.was_whole(call, turn, uuid)
        return mine is not None and mine.turn == (turn and turn.id) and uuid in mine.pages

    async def maintain_all(self, backlog: base.Backlog) -> None:
        if backlog.sweep:
            await self.purge_due()
        await super().maintain_all(backlog)

    async def absorb(self, turn: Turn) -> bool:
        return turn.status != "open" and any(step.pages for step in turn.steps)

    async def maintain(self, scope: Scope) -> None:
        """Read and embed new pages, so that neither a window nor a search has to wait for it."""
        await self._search.segment_new(scope)
        await self._search.embed_new(scope)

    async def purge_due(self) -> int:
        """Purge texts of all tenants that are too old or exceed the size limit; returns how many became tombstones."""
        now = self._clock.now()
        days, most = self._rules.retention_days, self._rules.max_bytes or None
        before = now - timedelta(days=days) if days else None
        purged = 0
        for tenant in await self._keeper.tenants() if before or most else ():
            purged += len(await self.purge(PurgeRequest(Scope(tenant), now, None, before, most)))
        if purged:
            logger.info("purged the texts of %d archived pages", purged)
        return purged

    async def purge(self, request: PurgeRequest) -> list[Page]:
        """Remove texts and leave tombstones; returns what was purged.

        A page with a placeholder in a conversation that is still in use is purged only by name.
        """
        while live := await self._live(await self._keeper.due(request), request) - request.spared:
            request = replace(request, spared=request.spared | live)
        purged = await self._keeper.purge(request)
        self._paging.forget()
        return purged

    async def _live(self, pages: Sequence[Page], request: PurgeRequest) -> set[str]:
        """Pages that the live turns of these pages' conversations refer to, if those were used recently enough."""
        since = min(request.before or request.at, request.at - timedelta(seconds=IN_USE_S))
        live: set[str] = set()
        for scope in {page.scope for page in pages if page.scope.conversation is not None}:
            view = await self._store.reader.view(ViewRequest(scope, _EVERY_TURN, 0))
            if view.head.updated >= since:
                running = EntryQuery(scope, statuses=frozenset({"open"}))
                turns = [*view.turns, *await self._store.reader.entries(running)]
                live |= {
                    uuid
                    for turn in turns
                    if isinstance(turn, Turn)
                    for step in turn.steps
                    for uuid in step.pages
                }
        return live

    async def forget(self, scope: Scope) -> base.Counts:
        self._paging.forget()
        self._recall.forget()
        self._search.forget()
        return {}

    async def describe(self) -> JsonObject:
        return {"page_faults": self.loads}

    # -- out of the window --------------------------------------------------------------------------------------------

    async def absorb_step(self, scope: Scope, raw: Step, kept: Step, turn_id: str, admit: base.Admit) -> Step:
        """The step with its result, or with the placeholder of its page; large arguments have a page, and stay."""
        raw = replace(raw, input_pages=await self._input_pages(scope, raw, turn_id, admit))
        if raw.tool == LOAD_TOOL and (loaded := await self._kept_load(scope, raw)) is not None:
            return loaded
        # Quoted results get no page, unless they are too long to be ours.
        ours = ANSWER_CHARS if page_in.is_quoted(raw.tool, raw.result) else 0
        # Bytes are not for reading: whatever their length, only their page has them.
        look = partial(has_base64, raw.result)
        bytes_inside = await base.off_loop(look, len(raw.result), page_in.THREAD_FROM_CHARS)
        if len(raw.result) <= max(ours, self._rules.page_from) and not bytes_inside:
            return measured_step(raw, self._counter.count)
        try:
            page = await self.archived(scope, raw, turn_id, admit)
        except StoreError as error:
            # An erasure is not an outage: the turn is written again afterwards, or turns out to be gone. Nor is
            # a conflict: the conversation belongs to another user, and the log refuses the turn as well.
            if isinstance(error, ErasedError) or type(error) is ConflictError:
                raise
            return self._cut(raw, error)
        kept = _with_page(raw, page)
        if len(raw.result) > self._rules.threshold or bytes_inside:
            kept = replace(kept, result=await self.placeholder(scope, page), whole=False)
        return measured_step(kept, self._counter.count)

    async def _input_pages(self, scope: Scope, step: Step, turn_id: str, admit: base.Admit) -> dict[str, str]:
        """Archive the large values in the arguments of a call. What cannot be archived has no page, and never leaves."""
        if not self._rules.inputs_from or step.tool in page_in.LOADING_TOOLS:
            return {}
        made: dict[str, str] = {}
        large = large_values(step.input, self._rules.inputs_from)
        rest = _without(step.input, large)
        for pointer, text in large.items():
            # A call of its own: an equal call is answered with the result, never with an argument.
            own = with_values(rest, {pointer: f"({len(text)})"})
            part = replace(step, input=own, result=text, input_pages={})
            try:
                made[pointer] = (await self.archived(scope, part, turn_id, admit)).uuid
            except StoreError as error:
                if isinstance(error, ErasedError) or type(error) is ConflictError:
                    raise
                self.report(error)
        return made

    async def archived(
        self,
        scope: Scope,
        step: Step,
        turn_id: str,
        admit: base.Admit | None = None,
        thread: str | None = None,
    ) -> Page:
        """Archive a result that has just arrived; `admit` admits its turn, None if it has no turn.

        What was erased meanwhile may be another turn of the conversation: then this one is still admitted.
        """
        for _ in range(_MOST_ATTEMPTS):
            with suppress(ErasedError):
                epoch = await (self.claim(scope) if admit is None else admit())
                return await self.store(scope, step, turn_id, epoch=epoch, thread=thread)
        raise ErasedError

    async def placeholder(self, scope: Scope, page: Page) -> str:
        """What a turn of this conversation holds in place of a page."""
        wording = await self._languages.wording(scope, page.query_summary, page.result_summary)
        return placeholder(page, self._counter.count, wording)

    async def claim(self, scope: Scope) -> int:
        """The epoch for a page without a turn; the page itself is the use that decides the conversation's owner."""
        epoch = await self._store.reader.epoch()
        await self._store.log.claim(scope, epoch=epoch)
        return epoch

    async def store(
        self, scope: Scope, step: Step, turn_id: str, *, epoch: int, thread: str | None = None
    ) -> Page:
        """Make a page of a result, whatever its length; the same result of the same call gives the same page.

        If the scope was erased since `epoch` (from `claim` or `admit`), `ErasedError` is raised.
        """
        # Only results in mixed languages need the conversation's language.
        mixed = await self._languages.of(scope, step.result[:2000]) if is_mixed(step.result) else None
        prepare = partial(_draft, scope, step, turn_id, self._counter, mixed)
        draft = await base.off_loop(prepare, len(step.result), page_in.THREAD_FROM_CHARS)
        summary = draft.page.result_summary
        if self._describe is not None:
            # Whatever the model raises: the extracted synopsis is good enough.
            with base.guarded(self.report), anyio.fail_after(DESCRIBE_TIMEOUT_S):
                summary = (await self._describe(step.result)).strip()[:SUMMARY_CHARS] or summary
        page = replace(draft.page, created=self._clock.now(), thread=thread, result_summary=summary)
        return await self._pages.put(replace(draft, page=page, epoch=epoch))

    async def copy(self, scope: Scope, uuid: str, there: Scope, *, epoch: int) -> Page:
        """Copy a page for a copy of its conversation; a page of a different conversation is returned as it is."""
        page = await self._keeper.page(scope, uuid)
        if page.scope.conversation != scope.conversation:
            return page
        own = replace(page, uuid=_uuid(there, uuid), scope=there)
        if page.purged is not None:
            return await self._pages.put(PageDraft(own, "", epoch=epoch, origin=scope))
        _, text = await self._pages.load(scope, uuid)
        spans = [one.spans for one in await self._store.page_index.read(scope, [uuid])]
        return await self._pages.put(PageDraft(own, text, *spans, epoch=epoch, origin=scope))

    async def equal_call(self, scope: Scope, tool: str, value: JsonValue) -> Page | None:
        """A recent enough page of an equal call by the same user; None unless reuse is enabled."""
        if self._rules.reuse_s <= 0:
            return None
        now = self._clock.now()
        since = now - timedelta(seconds=self._rules.reuse_s)
        page = await self._keeper.equal_call(scope, call_hash(tool, value), since)
        # If a page is dated in the future, a clock is wrong and its age is unknown: make the call again.
        return None if page is None or page.created > now else page

    # -- back into the window -----------------------------------------------------------------------------------------

    async def load(self, scope: Scope, uuid: str) -> tuple[Page, str]:
        """A page and its full text, counted as a load."""
        found = await self._pages.load(scope, page_in.checked_uuid(uuid))
        self.loads += 1
        self._meter.count("pagefile_page_faults_total")
        try:
            await self._keeper.touch(scope, [found[0].uuid], self._clock.now())
        except StoreError as error:
            # The text was read: a full disk prevents counting, not reading.
            self.report(error)
        return found

    async def page(self, scope: Scope, uuid: str) -> Page:
        """A page without its text, purged or not."""
        return await self._keeper.page(scope, page_in.checked_uuid(uuid))

    async def pin(self, scope: Scope, uuid: str, *, pinned: bool) -> Page:
        return await self._keeper.pin(scope, page_in.checked_uuid(uuid), pinned=pinned)

    async def search(self, scope: Scope, query: str, limit: int) -> list[PageHit]:
        return await self._search.search(scope, query, limit)

    async def part(self, scope: Scope, text: str, asked: page_in.Asked, budget_tokens: int) -> str:
        """The part of a text that is asked for, with our own words in the language of the conversation."""
        wording = await self._languages.wording(scope, text[:2000])
        return (await page_in.part_of(text, asked, budget_tokens, self._counter.count, wording)).text

    async def _relevant(self, scope: Scope, question: str) -> list[Relevance]:
        every = await self._search.find(scope, question, _RELEVANT)
        found = [one for one in every if one.coverage or one.similarity >= SOME_SIMILARITY]
        nexts = [*(max(one.points, _TRIFLE) for one in found[1:]), _TRIFLE]
        return [
            Relevance(one.uuid, one.coverage, one.similarity, one.points, one.points / after)
            for one, after in zip(found, nexts, strict=False)
        ]

    def _failed(self, error: Exception) -> None:
        # The engine sets `report` once the tier exists.
        self.report(error)

    # -- inside -----------------------------------------------------------------------------------------------------------

    async def _kept_load(self, scope: Scope, step: Step) -> Step | None:
        """A step that loaded a page is stored as a note, since the page is already on disk. None if it loaded none."""
        uuid = page_in.arguments_of(step).get("uuid")
        if page_in.loaded_nothing(step.result):
            return None
        try:
            page, _ = await self._pages.load(scope, uuid if isinstance(uuid, str) else "")
        except (HandleNotFoundError, StoreError):
            return None
        note = loaded_note(page, len(step.result), await self._languages.wording(scope))
        return measured_step(replace(_with_page(step, page), result=note, whole=False), self._counter.count)

    def _cut(self, step: Step, error: StoreError) -> Step:
        """The archive is down: the turn continues with the head and the tail of the result, and says so."""
        self.report(error)
        if len(step.result) > self._rules.threshold:
            cut = clip(step.result, min(FALLBACK_CHARS, self._rules.threshold))
            step = replace(step, result=cut, lost_chars=len(step.result) - len(cut))
        return measured_step(step, self._counter.count)


def _in_place(request: base.WindowRequest) -> set[str]:
    """The pages that a window shows in place of their placeholders, or that the running turn holds."""
    view = request.view
    turns = {turn.id: turn for turn in view.turns}
    back = [turns[turn].steps[number].page for turn, number in request.pages]
    running = () if view.open_turn is None else (step.page for step in view.open_turn.steps)
    return {page for page in (*back, *running, *_staying(request)) if page is not None}


def _staying(request: base.WindowRequest) -> Iterator[str | None]:
    """The pages of results that are whole in their turns, where all turns fit beside as much as memory takes at most."""
    turns, room = request.view.turns, request.window_tokens - request.instructions_tokens
    if sum(turn.tokens for turn in turns) <= room // 2:
        gone = request.leaving.remains
        for turn in turns:
            yield from (s.page for n, s in enumerate(turn.steps) if s.whole and (turn.id, n) not in gone)


def _draft(
    scope: Scope, step: Step, turn_id: str, counter: base.Counter, mixed: Language | None
) -> PageDraft:
    """The slow part of archiving a page, without side effects."""
    text, given = step.result, _without(step.input, step.input_pages)
    content_hash = hashlib.sha256(text.encode()).hexdigest()
    page = Page(
        uuid=_uuid(scope, turn_id, step.call_id, content_hash),
        scope=scope,
        tool=step.tool,
        input=given,
        query_summary=query_summary(given),
        result_summary=synopsis(text, mixed=mixed)[:SUMMARY_CHARS],
        length=len(text),
        sources=tuple(sources(text)),
        created=_NO_TIME,
        tokens=counter.count(text),
        counter=counter.name,
        content_hash=content_hash,
        call_hash=call_hash(step.tool, step.input),
    )
    return PageDraft(page, text, tuple((passage.start, passage.end) for passage in split(text)))


def _without(value: JsonValue, pointers: Iterable[str]) -> JsonValue:
    """The arguments of a call with a note in place of each value that has a page: its text is erased with that page alone."""
    return with_values(value, {pointer: f"(📎 {pointer})" for pointer in pointers})


#: Placeholder in a draft until the clock is read.
_NO_TIME = datetime(1, 1, 1, tzinfo=UTC)
_NAMESPACE = UUID("6f2f7a52-3b0e-5c1d-9b7e-7a6d0c9f1e10")


def _uuid(scope: Scope, *names: str) -> str:
    """The same for the same names, so that recording the same call twice, or forking twice, gives one page."""
    return str(uuid5(_NAMESPACE, "\0".join((scope.tenant, scope.conversation or "", *names))))


def _with_page(step: Step, page: Page) -> Step:
    return replace(step, page=page.uuid, page_tokens=page.tokens, page_chars=page.length)


def call_hash(tool: str, value: JsonValue) -> str:
    """The same for equal calls, whatever the order of their arguments."""
    text = json.dumps([tool, value], ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
