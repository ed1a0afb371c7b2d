"""Erases one turn or one page, in the transaction it is given."""

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import product
from typing import Any

from pagefile.ports import Part
from pagefile.records import Checkpoint, Entry, Page, Scope, Turn
from pagefile.stores import rules, session
from pagefile.stores.auditing import summary_values
from pagefile.stores.changing import checkpoint_values
from pagefile.stores.digests import turn_digest
from pagefile.stores.encoding import steps_text
from pagefile.stores.erasing import (
    TABLES,
    Places,
    covering,
    in_force,
    is_copy,
    is_page_copy,
    made_pages,
    names_in_windows,
    no_part,
    part_key,
    part_keys,
    places_of,
    raised_keys,
    telling,
    tombstone,
    without_pages,
    without_refs,
    words_of,
)
from pagefile.stores.postgres.driver import Connection, Values
from pagefile.stores.postgres.epochs import is_noted, raise_epoch
from pagefile.stores.postgres.erasing import erase_blobs
from pagefile.stores.postgres.marking import check_owner
from pagefile.stores.postgres.rows import entry_of, keys, page_of
from pagefile.stores.postgres.sessions import session_values, value_of


async def erase_part(
    connection: Connection, *, scope: Scope, part: Part, now: datetime
) -> tuple[dict[str, int], Places]:
    """How many rows went, table by table, and where the turn stood."""
    await connection.row("epoch_alone", keys(scope))
    if scope.conversation is not None:
        await check_owner(connection, scope)
    one = _One(connection, scope, part, now)
    places = await (one.turn(part.turn_id) if part.turn_id is not None else one.page(part.page or ""))
    if not one.found and not await is_noted(connection, part_key(scope, part)):
        raise no_part(part)
    noted = part_keys(scope, part, one.owner) if one.found else []
    # Waits for erasures that are under way: two that share the last uses of a blob would each see the other's.
    await raise_epoch(connection, [*raised_keys(scope.tenant, one.touched), *noted])
    for name, place in product(one.touched, part.places):
        await connection.count(
            "part_marks_erase", {"tenant": scope.tenant, "conversation": name, "place": place}
        )
    await one.erase_blobs()
    return one.counts, places


