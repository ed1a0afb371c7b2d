"""Archived pages: every page the log refers to exists, and every text is what was archived."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import anyio.to_thread

from pagefile.engine.engine import Engine
from pagefile.engine.verifying.comparing import tiles, wrong_text
from pagefile.engine.verifying.findings import Finding, Tally, at
from pagefile.errors import HandleNotFoundError, StoreCorruptError
from pagefile.ports import Auditor, KeptEntry, KeptPage, Lengths
from pagefile.records import Checkpoint, Page, Scope, Step, Turn
from pagefile.text.passages import split
from pagefile.tiers.page_text import LOADING_TOOLS
from pagefile.tiers.paging import segmented

#: Without `full`, the terms of one page in this many are recomputed.
SAMPLE = 20


class Pages:
    """Checks references and pages."""

    def __init__(self, engine: Engine, audit: Auditor, *, full: bool, repair: bool) -> None:
        self._store = engine.store
        self._audit = audit
        self._full = full
        self._repair = repair
        #: Pages that a turn loaded from another conversation and that were erased with it.
        self._erased: set[str] = set()

    # -- references -----------------------------------------------------------------------------------------------------

    async def refs(self, scope: Scope, rows: Sequence[KeptEntry], tally: Tally) -> list[Finding]:
        """Check every page that a slice of a log refers to."""
        entries = [row.entry for row in rows]
        steps = [(turn, step) for turn in entries if isinstance(turn, Turn) for step in turn.steps]
        marks = [entry for entry in entries if isinstance(entry, Checkpoint)]
        named = {step.page for _, step in steps if step.page} | {
            ref for one in marks for ref in one.archive_refs
        }
        tally.checked["references"] += len(named)
        there = await self._audit.lengths(scope.tenant, sorted(named)) if named else {}
        found: list[Finding] = []
        for turn, step in steps:
            found += self._step(turn, step, there)
        for one in marks:
            lost = [ref for ref in one.archive_refs if ref not in there and ref not in self._erased]
            found += [
                at(
                    scope,
                    "damage",
                    "page-ref",
                    f"checkpoint {one.id!r} names a page that is not there",
                    turn=one.id,
                    seq=one.seq,
                    page=ref,
                )
                for ref in lost
            ]
        return found

    def _step(self, turn: Turn, step: Step, there: dict[str, Lengths]) -> list[Finding]:
        told = partial(at, turn.scope, turn=turn.id, seq=turn.seq, page=step.page)
        call = f"the result of call {step.call_id!r} in turn {turn.id!r}"
        found: list[Finding] = []
        if step.lost_chars:
            what = f"{call} was cut when it was recorded: {step.lost_chars:,} characters were never archived"
            found.append(told("note", "log-cut", what))
        if step.page is None:
            if not step.whole:
                found.append(told("damage", "page-ref", f"{call} is a placeholder that names no page"))
        elif step.page not in there:
            if step.tool in LOADING_TOOLS:
                self._erased.add(step.page)
                found.append(told("note", "page-erased", f"{call} was loaded from a page that is gone"))
            else:
                found.append(told("damage", "page-ref", f"{call} stands in a page that is not there"))
        elif step.page_chars and step.page_chars != there[step.page].length:
            length = there[step.page].length
            what = f"{call} had {step.page_chars:,} characters, and its page says {length:,}"
            found.append(told("damage", "page-ref", what))
        return found

    # -- pages ----------------------------------------------------------------------------------------------------------

    async def look(self, kept: KeptPage, tally: Tally) -> list[Finding]:
        """Check one page: its row, its text, its passages."""
        tally.checked["pages"] += 1
        page = kept.page
        if page is None:
            what = f"its row cannot be read: {kept.trouble}"
            return [at(Scope(kept.tenant), "damage", "page-unreadable", what, page=kept.uuid)]
        told = partial(at, page.scope, page=page.uuid)
        changed = "its row is not as it was written: what it says has another digest"
        found = [told("damage", "page-digest", changed)] if kept.altered else []
        return found + await self._text(kept, page, tally)

    async def _text(self, kept: KeptPage, page: Page, tally: Tally) -> list[Finding]:
        told = partial(at, page.scope, page=page.uuid)
        if page.purged is not None:
            what = f"the text of this {page.tool!r} result was purged on {page.purged:%Y-%m-%d}"
            return [told("note", "page-purged", what)]
        anyones = Scope(kept.tenant)
        try:
            _, text = await self._store.pages.load(anyones, page.uuid)
        except StoreCorruptError as error:
            return [told("damage", "page-text", str(error))]
        except HandleNotFoundError:
            return []  # purged or erased meanwhile
        tally.checked["page bytes"] += kept.blob_bytes or 0
        wrong = await anyio.to_thread.run_sync(partial(wrong_text, kept, page, text))
        if wrong is not None:
            # Its passages may match the original text: nothing is derived from the damaged one.
            return [told("damage", "page-text", wrong)]
        found: list[Finding] = []
        if page.stored_bytes != kept.blob_bytes:
            if self._repair:
                await self._audit.set_bytes(kept.tenant, page.uuid)
            what = f"says that its text takes {page.stored_bytes} bytes, and it takes {kept.blob_bytes}"
            found.append(replace(told("derived", "page-size", what), mended=self._repair))
        return found + await self._passages(anyones, page, text, tally)

    async def _passages(self, scope: Scope, page: Page, text: str, tally: Tally) -> list[Finding]:
        rows = await self._store.page_index.read(scope, [page.uuid])
        if not rows:
            return []
        spans, terms = rows[0].spans, rows[0].terms
        tally.checked["passages"] += len(spans)
        what: str | None = None
        if not tiles(spans, len(text)):
            what = "its passages, joined, are not its text"
            if self._repair:
                made = [(passage.start, passage.end) for passage in split(text)]
                await self._audit.set_spans(scope.tenant, page.uuid, made)
        elif terms is not None and (self._full or tally.checked["pages"] % SAMPLE == 1):
            own = await anyio.to_thread.run_sync(partial(segmented, text, spans))
            if own != tuple(terms):
                what = "its passages have terms that are not their own"
                if self._repair:
                    await self._store.page_index.write(scope, page.uuid, own)
        if what is None:
            return []
        return [replace(at(page.scope, "derived", "passages", what, page=page.uuid), mended=self._repair)]
