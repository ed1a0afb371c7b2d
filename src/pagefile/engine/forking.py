"""A conversation that goes on from an earlier turn of another one."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

from pagefile.engine.engine import Engine
from pagefile.engine.messages import Desk
from pagefile.engine.reading import KINDS
from pagefile.errors import ConflictError
from pagefile.ports import EntryQuery, HeadQuery, labels_of
from pagefile.records import Checkpoint, Entry, Scope, Step, Turn, checked_id
from pagefile.tiers.archive import Archive

_SLICE = 1_000


async def forked(
    engine: Engine, desk: Desk, scope: Scope, turn: Turn, *, name: str | None, before: bool
) -> Scope:
    """Copies the log up to a turn (or up to the one before it) into a new conversation, and says which."""
    name = str(uuid4()) if name is None else checked_id(name, "conversation id")
    await _check_free(engine, scope, name)
    entries = await _entries(engine, scope, turn, before=before)
    head = (await engine.store.reader.heads(HeadQuery(scope, 1)))[0]
    there = Scope(scope.tenant, head.scope.user, name)
    copies = await _Copy(engine, desk, there).of(entries)
    blobs = {
        key: data
        for entry in entries
        if isinstance(entry, Turn)
        for key, data in (await desk.blobs(entry)).items()
    }
    await engine.store.log.restore(copies, agent=head.agent, labels=labels_of(head), blobs=blobs)
    return there


async def _check_free(engine: Engine, scope: Scope, name: str) -> None:
    if await engine.store.reader.heads(HeadQuery(Scope(scope.tenant, None, name), 1)):
        raise ConflictError(f"There is a conversation {name!r} already: fork into a new one.")


async def _entries(engine: Engine, scope: Scope, turn: Turn, *, before: bool) -> list[Entry]:
    """Everything that ended up to the turn; an open turn is the last of all."""
    last = None if turn.seq is None else turn.seq - before
    found: list[Entry] = []
    after = 0
    while last is None or after < last:
        query = EntryQuery(scope, frozenset(KINDS), after_seq=after, limit=_SLICE)
        entries = [entry for entry in await engine.store.reader.entries(query) if entry.seq is not None]
        found += [entry for entry in entries if last is None or (entry.seq or 0) <= last]
        if len(entries) < _SLICE:
            break
        after = entries[-1].seq or 0
    return found if turn.seq is not None or before else [*found, turn]


class _Copy:
    """Entries of a log as they are in another conversation."""

    def __init__(self, engine: Engine, desk: Desk, scope: Scope) -> None:
        self._engine = engine
        self._desk = desk
        self._scope = scope
        #: Pages that had to be made again, by the uuid they have in the other log.
        self._pages: dict[str, str] = {}

    async def of(self, entries: Sequence[Entry]) -> list[Entry]:
        return [await self._one(entry) for entry in entries]

    async def _one(self, entry: Entry) -> Entry:
        if isinstance(entry, Turn) and self._scope.user is None:
            entry = await self._with_own_pages(entry)
        if isinstance(entry, Checkpoint):
            refs = tuple(self._pages.get(uuid, uuid) for uuid in entry.archive_refs)
            entry = replace(entry, archive_refs=refs)
        return replace(entry, scope=self._scope)

    async def _with_own_pages(self, turn: Turn) -> Turn:
        """A page of nobody in particular is read in its own conversation only, so the copy needs one of its own."""
        steps = tuple([await self._with_own_page(step, turn.id) for step in turn.steps])
        more = sum(step.result_tokens for step in steps) - sum(step.result_tokens for step in turn.steps)
        return replace(turn, steps=steps, tokens=turn.tokens + more)

    async def _with_own_page(self, step: Step, turn_id: str) -> Step:
        whole = await self._desk.whole_step(step)
        if step.page is None or not whole.whole:
            return step
        made = await self._engine.tier(Archive).keep(self._scope, replace(whole, page=None), turn_id)
        self._pages[step.page] = made.page or step.page
        return made