class _One:
    def __init__(self, connection: Connection, scope: Scope, part: Part, now: datetime) -> None:
        self._connection, self._scope, self._part, self._now = connection, scope, part, now
        self._tenant: Values = {"tenant": scope.tenant}
        self._hashes = set[str]()
        self.counts = dict.fromkeys(TABLES, 0)
        #: Conversations in which something changed.
        self.touched = set[str | None]()
        #: Whether there is such a turn or page, and whose it is.
        self.found, self.owner = False, scope.user

    # -- a turn -------------------------------------------------------------------------------------------------------

    async def turn(self, turn_id: str) -> Places:
        rules.conversation_of(self._scope)
        # What is read is what is changed: nobody moves these turns on meanwhile.
        await self._connection.rows("part_copies_locked", {**self._tenant, "turn": turn_id})
        found = [one for one in await self._entries("part_copies", turn=turn_id) if isinstance(one, Turn)]
        named = next((one for one in found if one.scope.conversation == self._scope.conversation), None)
        if named is None:
            return ()
        self.found = True
        copies = [copy for copy in found if is_copy(named, copy)]
        self.touched = {copy.scope.conversation for copy in copies}
        if not named.erased:
            await self._bury_all(named, copies)
        return places_of(copies)

    async def _bury_all(self, named: Turn, copies: Sequence[Turn]) -> None:
        gone = [mark for copy in copies for mark in await self._bury(copy)]
        facts = await self._facts(named)
        names = names_in_windows(named.id, gone, facts)
        await self._calls(named.scope.user, names, words_of(*copies), named.id)
        await self._pages(await self._own_pages(copies), named.scope.user)

    async def _bury(self, turn: Turn) -> list[str]:
        """The checkpoints that went with it."""
        row, count = _row(turn), self._connection.count
        counted = turn.status == "done" and (turn.seq or 0) > await self._reset_seq(turn.scope)
        stale = covering(await self._markers(turn.scope), turn.seq) if turn.seq is not None else []
        if turn.seq is None:
            await count("part_drop", row)
        for entry in (turn, *stale) if turn.seq is not None else ():
            left = tombstone(entry)
            told = {"status": left.status, "query": left.user, "digest": turn_digest(left)}
            await count("part_bury", {**_row(left), **told})
        self._hashes |= {key for (key,) in await self._connection.rows("part_hashes", row)}
        self.counts["ai_message"] += 1 + len(stale)
        self.counts["conversation_summaries"] += bool(stale)
        self.counts["attachments"] += await count("part_attachments", row)
        if turn.seq is not None:
            self.counts["turn_terms"] += await count("part_terms", row)
            await self._vectors(row)
        current = await self._recount(turn.scope)
        await self._session(turn, current, counted=counted, stale=bool(stale))
        return [mark.id for mark in stale]

    async def _vectors(self, row: Values) -> None:
        there = await self._connection.row("audit_has_vectors", {})
        if there and there[0] and (gone := await self._connection.count("part_vectors", row)):
            self.counts["conversation_episodes"] = self.counts.get("conversation_episodes", 0) + gone

    async def _session(self, turn: Turn, current: Checkpoint | None, *, counted: bool, stale: bool) -> None:
        row = await self._connection.row("session_get", keys(turn.scope))
        if row is None or not row[1]:
            return
        value = value_of(row[2:], turn.scope)
        last = await self._connection.row("part_last_answer", keys(turn.scope))
        session.put_erased(value, turn, last[0] if last else None, counted=counted)
        if stale:
            session.put_in_force(value, current)
        await self._connection.row("session_put", {**session_values(turn.scope, value), "now": self._now})

    async def _facts(self, turn: Turn) -> list[str]:
        asked = {**self._gone(), "turn": turn.id, "user": turn.scope.user}
        facts = [fact for (fact,) in await self._connection.rows("part_facts", asked)]
        values = {**self._tenant, "fact_ids": facts}
        self.counts["facts"] += await self._connection.count("part_facts_drop", values)
        self.counts["fact_revisions"] += await self._connection.count("part_fact_revisions_drop", values)
        return facts

    async def _own_pages(self, copies: Sequence[Turn]) -> set[str]:
        """Those that no other turn made too."""
        made = {uuid for copy in copies for uuid in made_pages(copy, self._part)}
        others = await self._naming(made)
        return made - {
            uuid for one in others if isinstance(one, Turn) for uuid in made_pages(one, self._part)
        }

    # -- pages --------------------------------------------------------------------------------------------------------

    async def page(self, uuid: str) -> Places:
        row = await self._connection.row("page_reached", {**keys(self._scope), "uuid": uuid})
        if row is not None:
            named = page_of(row, self._scope.tenant)
            self.found, self.owner = True, named.scope.user
            await self._pages(await self._with_copies(named), named.scope.user)
        return tuple((name, 0) for name in sorted(filter(None, self.touched)))

    async def _with_copies(self, page: Page) -> set[str]:
        values = {"owner": page.scope.user, "created": page.created, "content_hash": page.content_hash}
        rows = await self._connection.rows("part_page_copies", {**self._tenant, **values})
        found = [page_of(row, self._scope.tenant) for row in rows]
        return {one.uuid for one in found if is_page_copy(page, one)}

    async def _pages(self, uuids: Collection[str], owner: str | None) -> None:
        if not uuids:
            return
        values = {**self._tenant, "uuids": sorted(uuids)}
        rows = await self._connection.rows("part_pages", values)
        self.touched |= {row[1] for row in rows} - {None}
        await self._unpage(uuids)
        self.counts["archive_passage"] += await self._connection.count("passages_drop", values)
        self.counts["tool_result_archive"] += await self._connection.count("pages_erase", values)
        self._hashes |= {row[2] for row in rows if row[2]}
        await self._calls(owner, sorted(uuids))

    async def _unpage(self, uuids: Collection[str]) -> None:
        """Notes in the places of what turns showed of the pages."""
        changed = list[Scope]()
        for entry in await self._naming(uuids):
            if isinstance(entry, Turn):
                left = without_pages(entry, uuids, self._part)
                if left == entry:
                    continue
                values = {"steps": steps_text(left.steps), "tokens": left.tokens, "digest": turn_digest(left)}
                self.counts["ai_message"] += await self._connection.count(
                    "part_steps", {**_row(left), **values}
                )
            elif isinstance(entry, Checkpoint):
                fields = checkpoint_values(without_refs(entry, uuids), "", (0, 0, 0, 0))
                await self._connection.count("part_refs", {**_row(entry), "metadata": fields["metadata"]})
            changed.append(entry.scope)
        for scope in dict.fromkeys(changed):
            self.touched.add(scope.conversation)
            await self._recount(scope)

    async def _naming(self, uuids: Collection[str]) -> list[Entry]:
        if not uuids:
            return []
        await self._connection.rows("part_naming_locked", {**self._tenant, "uuids": sorted(uuids)})
        return await self._entries("part_naming", uuids=sorted(uuids))

    # -- what both leave behind ---------------------------------------------------------------------------------------

    async def erase_blobs(self) -> None:
        """Bytes that nobody uses any more."""
        self.counts["blobs"] += await erase_blobs(self._connection, self._hashes)

    async def _recount(self, scope: Scope) -> Checkpoint | None:
        """Count again what the conversation's row counts; gives the checkpoint in force."""
        marks = [one for one in await self._markers(scope) if isinstance(one, Checkpoint)]
        reset_seq = await self._reset_seq(scope)
        current = in_force(marks, reset_seq)
        covered = current.covered_through_seq if current else 0
        asked = {**keys(scope), "covered": max(covered, reset_seq), "reset_seq": reset_seq}
        coverage: Any = await self._connection.row("coverage", asked)
        values = {
            **keys(scope),
            "covered": covered,
            "turns": coverage[0] + coverage[2],
            "live_turns": coverage[2],
            "live_tokens": coverage[3],
            "checkpoint": current and current.id,
            "version": max((mark.version for mark in marks), default=0),
        }
        for statement in ("part_recount", "audit_sums", "audit_summary_drop"):
            await self._connection.count(statement, values)
        if current is not None:
            summary = {**keys(scope), **summary_values(current), "covered_messages": coverage[1]}
            await self._connection.count("audit_summary", {**summary, "created": current.created})
        return current

    async def _calls(
        self, owner: str | None, names: Sequence[str], words: Sequence[str] = (), turn_id: str | None = None
    ) -> None:
        values = {
            **self._gone(),
            "user": owner,
            "turn": turn_id,
            "words": list(words),
            "names": [*names, *telling(words)],
        }
        self.counts["context_calls"] += await self._connection.count("part_calls", values)

    def _gone(self) -> Values:
        return {**self._tenant, "gone": sorted(name for name in self.touched if name is not None)}

    async def _reset_seq(self, scope: Scope) -> int:
        row: Any = await self._connection.row("part_reset_seq", keys(scope))
        return row[0]

    async def _markers(self, scope: Scope) -> list[Entry]:
        return await self._entries("part_markers", conversation=scope.conversation)

    async def _entries(self, statement: str, **values: object) -> list[Entry]:
        rows = await self._connection.rows(statement, {**self._tenant, **values})
        return [entry_of(row[2:], Scope(self._scope.tenant, row[0], row[1])) for row in rows]


def _row(entry: Entry) -> Values:
    return {**keys(entry.scope), "id": entry.id, "seq": entry.seq}
