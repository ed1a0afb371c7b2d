"""The checks of a verification, each for one kind of data: pages and attachments that the log refers to, terms and vectors
derived from it, and what is stored beside it: sessions, recorded windows, facts."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import anyio.to_thread

from pagefile import errors
from pagefile.content import media_in
from pagefile.engine.log_queries import all_pages, facts_of
from pagefile.engine.replay import UNNOTED, rebuilt
from pagefile.engine.verification.findings import Check, Finding, at, at_entry
from pagefile.ports import (
    UNREADABLE,
    ConversationQuery,
    KeptConversation,
    KeptEntry,
    KeptPage,
    Lengths,
    SinceRequest,
)
from pagefile.records import Checkpoint, Fact, Page, Revision, Scope, Step, Turn, WindowRecord
from pagefile.shapes.media import note
from pagefile.stores import head_version
from pagefile.text.fact_rules import own_words
from pagefile.text.passages import split
from pagefile.text.speech import blended, embedded_texts
from pagefile.tiers.page_in import LOADING_TOOLS
from pagefile.tiers.page_search import segmented
from pagefile.tiers.turn_index import ANALYZER, Terms, TurnVectors, terms_of
from pagefile.window.receipt import Receipt, receipt_from

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(slots=True)
class Pages(Check):
    """Checks the pages that a log refers to, and what is in them."""

    #: Pages that a turn loaded from another conversation and that were erased with it.
    erased: set[str] = field(default_factory=set[str])

    # -- references -----------------------------------------------------------------------------------------------------

    async def refs(self, scope: Scope, rows: Sequence[KeptEntry]) -> list[Finding]:
        entries = [row.entry for row in rows]
        steps = [(turn, step) for turn in entries if isinstance(turn, Turn) for step in turn.steps]
        refs = [(mark, ref) for mark in entries if isinstance(mark, Checkpoint) for ref in mark.archive_refs]
        named = {uuid for _, step in steps for uuid in step.pages} | {ref for _, ref in refs}
        self.tally.checked["references"] += len(named)
        there = await self.audit.lengths(scope.tenant, sorted(named)) if named else {}
        found = [finding for turn, step in steps for finding in self._step(turn, step, there)]
        for mark, ref in refs:
            if ref not in there and ref not in self.erased:
                what = f"checkpoint {mark.id!r} names a page that is not there"
                found.append(at_entry(mark, "damage", "page-ref", what, page=ref))
        return found

    def _step(self, turn: Turn, step: Step, there: dict[str, Lengths]) -> Iterator[Finding]:
        told = partial(at_entry, turn, page=step.page)
        call = f"the result of call {step.call_id!r} in turn {turn.id!r}"
        if step.lost_chars:
            what = f"{call} was cut when it was recorded: {step.lost_chars:,} characters were never archived"
            yield told("note", "log-cut", what)
        for pointer, uuid in step.input_pages.items():
            if uuid not in there:
                what = f"the argument {pointer!r} of call {step.call_id!r} in turn {turn.id!r} is in a page that is not there"
                yield at_entry(turn, "damage", "page-ref", what, page=uuid)
        if step.page is None:
            if not step.whole:
                yield told("damage", "page-ref", f"{call} is a placeholder that names no page")
        elif step.page not in there:
            if step.tool in LOADING_TOOLS:
                self.erased.add(step.page)
                yield told("note", "page-erased", f"{call} was loaded from a page that is gone")
            else:
                yield told("damage", "page-ref", f"{call} is in a page that is not there")
        elif step.page_chars and step.page_chars != (length := there[step.page].length):
            what = f"{call} had {step.page_chars:,} characters, and its page says {length:,}"
            yield told("damage", "page-ref", what)

    # -- pages ----------------------------------------------------------------------------------------------------------

    async def look(self, kept: KeptPage) -> list[Finding]:
        self.tally.checked["pages"] += 1
        page = kept.page
        if page is None:
            what = f"its row cannot be read: {kept.trouble}"
            return [at(Scope(kept.tenant), "damage", "page-unreadable", what, page=kept.uuid)]
        changed = "its row is not as it was written: what it says has another digest"
        found = [at(page.scope, "damage", "page-digest", changed, page=page.uuid)] if kept.altered else []
        return found + await self._text(kept, page)

    async def _text(self, kept: KeptPage, page: Page) -> list[Finding]:
        told = partial(at, page.scope, page=page.uuid)
        if page.purged is not None:
            what = f"the text of this {page.tool!r} result was purged on {page.purged:%Y-%m-%d}"
            return [told("note", "page-purged", what)]
        anyones = Scope(kept.tenant)
        try:
            _, text = await self.engine.store.pages.load(anyones, page.uuid)
        except errors.StoreCorruptError as error:
            return [told("damage", "page-text", str(error))]
        except errors.HandleNotFoundError:
            return []  # purged or erased meanwhile
        self.tally.checked["page bytes"] += kept.blob_bytes or 0
        wrong = await anyio.to_thread.run_sync(partial(wrong_text, kept, page, text))
        if wrong is not None:
            # Its passages may match the original text: nothing is derived from the damaged one.
            return [told("damage", "page-text", wrong)]
        found: list[Finding] = []
        if page.stored_bytes != kept.blob_bytes:
            if self.repair:
                await self.audit.set_bytes(kept.tenant, page.uuid)
            what = f"says that its text takes {page.stored_bytes} bytes, and it takes {kept.blob_bytes}"
            found.append(told("derived", "page-size", what, mended=self.repair))
        if (await self.audit.copy(kept.tenant, page.uuid)) not in (None, text):
            if self.repair:
                await self.audit.set_copy(kept.tenant, page.uuid, text)
            what = "the plain copy for other programs (`result_full`) differs from its text"
            found.append(told("derived", "page-copy", what, mended=self.repair))
        wrong = await self._wrong_passages(anyones, page.uuid, text)
        return found if wrong is None else [*found, told("derived", "passages", wrong, mended=self.repair)]

    async def _wrong_passages(self, scope: Scope, uuid: str, text: str) -> str | None:
        index = self.engine.store.page_index
        rows = await index.read(scope, [uuid])
        if not rows:
            return None
        spans, terms = rows[0].spans, rows[0].terms
        self.tally.checked["passages"] += len(spans)
        if not tiles(spans, len(text)):
            if self.repair:
                made = [(passage.start, passage.end) for passage in split(text)]
                await self.audit.set_spans(scope.tenant, uuid, made)
            return "its passages, joined, are not its text"
        if terms is None or not self.sampled(self.tally.checked["pages"]):
            return None
        own = await anyio.to_thread.run_sync(partial(segmented, text, spans))
        if own == tuple(terms):
            return None
        if self.repair:
            await index.write(scope, uuid, own)
        return "its passages have terms that are not their own"


def wrong_text(kept: KeptPage, page: Page, text: str) -> str | None:
    """What is wrong with a page's text; None if it is byte for byte what was archived."""
    if len(text) != page.length:
        return f"its text has {len(text)} characters, and had {page.length}"
    digest = _digest(text.encode())
    # Code that fills a store without an archive may use other kinds of hashes.
    known = {hash_ for hash_ in (page.content_hash, kept.blob) if hash_ and _SHA256.fullmatch(hash_)}
    if known - {digest}:
        return f"its text has the SHA-256 {digest}, and had {', '.join(sorted(known - {digest}))}"
    return None


