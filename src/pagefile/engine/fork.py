"""Forking: a conversation that continues from an earlier turn of another one."""

from collections import ChainMap
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from pagefile.engine.engine import Engine
from pagefile.engine.log_queries import KINDS, entries_of
from pagefile.engine.messages import Desk
from pagefile.errors import ConflictError, HandleNotFoundError
from pagefile.ports import EntryQuery, LogReader, ViewRequest, labels_of
from pagefile.records import Checkpoint, Entry, Scope, Step, Turn
from pagefile.stores.rules import no_turn
from pagefile.tiers.archive import Archive
from pagefile.window.measure import measured_step, step_tokens

_SLICE = 1_000


async def forked(desk: Desk, turn_id: str, *, name: str, before: bool) -> Scope:
    """Copy the log up to a turn (or up to the one before it) into a new conversation, and return its scope."""
    engine, scope, reader = desk.engine, desk.scope, desk.engine.store.reader
    # Checked before anything is copied; a concurrent writer is detected when the log is written.
    if await reader.owner(replace(scope, conversation=name)):
        raise ConflictError(f"There is a conversation {name!r} already: fork into a new one.")
    head = (await reader.view(ViewRequest(scope, budget_tokens=0, min_turns=0))).head
    marks = await _marks(engine, scope)
    entries = await _entries(reader, scope, turn_id, before=before)
    there = Scope(scope.tenant, head.scope.user, name)
    copy = _Copy(engine, scope, there, head.epoch)
    try:
        copies = [await copy.of(entry) for entry in entries]
        last = max((entry.seq or 0 for entry in copies), default=0)
        blobs = [await desk.blobs(entry) for entry in entries if isinstance(entry, Turn)]
        await engine.store.log.restore(
            copies,
            agent=head.agent,
            labels=labels_of(head),
            blobs=dict(ChainMap(*blobs)),
            marks={tier: min(seq, last) for tier, seq in marks.items()},
            expect_empty=True,
            epoch=head.epoch,
            origin=scope,
        )
    except ConflictError:
        await copy.withdraw()
        raise
    return there


async def _marks(engine: Engine, scope: Scope) -> dict[str, int]:
    """Watermarks of the tiers that read each turn only once."""
    known = engine.store.watermarks.known
    names = [tier.reads_once for tier in engine.tiers if tier.reads_once is not None]
    return {name: (await known(scope, name)).get(scope.conversation or "", 0) for name in names}


async def _entries(reader: LogReader, scope: Scope, turn_id: str, *, before: bool) -> list[Entry]:
    """All ended entries up to the turn; an open turn comes last of all."""
    found: list[Entry] = []
    async for entry in entries_of(reader, EntryQuery(scope, frozenset(KINDS), limit=_SLICE)):
        if isinstance(entry, Turn) and entry.id == turn_id:
            return found if before else [*found, entry]
        if entry.seq is not None:
            found.append(entry)
    raise no_turn(turn_id)


class _Copy:
    def __init__(self, engine: Engine, scope: Scope, there: Scope, epoch: int) -> None:
        self.engine, self.epoch = engine, epoch
        self.scope, self.there = scope, there
        #: The copies of pages, by their uuid in the original log.
        self.pages: dict[str, str] = {}

    async def of(self, entry: Entry) -> Entry:
        if isinstance(entry, Turn):
            # Pages are erased with their conversation, so the copy needs its own.
            steps = tuple([await self._with_own_page(step) for step in entry.steps])
            more = sum(map(step_tokens, steps)) - sum(map(step_tokens, entry.steps))
            entry = replace(entry, steps=steps, tokens=entry.tokens + more)
        if isinstance(entry, Checkpoint):
            refs = tuple(self.pages.get(uuid, uuid) for uuid in entry.archive_refs)
            entry = replace(entry, archive_refs=refs)
        return replace(entry, scope=self.there)

    async def withdraw(self) -> None:
        """The log refused the copy: erase its pages, except those that a faster fork under the same name refers to."""
        made = {own for uuid, own in self.pages.items() if own != uuid}
        with suppress(ConflictError):
            async for turn in entries_of(self.engine.store.reader, EntryQuery(self.there, limit=_SLICE)):
                made -= (
                    {uuid for step in turn.steps for uuid in step.pages} if isinstance(turn, Turn) else set()
                )
        await self.engine.tier(Archive).erase(self.there, sorted(made))

    async def _with_own_page(self, step: Step) -> Step:
        if step.input_pages:
            pages = {pointer: await self._own_page(uuid) for pointer, uuid in step.input_pages.items()}
            step = replace(step, input_pages=pages)
        if step.page is None:
            return step
        own = await self._own_page(step.page)
        if step.whole or own == step.page:
            return replace(step, page=own)
        result, given = step.result.replace(step.page, own), step.input
        if isinstance(given, Mapping):
            # A step that loaded the page names it in its input.
            given = {key: own if value == step.page else value for key, value in given.items()}
        return measured_step(replace(step, page=own, result=result, input=given), self.engine.counter.count)

    async def _own_page(self, uuid: str) -> str:
        if uuid not in self.pages:
            try:
                page = await self.engine.tier(Archive).copy(self.scope, uuid, self.there, epoch=self.epoch)
            except HandleNotFoundError:
                return uuid
            self.pages[uuid] = page.uuid
        return self.pages[uuid]
