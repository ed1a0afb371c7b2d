"""Facts, their journal, and restoring both."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from pagefile.errors import ConflictError, InvalidArgumentError, NotFoundError
from pagefile.ports import Store
from pagefile.records import Fact, Revision, Scope
from pagefile.testing.contracts.base import Contract, refused, write
from pagefile.testing.drafts import AT, fact
from pagefile.testing.scopes import ADA, BOB, CHAT, FIRM, FIRM_ADA, TENANT

COPY = Scope("copy", "ada")


async def revise(store: Store, scope: Scope, *facts: Fact, **how: Any) -> Revision:
    """Writes facts as one revision: "stored" at `AT`, unless told otherwise."""
    told: dict[str, Any] = {"action": "stored", "at": AT, "epoch": None, **how}
    return await store.facts.revise(scope, facts, **told)


class FactStoreContract(Contract):
    """`FactStore`."""

    async def test_facts_come_back_as_they_were_put_oldest_first(self, store: Store) -> None:
        """Ordered by when they were recorded."""
        late, early = fact("a", recorded=AT + timedelta(hours=1)), fact("b", "喜欢中文", scope=ADA)
        late = replace(late, project="alpha", agent="triage")
        assert await write(store, late, early) == [late, early]
        assert await store.facts.list(ADA) == [early, late]
        assert [one.after for one in await store.facts.revisions(ADA)] == [(late,), (early,)]

    async def test_a_fact_of_the_same_id_is_replaced(self, store: Store) -> None:
        """By its own user; another user's id conflicts."""
        await store.facts.put(fact("a"))
        newer = replace(fact("a", "not allergic"), valid_to=AT + timedelta(days=1), category=None)
        await store.facts.put(newer)
        assert await store.facts.list(ADA) == [newer]
        await refused(ConflictError, store.facts.put(fact("a", scope=BOB)))
        assert await store.facts.list(TENANT) == [newer]

    async def test_a_fact_needs_a_user(self, store: Store) -> None:
        await refused(InvalidArgumentError, store.facts.put(fact("a", scope=TENANT)))

    async def test_facts_are_of_a_user_or_a_tenant(self, store: Store) -> None:
        """A user's own, or all of the tenant's if the scope names no user; never another tenant's."""
        await write(store, fact("a", scope=ADA), fact("b", scope=BOB), fact("a", scope=FIRM_ADA))
        theirs = {ADA: [("tenant", "a")], TENANT: [("tenant", "a"), ("tenant", "b")], FIRM: [("firm", "a")]}
        for scope, ids in theirs.items():
            assert [(found.scope.tenant, found.id) for found in await store.facts.list(scope)] == ids

    async def test_a_retracted_fact_is_listed_only_when_asked_for(self, store: Store) -> None:
        """It can still be read by id."""
        gone = replace(fact("a"), retracted=AT + timedelta(hours=1))
        await store.facts.put(gone)
        assert await store.facts.list(ADA) == []
        assert await store.facts.list(ADA, retracted=True) == [gone]
        assert await store.facts.get(ADA, "a") == await store.facts.get(TENANT, "a") == gone

    async def test_an_unknown_or_foreign_fact_cannot_be_got(self, store: Store) -> None:
        await store.facts.put(fact("a"))
        for scope, fact_id in ((ADA, "b"), (BOB, "a"), (FIRM_ADA, "a")):
            await refused(NotFoundError, store.facts.get(scope, fact_id))

    async def test_a_revision_tells_what_was_and_what_became(self, store: Store) -> None:
        """Facts of several conversations in one revision, new and old, in the given order."""
        old = replace(fact("a"), subject="user", attribute="allergy", supersedes="z", category=None)
        first = await revise(store, ADA, old)
        closed, new = replace(old, valid_to=AT), fact("b", "改吃头孢", scope=ADA)
        second = await revise(store, ADA, closed, new, action="superseded", at=AT + timedelta(hours=1))
        assert (first.before, first.after, first.action) == ((None,), (old,), "stored")
        assert (second.before, second.after, second.scope) == ((old, None), (closed, new), ADA)
        for scope, after, found in ((ADA, 0, [first, second]), (ADA, first.number, [second]), (BOB, 0, [])):
            assert list(await store.facts.revisions(scope, after=after)) == found
        assert await store.facts.list(ADA) == [closed, new]

    async def test_nobody_writes_over_a_change_they_have_not_seen(self, store: Store) -> None:
        """It conflicts unless the expected revision is the newest, and nothing is written."""
        assert await store.facts.changed(ADA) == (0, 0)
        first = await revise(store, ADA, fact("a"), expected=0)
        await refused(ConflictError, revise(store, ADA, fact("b"), expected=0))
        assert [found.id for found in await store.facts.list(ADA)] == ["a"]
        await revise(store, ADA, fact("b"), expected=first.number)
        await revise(store, BOB, fact("c", scope=BOB), expected=0)

    async def test_a_revision_is_all_or_nothing(self, store: Store) -> None:
        await store.facts.put(fact("theirs", scope=BOB))
        for bad in (fact("theirs"), fact("x", scope=BOB)):
            with pytest.raises((ConflictError, InvalidArgumentError)):
                await revise(store, ADA, fact("a"), bad)
        assert await store.facts.list(ADA) == []
        assert await store.facts.changed(ADA) == (0, 0)

    async def test_what_changed_is_seen_by_a_pair_of_numbers(self, store: Store) -> None:
        """It differs after every change, including erasures, and never repeats."""
        seen = {await store.facts.changed(ADA)}
        for number in range(2):
            await write(store, fact(f"chat-{number}", scope=CHAT), fact(f"loose-{number}", scope=ADA))
            seen.add(await store.facts.changed(ADA))
        await store.erase(CHAT)
        seen.add(await store.facts.changed(ADA))
        assert len(seen) == 4
        newest = max(number for number, _ in seen)
        await store.erase(ADA)
        assert await store.facts.changed(ADA) == (0, 0)
        assert list(await store.facts.revisions(ADA)) == []
        assert (await revise(store, ADA, fact("new", scope=ADA))).number > newest

    async def test_erasing_a_conversation_erases_the_history_of_its_facts(self, store: Store) -> None:
        """The history of other facts stays."""
        await write(store, fact("gone", scope=CHAT), fact("stays", scope=ADA))
        await store.erase(CHAT)
        assert [found.id for found in await store.facts.list(ADA)] == ["stays"]
        assert [one.after[0].id for one in await store.facts.revisions(ADA)] == ["stays"]

    async def test_owners_are_who_has_facts(self, store: Store) -> None:
        """By id, within one tenant; a retracted fact still has its owner."""
        assert await store.facts.owners("tenant") == []
        for scope, fact_id in ((BOB, "b"), (ADA, "a"), (Scope("firm", "eve"), "e")):
            await store.facts.put(replace(fact(fact_id, scope=scope), retracted=AT + timedelta(days=1)))
        assert await store.facts.owners("tenant") == [ADA, BOB]
        assert await store.facts.owners("firm") == [Scope("firm", "eve")]


