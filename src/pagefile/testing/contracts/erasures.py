"""Erasing: all of it, in places outside the database too, and never undone by a late write; describing and closing a store."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import anyio
import numpy as np
import pytest

from pagefile import ports
from pagefile.errors import ClosedError, ConflictError, ErasedError, HandleNotFoundError
from pagefile.ports import Store
from pagefile.records import Scope
from pagefile.stores.erasure import TABLES, scope_key
from pagefile.testing.contracts.base import Contract, everything, head_of, refused, write
from pagefile.testing.drafts import AT, added, api_key, call, checkpoint, done, fact, opened, page, picturing
from pagefile.testing.fakes import FakeClock
from pagefile.testing.scopes import ADA, ANYBODY, BOB, CHAT, ELSE, FIRM, FIRM_CHAT, HIS, STRANGER, TENANT

_NOTHING = dict.fromkeys(TABLES, 0)


async def furnish(store: Store, *scopes: Scope) -> None:
    """Writes something of each conversation to every port, under ids that begin with a letter for each: a, b, c …"""
    for mark, scope in zip("abcd", scopes, strict=False):
        await write(store, picturing(f"{mark}1", mark.encode(), scope=scope), opened(f"{mark}2", scope=scope))
        await write(store, checkpoint(f"{mark}3", 1, scope=scope), fact(f"{mark}-fact", scope=scope))
        archived = page(f"{mark}-page", f"text {mark}", scope=scope, spans=((0, 4),))
        await write(store, archived, call(f"{mark}-call", scope=scope))
        await store.watermarks.advance(scope, "tier", 1, epoch=None)
        terms = ports.TurnTerms(scope.conversation or "", 1, "", AT, "said", "")
        await store.terms.write(scope, [terms], "v1")


async def left(store: Store, scope: Scope) -> list[int]:
    """How much a scope still has."""
    held = (
        await store.reader.heads(ports.ConversationQuery(scope)),
        await store.source.since(ports.SinceRequest(scope, {})),
        await store.facts.list(scope),
        await store.pages.list(scope),
        await store.calls.list(scope),
        await store.watermarks.known(scope, "tier"),
    )
    return list(map(len, held))


_NONE_LEFT, _ONE_EACH = [0] * 6, [1] * 6


class StoreContract(Contract):
    """`Store` itself."""

    async def test_erasing_a_conversation_takes_all_of_it(self, store: Store, clock: FakeClock) -> None:
        """Every table is counted; the user's other conversations stay."""
        await furnish(store, CHAT, ELSE)
        receipt = await store.erase(CHAT)
        assert receipt.counts == {**dict.fromkeys(_NOTHING, 1), "ai_message": 3, "items": 0, "blobs": 2}
        assert (receipt.scope, receipt.at, receipt.total) == (CHAT, clock.now(), 16)
        assert (await everything(store), await store.sessions.get(CHAT)) == ([], None)
        assert not (await head_of(store)).exists
        await refused(HandleNotFoundError, store.pages.load(CHAT, "a-page"))
        assert await left(store, ADA) == _ONE_EACH
        assert len(await everything(store, ELSE)) == 3

    async def test_erasing_a_user_takes_all_their_conversations(self, store: Store) -> None:
        """Including facts, pages and calls; other users and tenants stay."""
        await furnish(store, CHAT, ELSE, HIS, FIRM_CHAT)
        await store.facts.put(fact("loose", scope=ADA))
        receipt = await store.erase(ADA)
        assert (receipt.counts["conversations"], receipt.counts["facts"]) == (2, 3)
        assert await left(store, ADA) == _NONE_LEFT
        assert await left(store, BOB) == await left(store, FIRM) == _ONE_EACH

    async def test_erasing_a_tenant_takes_everything_of_it(self, store: Store) -> None:
        """With and without users."""
        await furnish(store, CHAT, HIS, FIRM_CHAT)
        await store.log.append(done("t", scope=Scope("tenant", None, "nobody")))
        await store.calls.add([call("x", scope=TENANT)], keep=5)
        receipt = await store.erase(TENANT)
        assert (receipt.counts["conversations"], receipt.counts["context_calls"]) == (3, 3)
        assert [await left(store, scope) for scope in (TENANT, FIRM)] == [_NONE_LEFT, _ONE_EACH]

    async def test_erasing_nothing_counts_nothing(self, store: Store) -> None:
        """Erasing is idempotent."""
        await furnish(store, CHAT)
        await store.erase(ADA)
        for scope in (ADA, CHAT, TENANT):
            assert (await store.erase(scope)).counts == _NOTHING

    async def test_a_conversation_of_another_user_is_not_erased(self, store: Store) -> None:
        """It raises `ConflictError`, and nothing is erased."""
        await furnish(store, CHAT)
        await refused(ConflictError, store.erase(STRANGER))
        assert await left(store, ADA) == _ONE_EACH

    async def test_a_conversation_can_begin_again_after_erasing(self, store: Store) -> None:
        """From the first position, for any user."""
        await furnish(store, CHAT)
        await store.erase(CHAT)
        (turn,) = await write(store, done("a1", scope=STRANGER))
        assert (turn.seq, turn.scope) == (1, STRANGER)

    async def test_a_store_describes_itself(self, store: Store) -> None:
        described = await store.describe()
        assert {"backend", "version", "place", "bytes", "read_only"} <= described.keys()
        assert described["read_only"] is False

    async def test_closing_twice_is_closing_once(self, store: Store, clock: FakeClock) -> None:
        """Afterwards every verb raises `ClosedError`."""
        await store.log.append(done("a"))
        for _ in range(2):
            await store.close()
        await refused(
            ClosedError,
            store.log.append(done("b")),
            store.log.restore([]),
            head_of(store),
            store.reader.entries(ports.EntryQuery(CHAT)),
            store.source.since(ports.SinceRequest(CHAT, {})),
            store.facts.list(ADA),
            store.pages.load(CHAT, "p"),
            store.pages.put(page("p")),
            store.page_keeper.page(CHAT, "p"),
            store.page_keeper.touch(CHAT, [], clock.now()),
            store.page_keeper.purge(ports.PurgeRequest(CHAT, clock.now())),
            store.page_index.uuids(CHAT),
            store.page_index.write(CHAT, "p", []),
            store.media.load(CHAT, "hash"),
            store.calls.list(CHAT),
            store.sessions.get(CHAT),
            store.sessions.put(CHAT, {}),
            store.items.get(ADA, [(("notes",), "a")], now=AT),
            store.keys.add(api_key("k")),
            store.keys.get("k"),
            store.keys.list(),
            store.keys.rotate("k", api_key("new"), AT),
            store.keys.revoke("k", AT),
            store.keys.used("k", AT),
            store.erase(CHAT),
            store.describe(),
        )


