"""Facts and calls."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from pagefile.errors import ConflictError, InvalidTurnError, NotFoundError
from pagefile.ports import Store
from pagefile.records import Fact, Revision, Scope
from pagefile.testing.contracts.base import Contract, refused, write
from pagefile.testing.drafts import AT, call, done, fact
from pagefile.testing.scopes import ADA, BOB, CHAT, ELSE, FIRM, FIRM_ADA, FIRM_CHAT, STRANGER, TENANT

COPY = Scope("copy", "ada")


async def revise(
    store: Store,
    scope: Scope,
    *facts: Fact,
    action: str = "stored",
    at: datetime = AT,
    expected: int | None = None,
) -> Revision:
    """Writes facts as one revision."""
    return await store.facts.revise(scope, facts, action=action, at=at, expected=expected, epoch=None)


class FactStoreContract(Contract):
    """`FactStore`."""

    async def test_facts_come_back_as_they_were_put_oldest_first(self, store: Store) -> None:
        """Ordered by when they were recorded."""
        late, early = fact("a", recorded=AT + timedelta(hours=1)), fact("b", "喜欢中文", scope=ADA)
        late = replace(late, project="alpha", agent="triage")
        assert await store.facts.put(late) == late
        assert await store.facts.put(early) == early
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
        """Its scope must name one."""
        await refused(InvalidTurnError, store.facts.put(fact("a", scope=TENANT)))

    async def test_facts_are_of_a_user_or_a_tenant(self, store: Store) -> None:
        """A user's own, or all of the tenant's if the scope names no user; never another tenant's."""
        for scope, fact_id in ((ADA, "a"), (BOB, "b"), (FIRM_ADA, "a")):
            await store.facts.put(fact(fact_id, scope=scope))
        assert [found.id for found in await store.facts.list(ADA)] == ["a"]
        assert [found.id for found in await store.facts.list(TENANT)] == ["a", "b"]
        assert [found.scope.tenant for found in await store.facts.list(FIRM)] == ["firm"]

    async def test_a_retracted_fact_is_listed_only_when_asked_for(self, store: Store) -> None:
        """It can still be read by id."""
        gone = replace(fact("a"), retracted=AT + timedelta(hours=1))
        await store.facts.put(gone)
        assert await store.facts.list(ADA) == []
        assert await store.facts.list(ADA, retracted=True) == [gone]
        assert await store.facts.get(ADA, "a") == await store.facts.get(TENANT, "a") == gone

    async def test_an_unknown_or_foreign_fact_cannot_be_got(self, store: Store) -> None:
        """It raises `NotFoundError`."""
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
        assert list(await store.facts.revisions(ADA)) == [first, second]
        assert list(await store.facts.revisions(ADA, after=first.number)) == [second]
        assert list(await store.facts.revisions(BOB)) == []
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
        """If one fact cannot be written, none is."""
        await store.facts.put(fact("theirs", scope=BOB))
        for bad in (fact("theirs"), fact("x", scope=BOB)):
            with pytest.raises((ConflictError, InvalidTurnError)):
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
        again = await revise(store, ADA, fact("new", scope=ADA))
        assert again.number > newest

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

    journal = [
        replace(
            one,
            scope=COPY,
            before=tuple(was and moved(was) for was in one.before),
            after=tuple(map(moved, one.after)),
        )
        for one in revisions
    ]
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
        """The second time nothing is new, and no revision is added."""
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
        theirs = await revise(store, BOB, fact("new", scope=BOB))
        assert theirs.number < newest

    async def test_the_journal_of_a_user_who_has_one_stays(self, store: Store) -> None:
        """Facts with unknown ids are added as new ones; existing ones stay as they are."""
        facts, journal = await lived(store)
        mine = replace(facts[0], text="another text")
        first = await store.facts.put(mine)
        assert await store.facts.restore(COPY, facts, journal) == (2, 0)
        assert await store.facts.list(COPY, retracted=True) == [first, *facts[1:]]
        actions = [one.action for one in await store.facts.revisions(COPY)]
        assert actions == ["stored", "stored", "stored"]

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
            await refused(InvalidTurnError, store.facts.restore(COPY, [], revisions))
        await refused(InvalidTurnError, store.facts.restore(Scope("copy"), facts, journal))
        for revisions in (journal, []):
            await refused(ConflictError, store.facts.restore(COPY, facts, revisions))
        assert await store.facts.list(COPY, retracted=True) == []
        assert await store.facts.changed(COPY) == (0, 0)


