"""What was read before an erasure must not be written after it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import anyio
import numpy as np
import pytest

from pagefile.errors import ConflictError, ErasedError
from pagefile.ports import HeadQuery, Maker, SinceRequest, Store, TurnTerms, VectorRow
from pagefile.records import Scope
from pagefile.testing.contracts.base import Contract, head_of
from pagefile.testing.drafts import AT, CHAT, added, call, checkpoint, done, fact, opened, page

ADA, TENANT, ANYBODY = Scope("tenant", "ada"), Scope("tenant"), Scope("tenant", None, "chat")
_MAKER = Maker("epochs", 2)
_ERASED = (CHAT, ADA, TENANT)
_OTHERS = (
    Scope("tenant", "ada", "else"),
    Scope("tenant", "bob", "his"),
    Scope("tenant", "bob"),
    Scope("firm", "ada", "chat"),
    Scope("firm"),
)

Write = Callable[[Store, int | None], Awaitable[object]]


async def _vector(store: Store, epoch: int | None) -> None:
    home = store.vectors()
    if home is None:
        raise ErasedError
    row = VectorRow(CHAT, 1, "a", AT, np.array([1.0, 0.0], np.float32))
    await home.put(_MAKER, [row], epoch=epoch)


_TERMS = TurnTerms("chat", 1, "a", AT, "said", "")
#: Every deferred write that is based on an earlier read.
_WRITES: Mapping[str, Write] = {
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


async def left(store: Store, scope: Scope) -> list[object]:
    """Everything that is left of a conversation."""
    return [
        await store.reader.heads(HeadQuery(scope)),
        await store.facts.list(scope),
        await store.pages.list(scope),
        await store.calls.list(scope),
        await store.watermarks.known(scope, "tier"),
        await store.sessions.get(scope),
    ]


class EpochContract(Contract):
    """`Head.epoch`, and every write that can name it."""

    @pytest.mark.parametrize("what", sorted(_WRITES))
    @pytest.mark.parametrize("erased", _ERASED, ids=["conversation", "user", "tenant"])
    async def test_what_was_read_before_an_erasure_is_not_written_behind_it(
        self, store: Store, what: str, erased: Scope
    ) -> None:
        """It raises `ErasedError` and writes nothing, whether or not the conversation exists again."""
        await store.log.append(done("a"))
        epoch = (await head_of(store)).epoch
        await store.erase(erased)
        with pytest.raises(ErasedError):
            await _WRITES[what](store, epoch)
        assert await left(store, CHAT) == [[], [], [], [], {}, None]
        await store.log.append(done("a"))
        with pytest.raises(ErasedError):
            await _WRITES[what](store, epoch)
        await _WRITES[what](store, (await head_of(store)).epoch)

    async def test_the_last_erasure_is_known(self, store: Store) -> None:
        """The epoch rises with every erasure, even of an empty scope; a view reports the same number."""
        before = await store.reader.epoch()
        await store.log.append(done("a"))
        assert before == await store.reader.epoch() == (await head_of(store)).epoch
        await store.erase(Scope("firm"))
        after = await store.reader.epoch()
        assert before < after == (await head_of(store)).epoch

    async def test_the_last_erasure_of_a_scope_is_known(self, store: Store) -> None:
        """Whichever part of the scope was erased; erasures of other scopes do not count."""
        newest = 0
        assert newest == await store.reader.epoch(CHAT)
        for erased in _ERASED:
            await store.log.append(done("a"))
            await store.erase(erased)
            assert newest < (newest := await store.reader.epoch(CHAT)) == await store.reader.epoch()
        await store.erase(Scope("tenant", "bob"))
        assert newest == await store.reader.epoch(CHAT) < await store.reader.epoch()

    async def test_a_step_with_an_erased_page_is_not_written(self, store: Store) -> None:
        """Not even if a turn with that id is open again."""
        await store.log.append(opened("a"))
        epoch = (await head_of(store)).epoch
        await store.erase(ADA)
        await store.log.append(opened("a"))
        with pytest.raises(ErasedError):
            await store.log.advance(replace(added("a"), epoch=epoch))
        turn = await store.log.advance(replace(added("a"), epoch=await store.reader.epoch()))
        assert 1 == len(turn.steps)

    async def test_a_turn_is_repeated_in_its_epoch(self, store: Store) -> None:
        """The same turn returns what is stored and another under its id is refused, as without an epoch."""
        first = await store.log.append(done("a"))
        epoch = await store.reader.epoch()
        assert first == await store.log.append(replace(done("a"), epoch=epoch))
        with pytest.raises(ConflictError):
            await store.log.append(replace(done("a", "another question"), epoch=epoch))

    async def test_an_erasure_names_the_conversations_that_went(self, store: Store) -> None:
        """So that copies held elsewhere can be erased there."""
        for scope in (CHAT, Scope("tenant", "ada", "else"), Scope("tenant", "bob", "his")):
            await store.log.append(done("a", scope=scope))
        assert {"chat", "else"} == set((await store.erase(ADA)).conversations)
        assert {"his"} == set((await store.erase(TENANT)).conversations)

    @pytest.mark.parametrize("what", sorted(_WRITES))
    async def test_what_nobody_erased_is_written(self, store: Store, what: str) -> None:
        """Whatever else was erased since, or if no epoch is given."""
        await store.erase(CHAT)
        await store.log.append(done("a"))
        epoch = (await head_of(store)).epoch
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
            await store.log.append(done("a"))
            epoch = (await head_of(store)).epoch
            await store.erase(scope)
            bob = Scope("tenant", "bob", "chat")
            await store.log.append(done("a", scope=bob))
            with pytest.raises(ErasedError):
                await store.log.mark(replace(checkpoint("k", 1, scope=ANYBODY), epoch=epoch))
            with pytest.raises(ErasedError):
                await store.sessions.put(ANYBODY, {}, epoch=epoch)
            await store.erase(bob)

    async def test_the_epoch_is_known_before_a_conversation_begins(self, store: Store) -> None:
        """A window may be requested before the first turn."""
        first = (await head_of(store)).epoch
        await store.erase(CHAT)
        second = (await head_of(store)).epoch
        assert second > first
        with pytest.raises(ErasedError):
            await store.calls.add([call("w")], keep=9, epoch=first)
        await store.calls.add([call("w")], keep=9, epoch=second)
        await store.log.append(done("a"))
        assert [head.epoch for head in await store.reader.heads(HeadQuery(ADA))] == [second]

    async def test_one_call_that_was_erased_keeps_all_of_them_out(self, store: Store) -> None:
        """They are written together or not at all."""
        other = Scope("tenant", "ada", "else")
        epoch = (await head_of(store)).epoch
        await store.erase(other)
        with pytest.raises(ErasedError):
            await store.calls.add([call("a"), call("b", scope=other)], keep=9, epoch=epoch)
        assert await store.calls.list(ADA) == []

    async def test_a_fact_is_not_written_from_a_conversation_that_was_erased(self, store: Store) -> None:
        """Even though the user still exists."""
        epoch = (await head_of(store)).epoch
        await store.erase(ANYBODY)
        with pytest.raises(ErasedError):
            await store.facts.revise(ADA, [fact("f")], action="stored", at=AT, epoch=epoch)
        loose = replace(fact("g"), scope=ADA)
        await store.facts.revise(ADA, [loose], action="stored", at=AT, epoch=epoch)
        assert [one.id for one in await store.facts.list(ADA)] == ["g"]

    async def test_a_copy_is_not_written_of_what_was_erased(self, store: Store) -> None:
        """Neither entries nor pages, even into a conversation that was not erased itself."""
        there = Scope("tenant", "ada", "copy")
        turn = await store.log.append(done("a"))
        epoch = (await head_of(store)).epoch
        await store.erase(CHAT)
        copied = replace(page("p", scope=there), epoch=epoch, origin=CHAT)
        with pytest.raises(ErasedError):
            await store.log.restore([replace(turn, scope=there)], epoch=epoch, origin=CHAT)
        with pytest.raises(ErasedError):
            await store.pages.put(copied)
        assert [[], []] == [await store.reader.heads(HeadQuery(there)), await store.pages.list(there)]
        await store.log.restore([replace(turn, scope=there)], epoch=epoch)
        await store.pages.put(replace(copied, origin=None))

    async def test_an_erasure_and_those_who_write_behind_it_at_once(self, store: Store) -> None:
        """Whatever the interleaving, nothing erased is left."""
        for number in range(5):
            await store.log.append(done("a"))
            epoch = (await head_of(store)).epoch
            outcomes: list[Any] = []

            async def write(name: str, epoch: int = epoch, outcomes: list[Any] = outcomes) -> None:
                try:
                    outcomes.append(await _WRITES[name](store, epoch))
                except ErasedError as error:
                    outcomes.append(error)

            async with anyio.create_task_group() as tasks:
                for name in ("call", "fact", "page", "watermark", "session"):
                    tasks.start_soon(write, name)
                    if name == "fact":
                        tasks.start_soon(store.erase, (CHAT, ADA, TENANT)[number % 3])
            assert len(outcomes) == 5
            assert await left(store, CHAT) == [[], [], [], [], {}, None]
            assert await store.source.since(SinceRequest(ADA, {})) == []