_CHAT, _USER, _BOB = (scope_key("tenant", *name) for name in ((None, "chat"), ("ada",), ("bob",)))


class ErasuresContract(Contract):
    """`Erasures`."""

    async def test_an_erasure_is_owed_to_every_known_place(self, store: Store) -> None:
        """From the moment the rows are gone until the place has carried it out, with the scopes to erase."""
        erasures = store.erasures
        await store.erase(Scope("tenant", "before"))
        await erasures.begin("a")
        assert await erasures.places() == {"a": 0}
        await store.log.append(done("a"))
        await store.erase(ADA)
        await erasures.begin("b")
        assert await erasures.places() == {"a": 2, "b": 0}
        owed = await erasures.owed("a")
        assert owed == ports.Owed(1, {_USER: 2, _CHAT: 2})
        await erasures.done("a", owed)
        assert (await erasures.owed("a"), await erasures.places()) == (ports.Owed(2, {}), {"a": 0, "b": 0})

    async def test_nothing_is_owed_to_an_unknown_place(self, store: Store) -> None:
        """Nor does asking make it known."""
        await store.erase(CHAT)
        assert (await store.erasures.owed("nowhere")).scopes == {}
        await store.erasures.redo("nowhere", 0)
        assert await store.erasures.places() == {}

    async def test_a_place_that_is_known_goes_on(self, store: Store) -> None:
        """Registering again cancels nothing."""
        await store.erasures.begin("a")
        await store.erase(CHAT)
        await store.erasures.begin("a")
        assert (await store.erasures.owed("a")).scopes == {_CHAT: 1}

    async def test_what_came_meanwhile_is_still_owed(self, store: Store) -> None:
        """Only what was owed when it was read counts as done."""
        await store.erasures.begin("a")
        await store.erase(CHAT)
        owed = await store.erasures.owed("a")
        await store.erase(BOB)
        await store.erasures.done("a", owed)
        assert await store.erasures.owed("a") == ports.Owed(1, {_BOB: 2})

    async def test_what_was_put_behind_an_erasure_is_owed_again(self, store: Store) -> None:
        """Even if the place reports completion in between."""
        await store.erasures.begin("a")
        for scope in (CHAT, BOB):
            await store.erase(scope)
        await store.erasures.done("a", await store.erasures.owed("a"))
        await store.erasures.redo("a", 1)
        later = await store.erasures.owed("a")
        assert later.scopes == {_BOB: 2}
        await store.erasures.redo("a", 0)
        await store.erasures.done("a", later)
        assert await store.erasures.owed("a") == ports.Owed(0, {_CHAT: 1, _BOB: 2})


