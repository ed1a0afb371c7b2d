"""What the log refers to: every page, image and file exists, and is byte for byte what was stored."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import anyio.to_thread

from pagefile.content import Media, media_in
from pagefile.engine.verification.findings import Check, Finding, at, at_entry
from pagefile.errors import HandleNotFoundError, NotFoundError, StoreCorruptError
from pagefile.ports import KeptEntry, KeptPage, Lengths
from pagefile.records import Checkpoint, Page, Scope, Step, Turn
from pagefile.shapes import note
from pagefile.text.passages import split
from pagefile.tiers.page_in import segmented
from pagefile.tiers.page_text import LOADING_TOOLS

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(slots=True)
class Pages(Check):
    """Checks references and pages."""

    #: Pages that a turn loaded from another conversation and that were erased with it.
    erased: set[str] = field(default_factory=set[str])

    # -- references -----------------------------------------------------------------------------------------------------

    async def refs(self, scope: Scope, rows: Sequence[KeptEntry]) -> list[Finding]:
        """Check every page that a slice of a log refers to."""
        entries = [row.entry for row in rows]
        steps = [(turn, step) for turn in entries if isinstance(turn, Turn) for step in turn.steps]
        refs = [(mark, ref) for mark in entries if isinstance(mark, Checkpoint) for ref in mark.archive_refs]
        named = {step.page for _, step in steps if step.page} | {ref for _, ref in refs}
        self.tally.checked["references"] += len(named)
        there = await self.audit.lengths(scope.tenant, sorted(named)) if named else {}
        found = [finding for turn, step in steps for finding in self._step(turn, step, there)]
        return found + [
            at_entry(
                mark, "damage", "page-ref", f"checkpoint {mark.id!r} names a page that is not there", page=ref
            )
            for mark, ref in refs
            if ref not in there and ref not in self.erased
        ]

    def _step(self, turn: Turn, step: Step, there: dict[str, Lengths]) -> Iterator[Finding]:
        told = partial(at_entry, turn, page=step.page)
        call = f"the result of call {step.call_id!r} in turn {turn.id!r}"
        if step.lost_chars:
            what = f"{call} was cut when it was recorded: {step.lost_chars:,} characters were never archived"
            yield told("note", "log-cut", what)
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
        except StoreCorruptError as error:
            return [told("damage", "page-text", str(error))]
        except HandleNotFoundError:
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


class Attachments(Check):
    """Checks the bytes that turns refer to."""

    async def look(self, turns: Iterable[Turn]) -> list[Finding]:
        named = [
            (turn, media, blob)
            for turn in turns
            for blob, media in {media.blob: media for media in media_in(turn.messages)}.items()
            if blob is not None
        ]
        self.tally.checked["attachments"] += len(named)
        return [finding for one in named for finding in await self._one(*one)]

    async def _one(self, turn: Turn, media: Media, blob: str) -> list[Finding]:
        told = partial(at_entry, turn, "damage")
        what = f"{note(media)} in turn {turn.id!r}"
        try:
            data = await self.engine.store.media.load(turn.scope, blob)
        except NotFoundError:
            return [told("media-ref", f"the bytes of {what} are not there")]
        except StoreCorruptError as error:
            return [told("media-bytes", f"{what}: {error}")]
        digest = await anyio.to_thread.run_sync(_digest, data)
        if digest != blob:
            return [told("media-bytes", f"the bytes of {what} have the SHA-256 {digest}, and had {blob}")]
        return []


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