def tiles(spans: Sequence[tuple[int, int]], length: int) -> bool:
    """Whether the passages, joined, are the whole text."""
    ends = [0, *(end for _, end in spans)]
    return ends[-1] == length and all(
        start == before <= end for (start, end), before in zip(spans, ends, strict=False)
    )


async def wrong_attachments(check: Check, turn: Turn) -> list[Finding]:
    """Checks the bytes of a turn's images and files."""
    told = partial(at_entry, turn, "damage")
    found: list[Finding] = []
    named = {media.blob: media for media in media_in(turn.messages) if media.blob is not None}
    check.tally.checked["attachments"] += len(named)
    for blob, media in named.items():
        what = f"{note(media)} in turn {turn.id!r}"
        try:
            data = await check.engine.store.media.load(turn.scope, blob)
        except errors.NotFoundError:
            found.append(told("media-ref", f"the bytes of {what} are not there"))
        except errors.StoreCorruptError as error:
            found.append(told("media-bytes", f"{what}: {error}"))
        else:
            if (digest := await anyio.to_thread.run_sync(_digest, data)) != blob:
                what = f"the bytes of {what} have the SHA-256 {digest}, and had {blob}"
                found.append(told("media-bytes", what))
    return found


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def wrong_terms(
    check: Check, kept: KeptConversation, after: int, turns: Sequence[Turn], epoch: int
) -> list[Finding]:
    """Checks that the done turns that follow `after` up to the watermark have their terms, and that they match.

    Missing terms are recomputed. Different terms are evidence that the text was different when they were
    computed: they carry the version of the analyzer, so only a manual change explains the difference, and
    they are never overwritten here.
    """
    terms = Terms(check.engine.store.terms)
    request = SinceRequest(kept.scope, {kept.scope.conversation or "": after}, len(turns))
    try:
        rows = await terms.store.since(request, ANALYZER)
    except (*UNREADABLE, errors.StoreCorruptError):
        return []  # an unreadable turn, reported with the log
    known = {row.seq: (row.said, row.answered) for row in rows if row.said is not None}
    check.tally.checked["terms"] += len(known)
    lacking = {row.seq for row in rows if row.said is None and row.seq <= kept.marks.get(terms.tier, 0)}
    missing = [turn for turn in turns if turn.seq in lacking]
    sample = [turn for turn in turns if check.sampled(turn.seq or 0)]
    made = await anyio.to_thread.run_sync(partial(terms_of, sample))
    own = {row.seq: (row.said, row.answered) for row in made}
    if check.repair and missing:
        try:
            await terms.take(missing, epoch=epoch)
        except errors.ErasedError:
            return []  # nothing to report about what is gone
    found = [_of(turn, "terms", "has no terms", mended=check.repair) for turn in missing]
    for turn in sample:
        if turn.seq in known and known[turn.seq] != own.get(turn.seq):
            what = f"the words of turn {turn.id!r} are not those that its terms were made of: one or the other was changed"
            found.append(at_entry(turn, "damage", "log-terms", what))
    return found