_MODEL = ports.EmbeddingModel("epochs", 2)
_ERASED = (CHAT, ADA, TENANT)
_OTHERS = (ELSE, HIS, BOB, FIRM_CHAT, FIRM)


async def _vector(store: Store, epoch: int | None) -> None:
    if (index := store.vectors()) is None:
        raise ErasedError
    row = ports.VectorRow(CHAT, 1, "a", AT, np.array([1.0, 0.0], np.float32))
    await index.put(_MODEL, [row], epoch=epoch)


_TERMS = ports.TurnTerms("chat", 1, "a", AT, "said", "")
#: Every deferred write that is based on an earlier read.
_WRITES: Mapping[str, Callable[[Store, int | None], Awaitable[object]]] = {
    "checkpoint": lambda store, epoch: store.log.mark(replace(checkpoint("k", 1), epoch=epoch)),
    "call": lambda store, epoch: store.calls.add([call("w")], keep=9, epoch=epoch),
    "fact": lambda store, epoch: store.facts.revise(ADA, [fact("f")], action="stored", at=AT, epoch=epoch),
    "terms": lambda store, epoch: store.terms.write(TENANT, [_TERMS], "v1", epoch=epoch),
    "watermark": lambda store, epoch: store.watermarks.advance(CHAT, "tier", 1, epoch=epoch),
    "page": lambda store, epoch: store.pages.put(replace(page("p"), epoch=epoch)),
    "turn": lambda store, epoch: store.log.append(replace(done("b"), epoch=epoch)),
    "session": lambda store, epoch: store.sessions.put(CHAT, {"x": 1}, epoch=epoch),
    "vector": _vector,
}


async def _begun(store: Store) -> int:
    """Begins a conversation; returns its epoch."""
    await store.log.append(done("a"))
    return (await head_of(store)).epoch


