"""Erases one turn or one page, in the transaction it is given."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any, cast

from pagefile.ports import Part
from pagefile.records import Checkpoint, Entry, Page, Scope, Turn
from pagefile.stores import rules, session
from pagefile.stores.auditing import summary_values
from pagefile.stores.changing import checkpoint_values
from pagefile.stores.digests import turn_digest
from pagefile.stores.encoding import from_json, steps_text, text_time, time_text, to_json
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
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.epochs import is_noted, raise_epoch
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import Values, entry_of, keys, page_of
from pagefile.stores.sqlite.writing import check_owner

#: Sessions are known by their conversation's time, so it must rise, even if the clock stands still.
_NEXT = timedelta(microseconds=1)


def erase_part(connection: Connection, scope: Scope, part: Part) -> tuple[dict[str, int], Places]:
    """How many rows went, table by table, and where the turn stood."""
    if scope.conversation is not None:
        check_owner(connection, scope)
    one = _One(connection, scope, part)
    places = one.turn(part.turn_id) if part.turn_id is not None else one.page(part.page or "")
    if not one.found and not is_noted(connection, part_key(scope, part)):
        raise no_part(part)
    noted = part_keys(scope, part, one.owner) if one.found else []
    raise_epoch(connection, [*raised_keys(scope.tenant, one.touched), *noted])
    marks = [
        {"tenant": scope.tenant, "conversation": name, "place": place}
        for name in one.touched
        for place in part.places
    ]
    connection.executemany(sql("part_marks_erase"), marks)
    return one.counts, places


class _One:
    def __init__(self, connection: Connection, scope: Scope, part: Part) -> None:
        self._connection, self._scope, self._part = connection, scope, part
        self._tenant: Values = {"tenant": scope.tenant}
        self.counts = dict.fromkeys(TABLES, 0)
        #: Conversations in which something changed.
        self.touched = set[str | None]()
        #: Whether there is such a turn or page, and whose it is.
        self.found, self.owner = False, scope.user

    # -- a turn -------------------------------------------------------------------------------------------------------

    def turn(self, turn_id: str) -> Places:
        rules.conversation_of(self._scope)
        found = [one for one in self._entries("part_copies", turn=turn_id) if isinstance(one, Turn)]
        named = next((one for one in found if one.scope.conversation == self._scope.conversation), None)
        if named is None:
            return ()
        self.found = True
        copies = [copy for copy in found if is_copy(named, copy)]
        self.touched = {copy.scope.conversation for copy in copies}
        if not named.erased:
            self._bury_all(named, copies)
        return places_of(copies)

    def _bury_all(self, named: Turn, copies: Sequence[Turn]) -> None:
        hashes = [key for copy in copies for key in self._texts("part_hashes", _row(copy))]
        gone = [mark for copy in copies for mark in self._bury(copy)]
        facts = self._facts(named)
        self._calls(named.scope.user, names_in_windows(named.id, gone, facts), words_of(*copies), named.id)
        self._pages(self._own_pages(copies), named.scope.user)
        self._blobs(hashes)

    def _bury(self, turn: Turn) -> list[str]:
        """The checkpoints that went with it."""
        row = _row(turn)
        reset_seq: Any = self._connection.execute(sql("part_reset_seq"), row).get
        counted = turn.status == "done" and (turn.seq or 0) > reset_seq
        stale = covering(markers(self._connection, turn.scope), turn.seq) if turn.seq is not None else []
        if turn.seq is None:
            self._run("part_drop", row)
        for entry in (turn, *stale) if turn.seq is not None else ():
            left = tombstone(entry)
            self._run(
                "part_bury",
                {**_row(left), "status": left.status, "query": left.user, "digest": turn_digest(left)},
            )
        self.counts["ai_message"] += 1 + len(stale)
        self.counts["conversation_summaries"] += bool(stale)
        self.counts["attachments"] += self._run("part_attachments", row)
        self.counts["turn_terms"] += self._run("part_terms", row)
        self._vectors(row)
        current = recount(self._connection, turn.scope)
        self._session(turn, current, counted=counted, stale=bool(stale))
        return [mark.id for mark in stale]

    def _vectors(self, row: Values) -> None:
        if gone := self._run("part_vectors", row):
            self.counts["conversation_episodes"] = self.counts.get("conversation_episodes", 0) + gone

    def _session(self, turn: Turn, current: Checkpoint | None, *, counted: bool, stale: bool) -> None:
        text: Any = self._connection.execute(sql("session_get"), keys(turn.scope)).get
        if text is None:
            return
        value = cast("session.SessionValue", from_json(text))
        answer: Any = self._connection.execute(sql("part_last_answer"), keys(turn.scope)).get
        session.put_erased(value, turn, answer, counted=counted)
        if stale:
            session.put_in_force(value, current)
        self._run("session_put", {**keys(turn.scope), "value": to_json(value)})

    def _facts(self, turn: Turn) -> list[str]:
        asked = {**self._gone(), "turn": turn.id, "user": turn.scope.user}
        facts = self._texts("part_facts", asked)
        values = {**self._tenant, "facts": to_json(facts)}
        self.counts["facts"] += self._run("part_facts_drop", values)
        self.counts["fact_revisions"] += self._run("part_fact_revisions_drop", values)
        return facts

    def _own_pages(self, copies: Sequence[Turn]) -> set[str]:
        """Those that no other turn made too."""
        made = {uuid for copy in copies for uuid in made_pages(copy, self._part)}
        others = self._naming(made)
        return made - {
            uuid for one in others if isinstance(one, Turn) for uuid in made_pages(one, self._part)
        }

    # -- pages --------------------------------------------------------------------------------------------------------

    def page(self, uuid: str) -> Places:
        row: Any = self._connection.execute(
            sql("page_reached"), {**keys(self._scope), "uuid": uuid}
        ).fetchone()
        if row is not None:
            named = page_of(row, self._scope.tenant)
            self.found, self.owner = True, named.scope.user
            self._pages(self._with_copies(named), named.scope.user)
        return tuple((name, 0) for name in sorted(filter(None, self.touched)))

    def _with_copies(self, page: Page) -> set[str]:
        values = {
            **self._tenant,
            "owner": page.scope.user,
            "created": time_text(page.created),
            "content_hash": page.content_hash,
        }
        found = [page_of(row, self._scope.tenant) for row in self._rows("part_page_copies", values)]
        return {one.uuid for one in found if is_page_copy(page, one)}

    def _pages(self, uuids: Collection[str], owner: str | None) -> None:
        if not uuids:
            return
        rows = self._rows("part_pages", {**self._tenant, "uuids": to_json(sorted(uuids))})
        self.touched |= {row[1] for row in rows} - {None}
        self._unpage(uuids)
        for uuid, _, _ in rows:
            values = {**self._tenant, "uuid": uuid}
            self.counts["archive_passage"] += self._run("passages_drop", values)
            self.counts["tool_result_archive"] += self._run("page_erase", values)
        self._blobs([row[2] for row in rows if row[2]])
        self._calls(owner, sorted(uuids))

    def _unpage(self, uuids: Collection[str]) -> None:
        """Notes in the places of what turns showed of the pages."""
        changed = list[Scope]()
        for entry in self._naming(uuids):
            if isinstance(entry, Turn):
                left = without_pages(entry, uuids, self._part)
                if left == entry:
                    continue
                values = {"steps": steps_text(left.steps), "tokens": left.tokens, "digest": turn_digest(left)}
                self.counts["ai_message"] += self._run("part_steps", {**_row(left), **values})
            elif isinstance(entry, Checkpoint):
                fields = checkpoint_values(without_refs(entry, uuids), "", (0, 0, 0, 0))
                self._run("part_refs", {**_row(entry), "metadata": fields["metadata"]})
            changed.append(entry.scope)
        for scope in dict.fromkeys(changed):
            self.touched.add(scope.conversation)
            recount(self._connection, scope)

    def _naming(self, uuids: Collection[str]) -> list[Entry]:
        return self._entries("part_naming", uuids=to_json(sorted(uuids))) if uuids else []

    # -- what both leave behind ---------------------------------------------------------------------------------------

    def _calls(
        self, owner: str | None, names: Sequence[str], words: Sequence[str] = (), turn_id: str | None = None
    ) -> None:
        values = {
            **self._gone(),
            "user": owner,
            "turn": turn_id,
            "words": to_json(list(words)),
            "names": to_json([*names, *telling(words)]),
        }
        self.counts["context_calls"] += self._run("part_calls", values)

    def _blobs(self, hashes: Sequence[str]) -> None:
        self.counts["blobs"] += sum(self._run("erase_blob", {"hash": key}) for key in dict.fromkeys(hashes))

    def _gone(self) -> Values:
        return {**self._tenant, "gone": to_json(sorted(name for name in self.touched if name is not None))}

    def _entries(self, statement: str, **values: object) -> list[Entry]:
        rows = self._rows(statement, {**self._tenant, **values})
        return [entry_of(row[2:], Scope(self._scope.tenant, row[0], row[1])) for row in rows]

    def _texts(self, statement: str, values: Values) -> list[str]:
        return [row[0] for row in self._rows(statement, values)]

    def _rows(self, statement: str, values: Values) -> list[Any]:
        return self._connection.execute(sql(statement), values).fetchall()

    def _run(self, statement: str, values: Values) -> int:
        self._connection.execute(sql(statement), values)
        return self._connection.changes()


def recount(connection: Connection, scope: Scope) -> Checkpoint | None:
    """Count again what a conversation's row counts; gives the checkpoint in force."""
    marks = [one for one in markers(connection, scope) if isinstance(one, Checkpoint)]
    told: Any = connection.execute(sql("part_counted"), keys(scope)).fetchone()
    reset_seq, updated = told[0], text_time(told[1]) + _NEXT
    current = in_force(marks, reset_seq)
    covered = current.covered_through_seq if current else 0
    asked = {**keys(scope), "covered": max(covered, reset_seq), "reset_seq": reset_seq}
    coverage: Any = connection.execute(sql("coverage"), asked).fetchone()
    values = {
        **keys(scope),
        "covered": covered,
        "turns": coverage[0] + coverage[2],
        "live_turns": coverage[2],
        "live_tokens": coverage[3],
        "checkpoint": current and current.id,
        "version": max((mark.version for mark in marks), default=0),
        "updated": time_text(updated),
    }
    connection.execute(sql("part_recount"), values)
    connection.execute(sql("summary_drop"), values)
    if current is not None:
        summary = {**keys(scope), **summary_values(current), "covered_messages": coverage[1]}
        connection.execute(sql("summary_put"), {**summary, "create_time": time_text(current.created)})
    return current


def markers(connection: Connection, scope: Scope) -> list[Entry]:
    """The checkpoints and resets of a conversation, in order."""
    rows: Any = connection.execute(sql("part_markers"), keys(scope)).fetchall()
    return [entry_of(row[2:], Scope(scope.tenant, row[0], row[1])) for row in rows]


def _row(entry: Entry) -> Values:
    return {**keys(entry.scope), "id": entry.id, "seq": entry.seq}
