"""The archive tier: a bulky tool result becomes a page, and a placeholder takes its place (document 000)."""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

import anyio
import anyio.to_thread

from pagefile.errors import HandleNotFoundError, InvalidTurnError, PagePurgedError, StoreError
from pagefile.ports import Clock, Meter, PageDraft, PageStore
from pagefile.ports import PageKeeper as Keeper
from pagefile.records import JsonValue, Page, Scope, Step
from pagefile.text.clip import clip
from pagefile.text.passages import page_slice, render_excerpt, select, split
from pagefile.text.sources import sources
from pagefile.text.synopsis import synopsis
from pagefile.text.words import terms
from pagefile.tiers.base import Counter
from pagefile.window.measure import measured_step
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL, placeholder
from pagefile.window.wording import ZH, Wording

#: Document 000's columns: a query of at most 500 characters, a summary of 200 to 500.
QUERY_CHARS = 500
SUMMARY_CHARS = 500
#: What is left of a result when the archive cannot be written: its head and tail.
FALLBACK_CHARS = 11_000
#: What these tools answer is in pages already: it is never archived again.
LOADING_TOOLS = frozenset({LOAD_TOOL, SEARCH_TOOL})
#: None of our own answers is longer, but for whole pages: what is came from elsewhere, and must not be lost.
ANSWER_CHARS = 10_000
#: The tool by which a model recalls turns, and how our answer to it begins: others may have a tool of that name.
RECALL_TOOL = "recall"
_RECALLED = re.compile(r"(?:- )?\[\d{4}-\d\d-\d\d[\] ]")
#: Stands before the beginning of a page of which nothing answers the question.
_NOTHING_MATCHED = "[没有匹配的段落，以下是开头 / no passage matches, this is the beginning]\n"
#: Instead of passages, when the best of them is longer than what was asked for.
_NOTHING_FITS = (
    "[{tokens} tokens 放不下任何段落，请给更大的 limit / no passage fits into {tokens} tokens, ask for more]"
)
#: From so many characters on, preparing a page would hold up the event loop.
_THREAD_FROM_CHARS = 20_000

Describe = Callable[[str], Awaitable[str]]
#: A model that takes longer to describe a result has hung.
DESCRIBE_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class ArchiveRules:
    """When a result becomes a page, and what may be shared."""

    #: Results of more characters leave the window.
    threshold: int
    #: Results of more characters have a page too, so that they can leave when many pile up.
    page_from: int
    #: An equal call of the same user may be answered from a page no older than this; 0 is never.
    reuse_s: float = 0.0
    #: The words of placeholders.
    wording: Wording = ZH