class EpochContract(Contract):
    """`ConversationInfo.epoch`, and every write that can name it."""

    @pytest.mark.parametrize("what", sorted(_WRITES))
    @pytest.mark.parametrize("erased", _ERASED, ids=["conversation", "user", "tenant"])
    async def test_what_was_read_before_an_erasure_is_not_written_behind_it(
        self, store: Store, what: str, erased: Scope
    ) -> None:
        """It raises `ErasedError` and writes nothing, whether or not the conversation exists again."""
        epoch = await _begun(store)
        await store.erase(erased)
        await refused(ErasedError, _WRITES[what](store, epoch))
        assert (await left(store, CHAT), await store.sessions.get(CHAT)) == (_NONE_LEFT, None)
        now = await _begun(store)
        await refused(ErasedError, _WRITES[what](store, epoch))
        await _WRITES[what](store, now)

    async def test_the_last_erasure_is_known(self, store: Store) -> None:
        """The epoch rises with every erasure, even of an empty scope; a view reports the same number."""
        before = await store.reader.epoch()
        assert before == await _begun(store) == await store.reader.epoch()
        await store.erase(FIRM)
        assert before < await store.reader.epoch() == (await head_of(store)).epoch

    async def test_the_last_erasure_of_a_scope_is_known(self, store: Store) -> None:
        """Whichever part of the scope was erased; erasures of other scopes do not count."""
        newest = 0
        assert newest == await store.reader.epoch(CHAT)
        for erased in _ERASED:
            await store.log.append(done("a"))
            await store.erase(erased)
            assert newest < (newest := await store.reader.epoch(CHAT)) == await store.reader.epoch()
        await store.erase(BOB)
        assert newest == await store.reader.epoch(CHAT) < await store.reader.epoch()

    async def test_a_step_with_an_erased_page_is_not_written(self, store: Store) -> None:
        """Not even if a turn with that id is open again."""
        epoch = await store.reader.epoch()
        await store.log.append(opened("a"))
        await store.erase(ADA)
        await store.log.append(opened("a"))
        await refused(ErasedError, store.log.advance(replace(added("a"), epoch=epoch)))
        turn = await store.log.advance(replace(added("a"), epoch=await store.reader.epoch()))
        assert 1 == len(turn.steps)

    async def test_a_turn_is_repeated_in_its_epoch(self, store: Store) -> None:
        """The same turn returns what is stored and another under its id is refused, as without an epoch."""
        epoch = await store.reader.epoch()
        first, again = await write(store, done("a"), replace(done("a"), epoch=epoch))
        assert first == again
        await refused(ConflictError, store.log.append(replace(done("a", "another question"), epoch=epoch)))

    async def test_an_erasure_names_the_conversations_that_went(self, store: Store) -> None:
        """So that copies held elsewhere can be erased there."""
        await write(store, *(done("a", scope=scope) for scope in (CHAT, ELSE, HIS)))
        assert {"chat", "else"} == set((await store.erase(ADA)).conversations)
        assert {"his"} == set((await store.erase(TENANT)).conversations)

    @pytest.mark.parametrize("what", sorted(_WRITES))
    async def test_what_nobody_erased_is_written(self, store: Store, what: str) -> None:
        """Whatever else was erased since, or if no epoch is given."""
        await store.erase(CHAT)
        epoch = await _begun(store)
        for other in _OTHERS:
            await store.erase(other)
        await _WRITES[what](store, epoch)
        await store.erase(CHAT)
        await store.log.append(done("a"))
        await _WRITES[what](store, None)

    async def test_a_conversation_that_somebody_else_begins_again_is_not_written_to(
        self, store: Store
    ) -> None:
        """The erasure is reported first, whoever owns it now and however it was erased."""
        for scope in (CHAT, ADA):
            await store.erase(ADA)
            epoch = await _begun(store)
            await store.erase(scope)
            await store.log.append(done("a", scope=STRANGER))
            late = replace(checkpoint("k", 1, scope=ANYBODY), epoch=epoch)
            await refused(ErasedError, store.log.mark(late), store.sessions.put(ANYBODY, {}, epoch=epoch))
            await store.erase(STRANGER)

    async def test_the_epoch_is_known_before_a_conversation_begins(self, store: Store) -> None:
        """A window may be requested before the first turn."""
        first = (await head_of(store)).epoch
        await store.erase(CHAT)
        second = (await head_of(store)).epoch
        assert second > first
        await refused(ErasedError, _WRITES["call"](store, first))
        await _WRITES["call"](store, second)
        await store.log.append(done("a"))
        assert [head.epoch for head in await store.reader.heads(ports.ConversationQuery(ADA))] == [second]

    async def test_one_call_that_was_erased_keeps_all_of_them_out(self, store: Store) -> None:
        """They are written together or not at all."""
        epoch = (await head_of(store)).epoch
        await store.erase(ELSE)
        await refused(ErasedError, store.calls.add([call("a"), call("b", scope=ELSE)], keep=9, epoch=epoch))
        assert await store.calls.list(ADA) == []

    async def test_a_fact_is_not_written_from_a_conversation_that_was_erased(self, store: Store) -> None:
        """Even though the user still exists."""
        epoch = (await head_of(store)).epoch
        await store.erase(ANYBODY)
        await refused(ErasedError, _WRITES["fact"](store, epoch))
        await store.facts.revise(ADA, [fact("g", scope=ADA)], action="stored", at=AT, epoch=epoch)
        assert [one.id for one in await store.facts.list(ADA)] == ["g"]

    async def test_a_copy_is_not_written_of_what_was_erased(self, store: Store) -> None:
        """Neither entries nor pages, even into a conversation that was not erased itself."""
        there = Scope("tenant", "ada", "copy")
        turn = await store.log.append(done("a"))
        epoch = (await head_of(store)).epoch
        await store.erase(CHAT)
        copied, moved = replace(page("p", scope=there), epoch=epoch, origin=CHAT), replace(turn, scope=there)
        restored = store.log.restore([moved], epoch=epoch, origin=CHAT)
        await refused(ErasedError, restored, store.pages.put(copied))
        assert await left(store, there) == _NONE_LEFT
        await store.log.restore([moved], epoch=epoch)
        await store.pages.put(replace(copied, origin=None))

    async def test_an_erasure_and_those_who_write_behind_it_at_once(self, store: Store) -> None:
        """Whatever the interleaving, nothing erased is left."""
        for number in range(5):
            epoch = await _begun(store)
            outcomes: list[Any] = []

            async def attempt(name: str, epoch: int = epoch, outcomes: list[Any] = outcomes) -> None:
                try:
                    outcomes.append(await _WRITES[name](store, epoch))
                except ErasedError as error:
                    outcomes.append(error)

            async with anyio.create_task_group() as tasks:
                for name in ("call", "fact", "page", "watermark", "session"):
                    tasks.start_soon(attempt, name)
                    if name == "fact":
                        tasks.start_soon(store.erase, (CHAT, ADA, TENANT)[number % 3])
            assert len(outcomes) == 5
            assert (await left(store, CHAT), await store.sessions.get(CHAT)) == (_NONE_LEFT, None)
            assert await store.source.since(ports.SinceRequest(ADA, {})) == []