@dataclass(slots=True)
class Vectors(Check):
    """Checks that every done turn up to the watermark that says anything has a vector that can be found."""

    #: None once it is reported that they are not checked.
    vectors: TurnVectors | None

    async def begin(self) -> list[Finding]:
        if self.vectors is None:
            return []
        try:
            _, others = await self.vectors.collections()
        except errors.PagefileError as error:
            return self._without(f"vectors cannot be looked at: {error}")
        told = ", ".join(f"{collection.model.key} ({collection.vectors:,})" for collection in others)
        return [Finding("note", "vectors", f"there are vectors of other embedders: {told}")] if told else []

    async def look(
        self, kept: KeptConversation, after: int, turns: Sequence[Turn], epoch: int
    ) -> list[Finding]:
        """Check those of the turns that follow `after` in the log."""
        vectors = self.vectors
        mark = 0 if vectors is None else kept.marks.get(vectors.tier, 0)
        if vectors is None or not mark:
            return []
        try:
            last = max(turn.seq or 0 for turn in turns)
            held = await vectors.index.held(vectors.embedder.model, kept.scope, after, last)
            if held is None:
                return self._without(f"{vectors.index.name} does not tell which turns have vectors")
            self.tally.checked["vectors"] += len(held)
            right = {(one.seq, one.turn_id) for one in held if one.fits}
            there = {one.seq for one in held}
            lacking = [turn for turn in turns if (turn.seq or 0) <= mark and (turn.seq, turn.id) not in right]
            wrong = [turn for turn in lacking if turn.seq in there or await _speaks(vectors, turn)]
            if self.repair and wrong:
                await vectors.take(wrong, epoch=epoch)
        except errors.ErasedError:
            return []
        except errors.PagefileError as error:
            return self._without(f"vectors cannot be looked at: {error}")
        unfound = "has a vector that cannot be found"
        return [
            _of(turn, "vector", unfound if turn.seq in there else "has no vector", mended=self.repair)
            for turn in wrong
        ]

    def _without(self, what: str) -> list[Finding]:
        """Report once that vectors are not checked."""
        self.vectors = None
        return [Finding("note", "vectors", what)]