class Archive:
    """Tool results that are too long for every window."""

    name = "archive"

    def __init__(
        self,
        pages: PageStore,
        keeper: Keeper,
        counter: Counter,
        clock: Clock,
        rules: ArchiveRules,
        meter: Meter,
        *,
        describe: Describe | None = None,
    ) -> None:
        self._pages = pages
        self._keeper = keeper
        self._counter = counter
        self._clock = clock
        self._rules = rules
        self._meter = meter
        self._describe = describe
        #: How often a page was loaded: the page faults of this process.
        self.loads = 0
        #: Told of every result that could not be archived.
        self.on_failure: Callable[[Exception], None] = _nobody

    # -- out of the window --------------------------------------------------------------------------------------------

    async def keep(self, scope: Scope, step: Step, turn_id: str) -> Step:
        """The step as it is stored: with its result, or with the placeholder of its page."""
        if step.tool == LOAD_TOOL:
            loaded = await self._kept_load(scope, step)
            if loaded is not None:
                return loaded
        if len(step.result) <= self._kept_chars(step):
            return measured_step(step, self._counter.count)
        try:
            page = await self.store(scope, step, turn_id)
        except StoreError as error:
            return self._cut(step, error)
        if len(step.result) <= self._rules.threshold:
            return measured_step(_with_page(step, page), self._counter.count)
        short = replace(
            _with_page(step, page),
            result=placeholder(page, self._counter.count, self._rules.wording),
            whole=False,
        )
        return measured_step(short, self._counter.count)

    async def store(self, scope: Scope, step: Step, turn_id: str, *, thread: str | None = None) -> Page:
        """Make a page of a result, whatever its length; the same result of the same call makes one page."""
        prepare = _Preparation(scope, step, turn_id, self._counter)
        if len(step.result) < _THREAD_FROM_CHARS:
            draft = prepare()
        else:
            draft = await anyio.to_thread.run_sync(prepare)
        summary = await self._described(step.result) or draft.page.result_summary
        page = replace(draft.page, created=self._clock.now(), thread=thread, result_summary=summary)
        return await self._pages.put(replace(draft, page=page))

    async def _described(self, text: str) -> str | None:
        """What a model says of a result; None without one, and when it fails."""
        if self._describe is None:
            return None
        try:
            with anyio.fail_after(DESCRIBE_TIMEOUT_S):
                return (await self._describe(text)).strip()[:SUMMARY_CHARS]
        except Exception as error:
            # Whatever a model raises: the synopsis without a model is good enough.
            self.on_failure(error)
            return None

    async def equal_call(self, scope: Scope, tool: str, value: JsonValue) -> Page | None:
        """A page that answers the same call of the same user and is fresh enough; None unless reuse is switched on."""
        if self._rules.reuse_s <= 0:
            return None
        now = self._clock.now()
        since = now - timedelta(seconds=self._rules.reuse_s)
        page = await self._keeper.equal_call(scope, call_hash(tool, value), since)
        # A page of the future is as old as the clock was wrong: nobody knows, so the call is made again.
        return None if page is None or page.created > now else page

    # -- back into it ---------------------------------------------------------------------------------------------------

    async def load(self, scope: Scope, uuid: str) -> tuple[Page, str]:
        """A page and its full text, counted as a load."""
        found = await self._pages.load(scope, checked_uuid(uuid))
        self.loads += 1
        self._meter.count("pagefile_page_faults_total")
        await self._keeper.touch(scope, [found[0].uuid], self._clock.now())
        return found

    async def page(self, scope: Scope, uuid: str) -> Page:
        """A page without its text; a purged one too."""
        return await self._keeper.page(scope, checked_uuid(uuid))

    async def pin(self, scope: Scope, uuid: str, *, pinned: bool) -> Page:
        """Pin or unpin a page."""
        return await self._keeper.pin(scope, checked_uuid(uuid), pinned=pinned)

    async def excerpt(self, text: str, query: str, budget_tokens: int) -> str:
        """The passages of a text that answer a query, in order, with where they stand, within a budget."""

        def choose() -> str:
            passages = split(text)
            wanted = set(terms(query))
            chosen = select(passages, query, budget=budget_tokens, cost=self._counter.count)
            if not chosen:
                return _NOTHING_FITS.format(tokens=budget_tokens)
            if any(wanted.intersection(terms(passage.text)) for passage in chosen):
                return render_excerpt(chosen, len(text))
            room = budget_tokens - self._counter.count(_NOTHING_MATCHED)
            chosen = select(passages, query, budget=room, cost=self._counter.count)
            return _NOTHING_MATCHED + render_excerpt(chosen, len(text))

        return choose() if len(text) < _THREAD_FROM_CHARS else await anyio.to_thread.run_sync(choose)

    # -- inside -----------------------------------------------------------------------------------------------------------

    def _kept_chars(self, step: Step) -> int:
        """Results of more characters have a page. What is quoted has none, unless it is too long to be ours."""
        quoted = is_quoted(step.tool, step.result)
        return max(ANSWER_CHARS, self._rules.page_from) if quoted else self._rules.page_from

    async def _kept_load(self, scope: Scope, step: Step) -> Step | None:
        """A step that loaded a page keeps only a note of it: the page itself is on disk already. None if it loaded none."""
        uuid = loaded_uuid(step)
        try:
            page, _ = await self._pages.load(scope, uuid or "")
        except (HandleNotFoundError, StoreError):
            return None
        note = self._rules.wording.loaded.format(uuid=page.uuid, chars=page.length)
        return measured_step(replace(_with_page(step, page), result=note, whole=False), self._counter.count)

    def _cut(self, step: Step, error: StoreError) -> Step:
        """The archive is down: the turn goes on with the head and the tail, and says so."""
        self.on_failure(error)
        if len(step.result) <= self._rules.threshold:
            return measured_step(step, self._counter.count)
        cut = clip(step.result, min(FALLBACK_CHARS, self._rules.threshold))
        return measured_step(
            replace(step, result=cut, lost_chars=len(step.result) - len(cut)), self._counter.count
        )


