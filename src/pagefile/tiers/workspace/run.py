"""`Workspace`: one run's view of what its tools returned.

It lives and ends with this process; the archive behind it persists. Nothing a tool returns makes it raise,
and a store that fails costs the page, not the run.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

import anyio

from pagefile.errors import ConflictError, HandleNotFoundError, PagefileError
from pagefile.lru import Lru
from pagefile.records import Page, Scope, Step
from pagefile.text.sentences import clip, cut
from pagefile.tiers.base import off_loop
from pagefile.tiers.page_in import LOADING_TOOLS, fitting_slice, is_quoted
from pagefile.tiers.workspace.answers import Absorbed, Answer, CachedResult, told
from pagefile.tiers.workspace.cache import CallCache
from pagefile.tiers.workspace.calls import ToolCall, defaults_of
from pagefile.tiers.workspace.found import document_of, toc_of
from pagefile.tiers.workspace.notes import ARCHIVED, ContentChunk, chunk_text
from pagefile.tiers.workspace.outline import entries, outline
from pagefile.tiers.workspace.parts import Parts
from pagefile.tiers.workspace.results import Plain, Result, canonical, shows_media
from pagefile.tiers.workspace.rules import NOTHING, ToolRule, remember, rule_for
from pagefile.tiers.workspace.tasks import Tasks
from pagefile.window.candidates import Form
from pagefile.window.parts import escape
from pagefile.window.placeholder import placeholder, placeholder_uuid, short_placeholder
from pagefile.window.wording import WORDINGS

#: A text that could not be archived is kept for equal calls up to this length.
HELD_CHARS = 400_000
#: From this many characters on, parsing a result would block the event loop.
_THREAD_FROM_CHARS = 50_000
#: Tables of contents kept per run; the oldest is evicted first.
MAX_TOCS = 32
#: Tools whose defaults are known.
_MAX_TOOLS = 256
#: Characters of outline in the shorter forms of the hint, and of content in the shorter form of a chunk.
_SHORTER_OUTLINES = (300, 0)
_SHORTER_CHUNK = 120
#: How much of a result tells its language.
_SEEN_CHARS = 2000


class Workspace:
    """What one run has fetched and read: nothing is fetched twice, and what matters stays in view."""

    def __init__(
        self, parts: Parts, scope: Scope, run: str = "", spread: Callable[[ToolCall], None] | None = None
    ) -> None:
        self._parts = parts
        self._scope = scope
        self._tools: tuple[ToolRule, ...] = tuple(parts.rules.tools)
        self._calls = CallCache[Answer](lambda: parts.clock.now().timestamp())
        #: The defaults of the tools' arguments, as far as they are known.
        self._defaults: Lru[str, dict[str, object]] = Lru(_MAX_TOOLS)
        self._spread = spread
        self._unseen = 0
        #: Held while notes are taken, which may happen in a thread.
        self._noting = anyio.Lock()
        self._told = False
        #: The last erasure before anything was remembered; None while nothing is.
        self._since: int | None = None
        #: The name of the run; empty for the conversation's own.
        self.run = run
        #: The state of the run: tables of contents, chapters, chunks, the query.
        self.notes = parts.rules.notes()
        self._tasks = Tasks()

    def __repr__(self) -> str:
        held = f"{len(self.notes.relevant_chunks)} chunks, {len(self.notes.toc_cache)} tables of contents"
        return f"Workspace({self._scope.conversation!r}, run={self.run!r}, {held})"

    @property
    def enabled(self) -> bool:
        """Whether anything is remembered and shown."""
        return self._parts.rules.enabled

    def rule(self, tool: str, arguments: Plain = None) -> ToolRule:
        """The rule for the results of a tool, and of a call of it: what a call changes may depend on its arguments."""
        if tool in LOADING_TOOLS or not self.enabled:
            return NOTHING
        return rule_for(tool, self._tools, arguments)

    def add_rules(self, rules: Iterable[ToolRule]) -> None:
        """Add your own rules; they take precedence over existing ones."""
        new = tuple(rule for rule in rules if rule not in self._tools)
        self._tools = (*new, *self._tools)

    def ask(self, query: str | None) -> None:
        """Say what the run is working on now."""
        if query and self.enabled:
            self.notes.current_query = query
            self._tasks.ask(query)

    # -- calls ------------------------------------------------------------------------------------------------------

    async def lookup(
        self,
        tool: str,
        input: object = None,  # noqa: A002 - the word users write
        *,
        schema: Mapping[str, Any] | None = None,
        budget_tokens: int | None = None,
    ) -> CachedResult | None:
        """The answer to an equal call of this run, for cacheable tools; None if the call has to be made.

        A call that may change something ends the answers it concerns. With the JSON `schema` of the tool's
        arguments, one given as its default is as good as left out. A long result comes as its placeholder, with
        its uuid, unless `budget_tokens` has room for all of it.
        """
        if schema is not None:
            self._defaults[tool] = defaults_of(schema)
        call, rule = self._called(tool, input)
        if not rule.cacheable:
            return None
        await self.refresh()
        limits = [limit for limit in (self._parts.rules.cache_s, rule.fresh_s) if limit > 0]
        found = self._calls.find(call, min(limits, default=0.0)) or self._put_in(call, rule)
        if found is not None:
            # Of a long result only an outline is at hand, which need not be in the language of the whole.
            await self._speak(found[0].text or "")
        served = None if found is None else await self._served(found[0], budget_tokens)
        if found is None or served is None:
            self._calls.drop(call)
            return None
        return told(tool, found[0], served[0], found[1], self.notes.wording, whole=served[1])

    async def absorb(
        self,
        tool: str,
        input: object = None,  # noqa: A002 - the word users write
        result: object = None,
        *,
        archive_uuid: str | None = None,
        call_id: str | None = None,
    ) -> Absorbed:
        """Remember of a result what its rule says, and archive it if it is long.

        `archive_uuid` names the page of a result that was already archived: nothing is archived again, and
        the text comes back whole. A chunk with the `call_id` of a step is left out of windows that show the
        step itself.
        """
        call, rule = self._called(tool, input)
        await self.refresh()
        epoch = await self._epoch(None) if self._since is None else self._since
        size = len(result) if isinstance(result, str) else 0
        got = await off_loop(partial(Result.of, tool, call.arguments, result), size, _THREAD_FROM_CHARS)
        if await self._is_ours(got.text):
            return Absorbed(rule.remembers, 0, got.text, whole=False, archive_uuid=placeholder_uuid(got.text))
        await self._speak(got.text)
        page = await self._archived(got, rule) if archive_uuid is None else None
        uuid = archive_uuid if page is None else page.uuid
        rules = self._parts.rules
        short = len(got.text) <= rules.threshold
        told = {"tool": got.tool, ARCHIVED: uuid, "call_id": call_id}
        about = {name: value for name, value in told.items() if value is not None}
        # A concurrent call may have been faster or have reset everything: the oldest epoch applies to all
        # that is kept.
        self._since = epoch if self._since is None else min(epoch, self._since)
        async with self._noting:
            note = partial(remember, self.notes, rule, got, about, whole=short)
            chunks = await off_loop(note, len(got.text), _THREAD_FROM_CHARS)
            self._tasks.found(self.notes.relevant_chunks)
        while len(self.notes.toc_cache) > MAX_TOCS:
            self.notes.drop_toc(next(iter(self.notes.toc_cache)))
        lines = entries(toc_of(got.value)) if rule.remembers == "toc" else ()
        shown = outline(lines, rules.outline_chars, self.notes.wording.toc_more)
        if rule.cacheable and not shows_media(result):
            self._keep_call(call, got, uuid, shown)
        whole = page is None or short
        text = got.text if page is None or short else self._stand_in(page, shown)
        return Absorbed(rule.remembers, chunks, text, whole=whole, archive_uuid=uuid)

    # -- prompts ----------------------------------------------------------------------------------------------------

    def text(self, budget_tokens: int | None = None, placeheld: Collection[str] = ()) -> str:
        """The notes for a prompt: tables of contents at hand, then the best chunks; escaped, within a budget.

        Of the calls that the prompt shows, in full or as a placeholder (`placeheld`), only what a rule names is told again.
        """
        parts: list[str] = []
        for forms in (self.hint_forms(), *(forms for _, forms in self.chunk_forms(placeheld=placeheld))):
            for form in forms:
                told = "\n".join([*parts, form.text])
                if budget_tokens is None or self._parts.counter.count(told) <= budget_tokens:
                    parts.append(form.text)
                    break
        return "\n".join(parts)

    def hint_forms(self) -> tuple[Form, ...]:
        """The hint about tables of contents, from the fullest outline to none at all; empty if there are none."""
        most = self._parts.rules.outline_chars
        sizes = [most, *(size for size in _SHORTER_OUTLINES if size < most)]
        return self._forms(self.notes.toc_hint(size) for size in sizes)

    def chunk_forms(
        self, seen: Collection[str] = (), placeheld: Collection[str] = ()
    ) -> list[tuple[ContentChunk, tuple[Form, ...]]]:
        """The chunks for a prompt, best first, without those of the calls that are `seen` in it anyway.

        Beside a placeholder of its call (`placeheld`) a chunk is shown only if a rule names the tool. One that was found
        for an earlier question, in a turn that the prompt no longer shows, has to bear on this one.
        """
        shown = self.notes.shown(
            lambda one: one.metadata.get("call_id") in placeheld or self._tasks.concern(one)
        )
        unseen = [chunk for chunk in shown if chunk.metadata.get("call_id") not in seen]
        fresh = [one for one in unseen if one.metadata.get("call_id") not in placeheld or self._names(one)]
        return [(chunk, self._chunk_forms(chunk, place)) for place, chunk in enumerate(fresh, 1)]

    # -- reset ------------------------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Forget everything if the scope was erased since, in any process."""
        since = self._since
        if since is not None and await self._epoch(self._scope) > since and since == self._since:
            self.reset_all()

    def reset(self) -> None:
        """Forget the query and its chunks; tables of contents and cached calls stay."""
        self.notes.clear_query_context()
        self._tasks = Tasks()

    def reset_all(self) -> None:
        """Forget everything."""
        self.notes.reset()
        self._tasks = Tasks()
        self._calls.clear()
        self._since = None

    def trusted(self, unseen: int) -> "Workspace":
        """Returns self; clears cached answers if `unseen`, the number of calls it has not seen, has changed."""
        if unseen != self._unseen:
            self._calls.clear()
        self._unseen = unseen
        return self

    def changed(self, change: ToolCall) -> None:
        """Invalidate cached answers that the call may have changed, and notes from the files it names."""
        self._calls.changed(change)
        self.notes.forget_changed(change)

    def disregard(self, step: Step, *, error: bool) -> None:
        """Do not reuse the step's text: it is an error (drop its notes too), or it comes with images."""
        self._calls.drop(ToolCall.of(step.tool, step.input, self._defaults.get(step.tool, {})))
        chunks = self.notes.relevant_chunks
        chunks[:] = [one for one in chunks if not error or one.metadata.get("call_id") != step.call_id]

    # -- inside -----------------------------------------------------------------------------------------------------

    def _called(self, tool: str, given: object) -> tuple[ToolCall, ToolRule]:
        """A call and its rule; one that may change something ends the answers it concerns."""
        call = ToolCall.of(tool, given, self._defaults.get(tool, {}))
        rule = self.rule(*call)
        if rule.changes:
            (self._spread or self.changed)(call)
        return call, rule

    def _put_in(self, call: ToolCall, rule: ToolRule) -> tuple[Answer, float] | None:
        """A table of contents that was put into the notes by hand."""
        toc = self.notes.given_toc(document_of(None, call.arguments)) if rule.remembers == "toc" else None
        return None if toc is None else (Answer(json.dumps(toc, ensure_ascii=False), None), 0.0)

    async def _speak(self, seen: str) -> None:
        """Use the language of the conversation from now on."""
        texts = self.notes.current_query, seen[:_SEEN_CHARS]
        self.notes.language = await self._parts.languages.of(self._scope, *texts)

    async def _epoch(self, scope: Scope | None) -> int:
        """The number of the last erasure; if the store cannot tell, 0, so that any erasure counts as later."""
        try:
            return await self._parts.epoch(scope)
        except PagefileError as error:
            self._failed(error)
            return 0

    async def _is_ours(self, text: str) -> bool:
        """Whether a result is one of our own earlier answers, which must not be mistaken for the tool's.

        Anyone can imitate how our answers begin. But ours are never long, and the page they name exists.
        """
        rules = self._parts.rules
        if len(text) > rules.threshold + rules.outline_chars + _MOST_AROUND:
            return False
        if (uuid := placeholder_uuid(text)) is None:
            return text.startswith(_CACHED)
        try:
            await self._parts.archive.page(self._scope, uuid)
        except HandleNotFoundError:
            return False
        except PagefileError as error:
            self._failed(error)
        return True

    async def _archived(self, got: Result, rule: ToolRule) -> Page | None:
        """A long result as a page, the same one for the same call and result; None if the store is down."""
        rules = self._parts.rules
        ruled = rule.remembers != "nothing" or rule.cacheable
        most = min(rules.page_from, rules.threshold) if ruled else rules.threshold
        if len(got.text) <= most or is_quoted(got.tool, got.text):
            return None
        call_id = f"{got.tool} {canonical(got.given)}"[:200]
        step = Step(got.tool[:100] or "tool", got.given, got.text, call_id)
        try:
            return await self._parts.archive.archived(self._scope, step, f"workspace {self.run}")
        except PagefileError as error:
            if type(error) is ConflictError:
                # The conversation belongs to another user: nothing has failed, and nothing is kept of it.
                raise
            self._failed(error)
            return None

    def _keep_call(self, call: ToolCall, got: Result, uuid: str | None, shown: str) -> None:
        """Short results are kept in memory, long ones only in the archive; what cannot be kept ends the older one."""
        at_hand = len(got.text) <= (HELD_CHARS if uuid is None else self._parts.rules.threshold)
        if not got.failed and (at_hand or uuid is not None):
            self._calls.keep(call, Answer(got.text if at_hand else None, uuid, shown))
        else:
            self._calls.drop(call)

    async def _served(self, call: Answer, budget_tokens: int | None) -> tuple[str, bool] | None:
        """The answer to a repeated call, and whether it is complete; None if its page is gone or unreachable."""
        archive, count = self._parts.archive, self._parts.counter.count
        threshold = self._parts.rules.threshold
        text, uuid = call.text or "", call.archive_uuid
        fits = len(text) <= threshold if budget_tokens is None else count(text) <= budget_tokens
        if call.text is not None and fits:
            return text, True
        if uuid is None:
            # It could not be archived: its outline, its head and its tail.
            told = "\n".join(part for part in (call.outline, clip(text, threshold)) if part)
            if budget_tokens is not None:
                told = fitting_slice(told, 0, None, max(1, budget_tokens), count)
            return told, False
        try:
            page = await archive.page(self._scope, uuid)
            if budget_tokens is not None and page.tokens <= budget_tokens:
                return (await archive.load(self._scope, uuid))[1], True
        except PagefileError as error:
            if not isinstance(error, HandleNotFoundError):
                self._failed(error)
            return None
        return None if page.purged else (self._stand_in(page, call.outline, budget_tokens), False)

    def _stand_in(self, page: Page, shown: str, budget_tokens: int | None = None) -> str:
        """The placeholder of a page, with the outline of a table of contents if there is room."""
        count, wording = self._parts.counter.count, self.notes.wording
        long = placeholder(page, count, wording)
        for text in (f"{long}\n{shown}" if shown else long, long):
            if budget_tokens is None or count(text) <= budget_tokens:
                return text
        return short_placeholder(page, wording)

    def _names(self, chunk: ContentChunk) -> bool:
        return any(rule.matches(str(chunk.metadata.get("tool"))) for rule in self._tools)

    def _chunk_forms(self, chunk: ContentChunk, place: int) -> tuple[Form, ...]:
        uuid = chunk.metadata.get(ARCHIVED)
        lines = [self.notes.wording.notes_title] if place == 1 else []
        more = [self.notes.wording.notes_page.format(uuid=uuid)] if uuid else []
        contents = (chunk.content, cut(chunk.content, _SHORTER_CHUNK))
        texts = ([*lines, chunk_text(place, chunk.source, content), *more] for content in contents)
        return self._forms("\n".join(text) for text in texts)

    def _forms(self, texts: Iterable[str]) -> tuple[Form, ...]:
        """Texts from the fullest to the shortest, escaped, each once."""
        told = zip(dict.fromkeys(escape(text) for text in texts), ("full", "short", "bare"), strict=False)
        # Count the line break that joins it to what follows as one token.
        count = self._parts.counter.count
        return tuple(Form(count(text) + 1, text=text, name=name) for text, name in told if text)

    def _failed(self, error: Exception) -> None:
        first, self._told = not self._told, True
        self._parts.on_failure(error, first)


#: The most characters a cached answer adds to the result: the line above it, or a placeholder with its
#: outline.
_MOST_AROUND = 4_000
#: How a cached answer begins, in both languages.
_CACHED = tuple(wording.cached.partition("{")[0] for wording in WORDINGS.values())