async def _speaks(vectors: TurnVectors, turn: Turn) -> bool:
    """Whether a turn has anything to embed: punctuation alone does not count."""
    texts = embedded_texts(turn.user, turn.assistant)
    return bool(texts) and bool(blended(list(await vectors.embedder.embed(texts))).any())


def _of(turn: Turn, kind: str, what: str, *, mended: bool) -> Finding:
    return at_entry(turn, "derived", kind, f"turn {turn.id!r} {what}", mended=mended)


#: Without `full`, the newest window of this many conversations is rebuilt.
SAMPLED = 100
#: How often something is read again because it was written to.
MOST_ATTEMPTS = 5
_ALL = 1_000_000


async def wrong_session(check: Check, scope: Scope) -> list[Finding]:
    """Checks that the session value is readable, and that the cache agrees with the database."""
    sessions, cache, reader = check.engine.sessions, check.engine.cache, check.engine.store.reader
    try:
        value = await check.engine.store.sessions.get(scope)
    except (*UNREADABLE, errors.StoreCorruptError) as error:
        return [at(scope, "damage", "session", f"the session cannot be read: {error!r}")]
    except errors.ConflictError:
        return []  # it got another owner meanwhile
    check.tally.checked["sessions"] += value is not None
    if cache is None:
        return []
    await sessions.prepare()
    cached, heads = await cache.get(scope), await reader.heads(ConversationQuery(scope, 1))
    # A cached value of another version is never used, so its content does not matter.
    if cached is None or not heads or cached.version != head_version(heads[0]):
        return []
    try:
        if cached.value == await sessions.from_store(scope):
            return []
    except (*UNREADABLE, errors.StoreCorruptError):
        return []  # of the turns beside it, which have findings of their own
    if check.repair:
        await cache.drop(scope)
    what = "the session in the cache is not the database's"
    return [at(scope, "derived", "session-cache", what, mended=check.repair)]


@dataclass(slots=True)
class Calls(Check):
    """Checks that recorded windows can be rebuilt from the log."""

    #: When an owner's pages were last purged; None if never.
    purges: dict[Scope, datetime | None] = field(default_factory=dict[Scope, datetime | None])

    async def look(self, scope: Scope) -> list[Finding]:
        """Check all of a conversation's calls, or the newest of the first conversations."""
        if not self.full and self.tally.checked["calls"] >= SAMPLED:
            return []
        try:
            calls = await self.engine.store.calls.list(scope, limit=_ALL if self.full else 1)
        except (*UNREADABLE, errors.StoreCorruptError) as error:
            return [at(scope, "note", "call-unreadable", f"its recorded calls cannot be read: {error!r}")]
        self.tally.checked["calls"] += len(calls)
        return [finding for call in calls for finding in await self._again(scope, call)]

    async def _again(self, scope: Scope, call: WindowRecord) -> list[Finding]:
        try:
            again = await rebuilt(self.engine, call)
        except errors.NotFoundError as error:
            what = f"the window of call {call.id!r} cannot be rebuilt: {error}"
            return [at(scope, "damage", "call", what, turn=call.turn_id)]
        except (*UNREADABLE, errors.PagefileError) as error:
            # A damaged page is reported with the pages; a setting that no longer exists, or an unreadable
            # call, does no harm.
            return [at(scope, "note", "call-unreadable", f"call {call.id!r} cannot be rebuilt: {error!r}")]
        if again is None or again.exact:
            return []
        if UNNOTED in again.why or await self._lost_something(call, again.made.window.receipt):
            told = "; ".join(again.why) or "nothing tells why"
            what = f"the window of call {call.id!r} is different when rebuilt today: {told}"
            return [at(scope, "note", "call-differs", what, turn=call.turn_id)]
        what = (
            f"the window of call {call.id!r} cannot be rebuilt: its messages have another hash, and nothing it was built from "
            "was purged or erased, so either a text was changed or another version of Pagefile made it"
        )
        return [at(scope, "note", "call-changed", what, turn=call.turn_id)]

    async def _lost_something(self, call: WindowRecord, now: Receipt) -> bool:
        """Whether something that a window was built from no longer exists: a candidate, or the text of a page."""
        there = {verdict.id for verdict in now}
        if any(verdict.id not in there for verdict in receipt_from(call.receipt)):
            return True
        scope = call.scope
        # Pages may come from any conversation of the user.
        owner = scope if scope.user is None else Scope(scope.tenant, scope.user)
        if owner not in self.purges:
            purged = [page.purged async for page in all_pages(self.engine.store.pages, owner)]
            self.purges[owner] = max(filter(None, purged), default=None)
        last = self.purges[owner]
        return last is not None and last >= call.at