@dataclass(frozen=True, slots=True)
class _Preparation:
    """Everything about a page that takes time and touches nothing."""

    scope: Scope
    step: Step
    turn_id: str
    counter: Counter

    def __call__(self) -> PageDraft:
        text = self.step.result
        content_hash = hashlib.sha256(text.encode()).hexdigest()
        page = Page(
            uuid=_page_uuid(self.scope, self.step, self.turn_id, content_hash),
            scope=self.scope,
            tool=self.step.tool,
            input=self.step.input,
            query_summary=query_summary(self.step.input),
            result_summary=synopsis(text)[:SUMMARY_CHARS],
            length=len(text),
            sources=tuple(sources(text)),
            created=_NO_TIME,
            tokens=self.counter.count(text),
            counter=self.counter.name,
            content_hash=content_hash,
            call_hash=call_hash(self.step.tool, self.step.input),
        )
        return PageDraft(page, text, tuple((passage.start, passage.end) for passage in split(text)))


#: Stands in a draft until the clock is asked.
_NO_TIME = datetime(1, 1, 1, tzinfo=UTC)
_NAMESPACE = UUID("6f2f7a52-3b0e-5c1d-9b7e-7a6d0c9f1e10")


def _page_uuid(scope: Scope, step: Step, turn_id: str, content_hash: str) -> str:
    """The same for the same result of the same call, so that recording twice makes one page."""
    return str(
        uuid5(
            _NAMESPACE,
            "\0".join((scope.tenant, scope.conversation or "", turn_id, step.call_id, content_hash)),
        )
    )


def _nobody(_: Exception) -> None:
    """Nobody wants to know."""


def _with_page(step: Step, page: Page) -> Step:
    return replace(step, page=page.uuid, page_tokens=page.tokens, page_chars=page.length)


def is_quoted(tool: str, result: str) -> bool:
    """Whether a result is an answer of our own reading tools: a page of it would be found instead of what it quotes."""
    return tool in LOADING_TOOLS or (tool == RECALL_TOOL and _RECALLED.match(result) is not None)


def loaded_uuid(step: Step) -> str | None:
    """The page a loading step asked for."""
    if step.tool != LOAD_TOOL or not isinstance(step.input, Mapping):
        return None
    uuid = step.input.get("uuid")
    return uuid if isinstance(uuid, str) else None


def checked_uuid(uuid: object) -> str:
    """A well-formed uuid, or the error that says where to find one."""
    try:
        return str(UUID(str(uuid).strip()))
    except ValueError as error:
        raise HandleNotFoundError(
            f"{str(uuid)[:80]!r} is not a uuid: copy it from the placeholder, which begins with 📎."
        ) from error


def call_hash(tool: str, value: JsonValue) -> str:
    """Equal for equal calls, whatever the order of their arguments."""
    text = json.dumps([tool, value], ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def query_summary(value: JsonValue) -> str:
    """What a tool was asked, in one line."""
    if isinstance(value, Mapping) and len(value) == 1:
        value = next(iter(value.values()))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clip(" ".join(text.split()), QUERY_CHARS)


def explained(error: HandleNotFoundError) -> str:
    """What the model reads instead of a page: an explanation it can act on, in both languages."""
    if isinstance(error, PagePurgedError):
        return f"[存档已清理 / archive purged] {error}"
    return f"[未找到存档 / archive not found] {error}"


def fitting_slice(
    text: str, offset: int, limit: int | None, budget_tokens: int, count: Callable[[str], int]
) -> str:
    """A part as `slice_of` gives it, made shorter until it fits a budget."""
    part = slice_of(text, offset, limit)
    while len(part) > 1 and (tokens := count(part)) > budget_tokens:
        part = slice_of(text, offset, max(1, len(part) * budget_tokens // tokens - 1))
    return part


def slice_of(text: str, offset: int, limit: int | None) -> str:
    """From `offset` on, at most `limit` characters, without cutting an image, a table, a code block or a value in two.

    Reading on from `offset + len(result)` tiles the text exactly.
    """
    if offset > len(text):
        raise InvalidTurnError(f"offset is {offset}, the page has {len(text)} characters.")
    if limit is None:
        return text[offset:]
    _, end = page_slice(text, offset, limit)
    return text[offset:end]
