"""Erases everything of a conversation, a user or a tenant, or one turn or page, in the transaction it is given."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import TypeVar

from pagefile.damage import kind_of, note_damage
from pagefile.errors import PagefileError, StoreCorruptError
from pagefile.ports import UNREADABLE, Part
from pagefile.records import Checkpoint, Entry, Page, Scope, Turn
from pagefile.stores import erasure, rules, session
from pagefile.stores.encoding import moment, steps_text, turn_digest
from pagefile.stores.sql.leases import erase_responses
from pagefile.stores.sql.pages import erase_blobs, page_reached
from pagefile.stores.sql.plays import Play, Row, Values, count, each, many, row, rows
from pagefile.stores.sql.reader import check_owner, newest_under, raise_epoch
from pagefile.stores.sql.rows import checkpoint_metadata, exact_entry, keys, of_tenant, part_of, values_of
from pagefile.stores.sql.sessions import put_session, session_of

T = TypeVar("T")


def erase(scope: Scope) -> Play[tuple[dict[str, int], tuple[str, ...]]]:
    yield from row("epoch_alone", keys(scope))
    gone = yield from going_conversations(scope)
    values: Values = {**keys(scope), "gone": gone}
    if scope.conversation is not None:
        values["user"] = None
    of_tenant = "_of_tenant" if part_of(scope) == "tenant" else ""
    blobs = yield from rows("blobs_of_tenant" if of_tenant else "blobs_of_gone", values)
    counts: dict[str, int] = {}
    for table in erasure.OF_OWNERS:
        counts[table] = yield from count(f"erase_{table}{of_tenant}", values)
    # Before their conversations, whose deletion would cascade to them uncounted.
    counts |= erasure.counted_vectors((yield from erase_vectors("erase_conversation_episodes", values)))
    for table in erasure.OF_CONVERSATIONS:
        counts[table] = yield from count(f"erase_{table}", values)
    yield from erase_responses(scope)
    # Waits for erasures in progress: of two that remove the last uses of a blob, each would see the other's use.
    yield from raise_epoch(erasure.erased_keys(scope, gone))
    counts["blobs"] = yield from erase_blobs(key for (key,) in blobs)
    return counts, tuple(gone)


def erase_vectors(statement: str, values: Values) -> Play[int]:
    """How many vectors in this database were erased; it may never have had any."""
    there = yield from row("has_vectors", {})
    return (yield from count(statement, values)) if there and there[0] else 0


def going_conversations(scope: Scope) -> Play[list[str]]:
    """The conversations to erase, locked; one of another user raises `ConflictError`."""
    found = yield from rows(f"gone_{part_of(scope)}", keys(scope))
    if scope.conversation is None:
        return [name for name, _ in found]
    if found:
        rules.check_owner(scope, found[0][1])
    return [scope.conversation]


#: A session's version comes from its conversation's time, so that must increase even if the clock does not.
_NEXT = timedelta(microseconds=1)


def erase_part(scope: Scope, part: Part, now: datetime) -> Play[tuple[dict[str, int], erasure.Places]]:
    """How many rows were erased, table by table, and the position of the turn in the log."""
    yield from row("epoch_alone", keys(scope))
    if scope.conversation is not None:
        yield from check_owner(scope)
    one = _Erasure(scope, part, now)
    places = yield from (one.turn(part.turn_id) if part.turn_id is not None else one.page(part.page or ""))
    if not one.found and (yield from newest_under([erasure.part_key(scope, part)])) is None:
        raise erasure.no_part(part)
    yield from erase_responses(replace(scope, user=one.owner))
    noted = erasure.part_keys(scope, part, one.owner) if one.found else []
    # Waits for erasures in progress: of two that remove the last uses of a blob, each would see the other's use.
    changed = sorted(erasure.scope_key(scope.tenant, None, name) for name in one.touched if name is not None)
    yield from raise_epoch([*changed, *noted])
    marks: list[Values] = [
        {"tenant": scope.tenant, "conversation": name, "home": home}
        for name, home in product(one.touched, part.places)
    ]
    yield from many("part_marks_erase", marks)
    one.counts["blobs"] += yield from erase_blobs(one.hashes)
    return one.counts, places


class _Erasure:
    """The erasure of one turn or one page: what it has found and removed so far."""

    def __init__(self, scope: Scope, part: Part, now: datetime) -> None:
        self._scope, self._part, self._now = scope, part, now
        self._tenant: Values = {"tenant": scope.tenant}
        self.counts = dict.fromkeys(erasure.TABLES, 0)
        #: Blobs that may no longer be in use.
        self.hashes = set[str]()
        #: Conversations in which something changed.
        self.touched = set[str | None]()
        #: Whether there is such a turn or page, and whose it is.
        self.found, self.owner = False, scope.user

    # -- a turn -------------------------------------------------------------------------------------------------------

    def turn(self, turn_id: str) -> Play[erasure.Places]:
        rules.conversation_of(self._scope)
        asked = {**self._tenant, "turn": turn_id}
        yield from rows("part_copies_locked", asked)
        entries = yield from _entries("part_copies", asked)
        found = [entry for entry in entries if isinstance(entry, Turn)]
        named = next((one for one in found if one.scope.conversation == self._scope.conversation), None)
        if named is None:
            return ()
        self.found = True
        copies = [copy for copy in found if erasure.is_copy(named, copy)]
        self.touched = {copy.scope.conversation for copy in copies}
        if not named.erased:
            gone: list[str] = []
            for copy in copies:
                gone += yield from self._bury(copy)
            facts = yield from self._facts(named)
            names = erasure.names_in_windows(named.id, gone, facts)
            yield from self._calls(named.scope.user, names, erasure.words_of(*copies), named.id)
            yield from self._pages((yield from self._own_pages(copies)), named.scope.user)
        # An open turn has no position yet.
        return tuple((copy.scope.conversation or "", copy.seq or 0) for copy in copies)

    def _bury(self, turn: Turn) -> Play[list[str]]:
        """The checkpoints that were erased with it."""
        values = _entry_values(turn)
        reset_seq, _ = yield from _counted(turn.scope)
        counted = turn.status == "done" and (turn.seq or 0) > reset_seq
        stale: list[Checkpoint] = []
        if turn.seq is None:
            yield from count("part_drop", values)
        else:
            stale = erasure.covering((yield from _markers(turn.scope)), turn.seq)
            for left in map(erasure.tombstone, (turn, *stale)):
                told = {"status": left.status, "query": left.user, "digest": turn_digest(left)}
                yield from count("part_bury", {**_entry_values(left), **told})
            yield from self._remove("turn_terms", "part_terms", values)
            if gone := (yield from erase_vectors("part_vectors", values)):
                self.counts["conversation_episodes"] = self.counts.get("conversation_episodes", 0) + gone
        self.hashes |= set((yield from each("part_hashes", values, lambda one: one[0])))
        self.counts["ai_message"] += 1 + len(stale)
        self.counts["conversation_summaries"] += bool(stale)
        yield from self._remove("attachments", "part_attachments", values)
        yield from self._remove("items", "part_asked", values)
        current = yield from recount(turn.scope)
        yield from self._session(turn, current, counted=counted, stale=bool(stale))
        return [mark.id for mark in stale]

    def _session(self, turn: Turn, current: Checkpoint | None, *, counted: bool, stale: bool) -> Play[None]:
        value = yield from session_of(turn.scope)
        if value is None:
            return
        last = yield from row("part_last_answer", keys(turn.scope))
        session.put_erased(value, turn, last[0] if last else None, counted=counted)
        if stale:
            session.put_summary(value, current.summary if current else "", current.id if current else "")
        yield from put_session(turn.scope, value, self._now)

    def _facts(self, turn: Turn) -> Play[list[str]]:
        asked = {**self._erased_names(), "turn": turn.id, "user": turn.scope.user}
        facts = yield from each("part_facts", asked, lambda one: str(one[0]))
        values = {**self._tenant, "fact_ids": facts}
        yield from self._remove("facts", "part_facts_drop", values)
        yield from self._remove("fact_revisions", "part_fact_revisions_drop", values)
        return facts

    def _own_pages(self, copies: Sequence[Turn]) -> Play[set[str]]:
        """Those that no other turn made too."""
        made = {uuid for copy in copies for uuid in erasure.made_pages(copy, self._part)}
        others = yield from self._naming(made)
        return made - {
            uuid for one in others if isinstance(one, Turn) for uuid in erasure.made_pages(one, self._part)
        }

    # -- pages --------------------------------------------------------------------------------------------------------

    def page(self, uuid: str) -> Play[erasure.Places]:
        named = yield from page_reached(self._scope, uuid)
        if named is not None:
            self.found, self.owner = True, named.scope.user
            hashed = {"created": named.created, "content_hash": named.content_hash}
            asked = {**self._tenant, "owner": self.owner, **hashed}
            found = yield from _intact("part_page_copies", asked, of_tenant(Page, self._scope.tenant))
            copies = {one.uuid for one in found if erasure.is_page_copy(named, one)}
            yield from self._pages(copies, self.owner)
        return tuple((name, 0) for name in sorted(filter(None, self.touched)))

    def _pages(self, uuids: Collection[str], owner: str | None) -> Play[None]:
        if not uuids:
            return
        values = {**self._tenant, "uuids": sorted(uuids)}
        found = yield from rows("part_pages", values)
        self.touched |= {conversation for _, conversation, _ in found} - {None}
        yield from self._unpage(uuids)
        yield from self._remove("archive_passage", "passages_drop", values)
        yield from self._remove("tool_result_archive", "pages_erase", values)
        self.hashes |= {blob for _, _, blob in found if blob}
        yield from self._calls(owner, sorted(uuids))

    def _unpage(self, uuids: Collection[str]) -> Play[None]:
        """Put notes in place of what turns showed of the pages."""
        changed = list[Scope]()
        for entry in (yield from self._naming(uuids)):
            if isinstance(entry, Turn):
                left = erasure.without_pages(entry, uuids, self._part)
                if left == entry:
                    continue
                values = {"steps": steps_text(left.steps), "tokens": left.tokens, "digest": turn_digest(left)}
                yield from self._remove("ai_message", "part_steps", {**_entry_values(left), **values})
            elif isinstance(entry, Checkpoint):
                # Its summary is made from what was said, not from what tools returned.
                refs = tuple(ref for ref in entry.archive_refs if ref not in uuids)
                metadata = checkpoint_metadata(replace(entry, archive_refs=refs))
                yield from count("part_refs", {**_entry_values(entry), "metadata": metadata})
            changed.append(entry.scope)
        for scope in dict.fromkeys(changed):
            self.touched.add(scope.conversation)
            yield from recount(scope)

    def _naming(self, uuids: Collection[str]) -> Play[list[Entry]]:
        if not uuids:
            return []
        asked = {**self._tenant, "uuids": sorted(uuids)}
        yield from rows("part_naming_locked", asked)
        return (yield from _entries("part_naming", asked))

    # -- what both leave behind ---------------------------------------------------------------------------------------

    def _calls(
        self, owner: str | None, names: Sequence[str], words: Sequence[str] = (), turn_id: str | None = None
    ) -> Play[None]:
        said = {"words": list(words), "names": [*names, *erasure.telling(words)]}
        values = {**self._erased_names(), "user": owner, "turn": turn_id, **said}
        yield from self._remove("context_calls", "part_calls", values)

    def _erased_names(self) -> Values:
        return {**self._tenant, "gone": sorted(name for name in self.touched if name is not None)}

    def _remove(self, table: str, statement: str, values: Values) -> Play[None]:
        self.counts[table] += yield from count(statement, values)


def recount(scope: Scope) -> Play[Checkpoint | None]:
    """Recompute the counters of a conversation's row; returns the current checkpoint."""
    marks = [one for one in (yield from _markers(scope)) if isinstance(one, Checkpoint)]
    reset_seq, updated = yield from _counted(scope)
    current = next((mark for mark in reversed(marks) if mark.seq > reset_seq), None)
    covered = current.covered_through_seq if current else 0
    asked = {**keys(scope), "covered_through_seq": max(covered, reset_seq), "reset_seq": reset_seq}
    coverage = yield from row("coverage", asked)
    assert coverage is not None
    covered_turns, covered_messages, live_turns, live_tokens = coverage
    counts = {"turns": covered_turns + live_turns, "live_turns": live_turns, "live_tokens": live_tokens}
    version = max((mark.version for mark in marks), default=0)
    mark = {"covered_through_seq": covered, "checkpoint": current and current.id, "version": version}
    yield from count("part_recount", {**keys(scope), **counts, **mark, "updated": updated + _NEXT})
    yield from replace_summary(scope, current, covered_messages)
    return current