def elsewhere(facts: Sequence[Fact], revisions: Sequence[Revision]) -> tuple[list[Fact], list[Revision]]:
    """The same facts and revisions, for the same user in another tenant."""

    def moved(one: Fact) -> Fact:
        return replace(one, scope=replace(one.scope, tenant="copy"))

    journal: list[Revision] = []
    for one in revisions:
        before = tuple(was and moved(was) for was in one.before)
        journal.append(replace(one, scope=COPY, before=before, after=tuple(map(moved, one.after))))
    return list(map(moved, facts)), journal


async def lived(store: Store) -> tuple[list[Fact], list[Revision]]:
    """Facts that were closed, retracted and restored, with all their revisions, as copies."""
    old, other = fact("a", scope=CHAT), fact("c", "喜欢中文", scope=ADA)
    await write(store, old, fact("theirs", scope=BOB))
    later = AT + timedelta(hours=1)
    closed = replace(old, valid_to=later)
    await revise(store, ADA, closed, fact("b", scope=ADA), action="superseded", at=later)
    await store.facts.put(other)
    await revise(store, ADA, replace(other, retracted=later), action="retracted", at=later)
    return elsewhere(await store.facts.list(ADA, retracted=True), await store.facts.revisions(ADA))


class FactRestoreContract(Contract):
    """`FactStore.restore`."""

    async def test_facts_and_their_journal_are_as_they_were(self, store: Store) -> None:
        """For a user without facts; the revisions keep their numbers."""
        facts, journal = await lived(store)
        assert await store.facts.restore(COPY, facts, journal) == (3, 4)
        assert await store.facts.list(COPY, retracted=True) == facts
        assert list(await store.facts.revisions(COPY)) == journal
        assert await store.facts.changed(COPY) == (journal[-1].number, 5)
        assert [one.id for one in await store.facts.list(BOB)] == ["theirs"]

    async def test_restoring_facts_twice_is_restoring_them_once(self, store: Store) -> None:
        facts, journal = await lived(store)
        await store.facts.restore(COPY, facts, journal)
        before = await store.facts.changed(COPY)
        assert await store.facts.restore(COPY, facts, journal) == (0, 0)
        assert await store.facts.changed(COPY) == before

    async def test_the_next_revision_is_behind_the_restored_ones(self, store: Store) -> None:
        """Whatever their numbers; other users' numbers are not affected."""
        facts, journal = await lived(store)
        far = [replace(one, number=one.number + 10**9) for one in journal]
        await store.facts.restore(COPY, facts, far)
        newest = far[-1].number
        again = await revise(store, COPY, replace(facts[0], confidence=0.1), expected=newest)
        assert again.number > newest
        assert again.before == (facts[0],)
        assert [one.number for one in await store.facts.revisions(COPY, after=newest)] == [again.number]
        assert (await revise(store, BOB, fact("new", scope=BOB))).number < newest

    async def test_the_journal_of_a_user_who_has_one_stays(self, store: Store) -> None:
        """Facts with unknown ids are added as new ones; existing ones stay as they are."""
        facts, journal = await lived(store)
        first = await store.facts.put(replace(facts[0], text="another text"))
        assert await store.facts.restore(COPY, facts, journal) == (2, 0)
        assert await store.facts.list(COPY, retracted=True) == [first, *facts[1:]]
        assert [one.action for one in await store.facts.revisions(COPY)] == ["stored", "stored", "stored"]

    async def test_facts_without_a_journal_are_new_ones(self, store: Store) -> None:
        """As in exports of earlier versions."""
        facts, _ = await lived(store)
        assert await store.facts.restore(COPY, facts, []) == (3, 0)
        assert await store.facts.list(COPY, retracted=True) == facts
        assert [len(one.after) for one in await store.facts.revisions(COPY)] == [1, 1, 1]

    async def test_a_fact_that_only_the_journal_tells_of_is_there(self, store: Store) -> None:
        """As its last revision left it; a given fact takes precedence."""
        facts, journal = await lived(store)
        edited = replace(facts[0], text="edited by hand")
        assert await store.facts.restore(COPY, [edited], list(reversed(journal))) == (3, 4)
        assert await store.facts.list(COPY, retracted=True) == [edited, *facts[1:]]
        assert list(await store.facts.revisions(COPY)) == journal

    async def test_facts_that_cannot_be_restored_leave_nothing(self, store: Store) -> None:
        """Another user's, with another user's id, or with a revision that does not say what became of each fact."""
        facts, journal = await lived(store)
        await store.facts.put(fact("c", scope=Scope("copy", "bob")))
        first, second = journal[:2]
        broken = (
            [replace(first, number=0)],
            [first, replace(second, number=first.number)],
            [replace(first, before=())],
            [replace(second, before=second.before[::-1])],
            [replace(second, after=second.after[:1] * 2)],
            [replace(first, before=(), after=())],
            [replace(first, after=(fact("x", scope=ADA),))],
        )
        for revisions in broken:
            await refused(InvalidArgumentError, store.facts.restore(COPY, [], revisions))
        await refused(InvalidArgumentError, store.facts.restore(Scope("copy"), facts, journal))
        for revisions in (journal, []):
            await refused(ConflictError, store.facts.restore(COPY, facts, revisions))
        assert await store.facts.list(COPY, retracted=True) == []
        assert await store.facts.changed(COPY) == (0, 0)