class CallLogContract(Contract):
    """`CallLog`."""

    async def test_calls_come_back_newest_first(self, store: Store) -> None:
        """In the order they were added, whatever their times; an id is added once."""
        first, second = call("a", at=AT + timedelta(hours=1)), replace(call("b"), turn_id="t", query=None)
        await store.calls.add([first, second], keep=10)
        await store.calls.add([replace(first, tokens=1)], keep=10)
        assert await store.calls.list(CHAT) == [second, first]

    async def test_only_the_newest_are_kept(self, store: Store) -> None:
        """Per conversation the new calls belong to; other conversations keep theirs."""
        other = ELSE
        await store.calls.add([call(f"o{number}", scope=other) for number in range(3)], keep=3)
        for number in range(5):
            await store.calls.add([call(f"c{number}")], keep=2)
        assert [found.id for found in await store.calls.list(CHAT)] == ["c4", "c3"]
        assert len(await store.calls.list(other)) == 3
        await store.calls.add([call("c5")], keep=0)
        assert await store.calls.list(CHAT) == []

    async def test_calls_are_of_a_scope_and_go_on(self, store: Store) -> None:
        """No scope sees another's calls; `after` continues after a call."""
        for number, scope in enumerate((CHAT, Scope("tenant", "bob", "b"), CHAT, FIRM_CHAT)):
            await store.calls.add([call(f"c{number}", scope=scope)], keep=10)

        async def listed(scope: Scope, *, limit: int = 100, after: str | None = None) -> list[str]:
            return [found.id for found in await store.calls.list(scope, limit=limit, after=after)]

        assert await listed(CHAT) == await listed(ADA) == ["c2", "c0"]
        assert await listed(TENANT) == ["c2", "c1", "c0"]
        assert await listed(TENANT, limit=1, after="c2") == ["c1"]
        assert await listed(STRANGER) == []
        await refused(NotFoundError, listed(CHAT, after="c1"))

    async def test_a_call_is_found_by_its_id(self, store: Store) -> None:
        """From any scope that may list it; not from others, nor once it is no longer kept."""
        await store.calls.add([call("a"), call("b", scope=Scope("tenant", "bob", "b"))], keep=10)
        for scope in (TENANT, ADA, CHAT):
            assert await store.calls.get(scope, "a") == call("a")
        strangers = (BOB, ELSE, FIRM)
        for scope, call_id in [*((stranger, "a") for stranger in strangers), (CHAT, "b"), (TENANT, "c")]:
            await refused(NotFoundError, store.calls.get(scope, call_id))
        await store.calls.add([call("c")], keep=1)
        await refused(NotFoundError, store.calls.get(CHAT, "a"))

    async def test_restored_calls_are_as_they_were(self, store: Store) -> None:
        """In order, whatever the limit elsewhere; the second time nothing is new."""
        calls = [call(name) for name in "abc"]
        assert await store.calls.restore(calls) == 3
        assert await store.calls.list(CHAT) == calls[::-1]
        assert await store.calls.restore([*calls, call("d")]) == 0
        assert await store.calls.list(CHAT) == calls[::-1]
        assert await store.calls.restore([]) == 0

    async def test_a_conversation_that_has_calls_keeps_those(self, store: Store) -> None:
        """It gets no others, and an existing id is left as it is."""
        other = ELSE
        await store.calls.add([call("new")], keep=10)
        assert await store.calls.restore([call("old"), call("o", scope=other), call("new", scope=other)]) == 1
        assert [found.id for found in await store.calls.list(ADA)] == ["o", "new"]
        assert await store.calls.get(CHAT, "new") == call("new")

    async def test_calls_are_those_that_were_made_for_the_scope(self, store: Store) -> None:
        """A conversation lists only its owner's; a call without a user belongs to the user it was made for. A tenant lists all."""
        nobody, bob = replace(CHAT, user=None), replace(CHAT, user="bob")
        await store.calls.add([call("hers"), call("his", scope=bob), call("none", scope=nobody)], keep=9)
        for_her = replace(call("old", scope=nobody), options={"moment": {"owner": CHAT.user}})
        await store.calls.add([for_her], keep=9)
        for scope, ids in (
            (CHAT, ["old", "hers"]),
            (bob, ["his"]),
            (nobody, ["none"]),
            (TENANT, ["old", "none", "his", "hers"]),
        ):
            found = await store.calls.list(scope)
            assert [one.id for one in found] == ids
            assert [await store.calls.get(scope, one.id) for one in found] == found
            behind = [one.id for one in await store.calls.list(scope, after=ids[0])]
            assert behind == ids[1:]
            for foreign in {"hers", "his", "none", "old"}.difference(ids):
                await refused(NotFoundError, store.calls.get(scope, foreign))
                await refused(NotFoundError, store.calls.list(scope, after=foreign))

    async def test_loose_calls_are_of_conversations_that_nobody_owns(self, store: Store) -> None:
        """Ordered by id, for one tenant or all, with the scopes of the calls."""
        unwritten = Scope("tenant", "ada", "unwritten")
        await store.log.append(done("t"))
        for number, scope in enumerate(
            (CHAT, unwritten, replace(unwritten, user="bob"), Scope("firm", "eve", "x"))
        ):
            await store.calls.add([call(f"c{number}", scope=scope)], keep=10)
        theirs = [unwritten, replace(unwritten, user="bob")]
        assert await store.calls.loose("tenant") == theirs
        assert await store.calls.loose("firm") == [Scope("firm", "eve", "x")]
        assert await store.calls.loose(None) == [Scope("firm", "eve", "x"), *theirs]