def replace_summary(scope: Scope, checkpoint: Checkpoint | None, covered_messages: int) -> Play[None]:
    """Make a checkpoint the current one; None: there is none."""
    yield from count("audit_sums", keys(scope))
    yield from count("summary_drop", keys(scope))
    if checkpoint is not None:
        values = {**values_of(checkpoint), **keys(scope), "covered_messages": covered_messages}
        yield from count("summary_put", values)


def _counted(scope: Scope) -> Play[tuple[int, datetime]]:
    """The position of the last reset, and when the conversation changed."""
    found = yield from row("part_counted", keys(scope))
    assert found is not None
    return found[0], moment(found[1])


def _markers(scope: Scope) -> Play[list[Entry]]:
    return (yield from _entries("part_markers", keys(scope)))


def _entries(statement: str, values: Values) -> Play[list[Entry]]:
    tenant = values["tenant"]
    return (
        yield from _intact(statement, values, lambda one: exact_entry(one[2:], Scope(tenant, one[0], one[1])))
    )


def _intact(statement: str, values: Values, make: Callable[[Row], T]) -> Play[list[T]]:
    """Every row, converted. A damaged one is not left out here: it may hold what is to be erased."""
    try:
        return [make(one) for one in (yield from rows(statement, values))]
    except UNREADABLE as error:
        if isinstance(error, PagefileError):
            raise
        note_damage(statement, values, kind_of(error))
        raise StoreCorruptError(
            f"Nothing was erased: a row that may hold what is to be erased is damaged ({kind_of(error)}). "
            "Forget the whole conversation or user; `pagefile verify --full` says which row it is."
        ) from error


def _entry_values(entry: Entry) -> Values:
    return {**keys(entry.scope), "id": entry.id, "seq": entry.seq}