async def wrong_facts(check: Check, owner: Scope) -> list[Finding]:
    """Checks that a user's facts follow from their changes and were read where they say, unless they change all the time."""
    told = partial(at, owner, "damage")
    try:
        facts, revisions, consistent = await facts_of(check.engine.store.facts, owner)
    except (*UNREADABLE, errors.StoreCorruptError) as error:
        return [told("facts-unreadable", f"facts cannot be read: {error!r}")]
    if not consistent:
        return []
    check.tally.checked["facts"] += len(facts)
    check.tally.checked["revisions"] += len(revisions)
    altered, changed = await check.audit.altered_facts(owner), "was changed after it was written"
    return [
        *(told("fact-chain", f"fact {id_!r}: {what}") for id_, what in broken_chain(facts, revisions)),
        *(told("fact-digest", f"fact {id_!r} {changed}") for id_ in altered),
        *[finding for fact in facts for finding in await _wrong_source(check, fact)],
    ]


async def _wrong_source(check: Check, fact: Fact) -> list[Finding]:
    """Checks the turn a fact was read in. A fact given by a caller may name a turn from elsewhere."""
    if fact.source_turn is None or fact.scope.conversation is None:
        return []
    scope = Scope(fact.scope.tenant, None, fact.scope.conversation)
    kept = await check.audit.entry(scope, fact.source_turn)
    if kept is None:
        what = f"fact {fact.id!r} was read in turn {fact.source_turn!r}, which does not exist"
        return [at(fact.scope, "damage", "fact-source", what, turn=fact.source_turn)]
    turn, quote = kept.entry, fact.source_quote
    if isinstance(turn, Turn) and quote and not is_quoted(quote, turn):
        what = f"fact {fact.id!r} was read in turn {turn.id!r}, where its quote {quote!r} is not"
        return [at(fact.scope, "damage", "fact-quote", what, turn=turn.id, seq=turn.seq)]
    return []


def is_quoted(quote: str, turn: Turn) -> bool:
    said = turn.user or ""
    return quote in said or quote in own_words(said) or quote in (turn.assistant or "")


def broken_chain(facts: Sequence[Fact], revisions: Sequence[Revision]) -> Iterator[tuple[str, str]]:
    """Facts whose changes do not follow from one another or do not lead to the current state, with what is wrong."""
    became: dict[str, Fact] = {}
    told: set[str] = set()
    for revision in revisions:
        for before, after in zip(revision.before, revision.after, strict=True):
            known = became.get(after.id)
            if known is not None and before != known and after.id not in told:
                told.add(after.id)
                yield after.id, f"revision {revision.number} does not continue from the one before it"
            became[after.id] = after
    held = {fact.id: fact for fact in facts}
    for fact_id, last in became.items():
        if fact_id not in held:
            yield fact_id, "its changes exist, but it does not"
        elif held[fact_id] != last and fact_id not in told:
            yield fact_id, "it does not match its last change"
