"""Erasing a single turn or page."""

from dataclasses import replace

import pytest

from pagefile.errors import ConflictError, ErasedError, HandleNotFoundError, NotFoundError
from pagefile.ports import EntryQuery, Part, SinceRequest, Store, TurnTerms
from pagefile.records import ERASED, Scope, Step, WindowRecord
from pagefile.testing.contracts.base import Contract, everything, head_of, refused, session_of, view_of, write
from pagefile.testing.drafts import call, checkpoint, completed, done, fact, opened, page, picturing, reset
from pagefile.testing.fakes import FakeClock
from pagefile.testing.scopes import ADA, BOB, CHAT, ELSE, FIRM, FIRM_CHAT, HIS, STRANGER, TENANT

FORK = Scope("tenant", "ada", "fork")
_LOADS = frozenset({"load"})
MARKER = "the passport number is X4711-88"


def turn(turn_id: str = "a") -> Part:
    return Part(turn_id, None, 2, _LOADS)


def of_page(uuid: str = "p") -> Part:
    return Part(None, uuid, 2, _LOADS)


def paged(uuid: str = "p", tool: str = "search", result: str = "see p") -> Step:
    given = Step(tool, {"q": "?"}, result, f"call-{uuid}", 2, 3)
    return replace(given, page=uuid, whole=False, page_tokens=9, page_chars=16)


def shown(call_id: str, *names: str, scope: Scope = CHAT, query: str = "why?") -> WindowRecord:
    """A recorded window that names candidates."""
    verdicts = [{"id": name} for name in names]
    return replace(call(call_id, scope=scope), query=query, receipt={"verdicts": verdicts})


async def words_left(store: Store, scope: Scope = CHAT) -> str:
    """Everything that can still be read of a conversation, as one text."""
    found = [
        await everything(store, scope),
        await store.facts.list(scope, retracted=True),
        await store.facts.revisions(ADA),
        await store.pages.list(ADA),
        await store.calls.list(ADA),
        await store.sessions.get(scope),
        await store.terms.since(SinceRequest(ADA, {}), "v1"),
        (await view_of(store, scope)).checkpoint,
    ]
    return "\n".join(map(str, found))


class PartContract(Contract):
    """`Store.erase` with a part."""

    async def test_a_turn_leaves_its_place_and_nothing_else(self, store: Store, clock: FakeClock) -> None:
        """Every trace is counted and removed; the log has no gap, and other turns are unchanged."""
        await write(store, done("before"), replace(picturing("a"), user=MARKER, assistant=f"Noted: {MARKER}"))
        learnt = replace(fact("f", MARKER), source_turn="a", source_quote=MARKER)
        await write(store, done("after", assistant="last"), learnt, replace(fact("g"), source_turn="before"))
        await store.terms.write(CHAT, [TurnTerms("chat", 2, "a", clock.now(), MARKER, "")], "v1")
        await write(store, shown("w", "a"), shown("v", "before"), shown("u", query=MARKER))
        before = await everything(store)
        receipt = await store.erase(CHAT, turn())
        assert (receipt.turn_id, receipt.places, receipt.at) == ("a", (("chat", 2),), clock.now())
        one_each = ("ai_message", "attachments", "blobs", "fact_revisions", "facts", "turn_terms")
        counted = {name: count for name, count in receipt.counts.items() if count}
        assert counted == {**dict.fromkeys(one_each, 1), "context_calls": 2}
        assert MARKER not in await words_left(store)
        first, gone, last = await everything(store)
        assert [first, last] == [before[0], before[2]]
        told = gone.erased, gone.seq, gone.status, gone.user, gone.text
        assert told == (True, 2, "aborted", ERASED, ERASED)
        assert (gone.created, gone.at) == (before[1].created, before[1].at)
        head = await head_of(store)
        assert (head.last_seq, head.turns, head.live_turns, head.live_tokens) == (3, 2, 2, 20)
        assert [one.id for one in (await view_of(store)).turns] == ["before", "after"]
        assert [one.id for one in await store.source.since(SinceRequest(ADA, {}))] == ["before", "after"]
        assert (await store.log.append(done("next"))).seq == 4

    async def test_an_erased_turn_is_not_written_again(self, store: Store) -> None:
        """Neither by recording it again nor from a backup; erasing it again changes nothing."""
        await store.log.append(done("a", MARKER))
        old = await everything(store)
        await store.erase(CHAT, turn())
        written = store.log.append(done("a", MARKER)), store.log.restore(old)
        await refused(ConflictError, *written, match="erased")
        again = await store.erase(CHAT, turn())
        assert (again.total, again.places) == (0, (("chat", 1),))
        assert MARKER not in await words_left(store)

    async def test_an_open_turn_is_gone(self, store: Store) -> None:
        """It has no position yet: completing it fails with `NotFoundError`."""
        await store.log.append(opened("a", MARKER))
        receipt = await store.erase(CHAT, turn())
        assert (receipt.counts["ai_message"], receipt.places) == (1, (("chat", 0),))
        assert await everything(store) == []
        await refused(NotFoundError, store.log.advance(completed("a")))

    async def test_what_was_never_there_is_not_erased(self, store: Store) -> None:
        """An unknown turn, page or conversation raises: a mistyped id must not go unnoticed."""
        await store.log.append(done("a"))
        for scope, part in ((CHAT, turn("x")), (CHAT, of_page("x")), (ELSE, turn()), (FIRM_CHAT, turn())):
            await refused(NotFoundError, store.erase(scope, part), match="nothing was erased")
        assert (len(await everything(store)), await store.reader.epoch()) == (1, 0)

    async def test_what_left_no_trace_is_erased_twice_like_once(self, store: Store) -> None:
        """An open turn and a page; other users learn nothing about them."""
        await write(store, opened("a"), page("p"))
        assert 1 == (await store.erase(CHAT, turn())).counts["ai_message"]
        assert 0 == (await store.erase(CHAT, turn())).total
        assert 1 == (await store.erase(TENANT, of_page())).counts["tool_result_archive"]
        for scope in (TENANT, ADA, CHAT):
            assert 0 == (await store.erase(scope, of_page())).total
        for scope, part in ((BOB, of_page()), (FIRM, of_page()), (CHAT, turn("b"))):
            await refused(NotFoundError, store.erase(scope, part))

    async def test_a_turn_of_another_user_is_not_erased(self, store: Store) -> None:
        """It raises `ConflictError` and erases nothing; whether a page exists is not revealed."""
        await write(store, done("a"), page("p"))
        for part in (turn(), of_page(), of_page("x")):
            await refused(ConflictError, store.erase(STRANGER, part))
        await refused(HandleNotFoundError, store.erase(BOB, of_page()))
        assert (len(await everything(store)), await store.reader.epoch()) == (1, 0)
        assert (await store.pages.load(CHAT, "p"))[1] == "the whole result"

    async def test_summaries_that_may_say_it_go_too(self, store: Store) -> None:
        """The turns they covered are live again, and the summary before them is current; the next one builds on that."""
        await write(store, done("x", "early"), checkpoint("k1", 1, summary="early words"), done("a", MARKER))
        newer = checkpoint("k3", 5, 2, summary=f"{MARKER} and more")
        await write(store, checkpoint("k2", 3, 1, summary=MARKER), done("b"), newer)
        receipt = await store.erase(CHAT, turn())
        assert (receipt.counts["ai_message"], receipt.counts["conversation_summaries"]) == (3, 1)
        assert MARKER not in await words_left(store)
        entries = await everything(store)
        erased = [entry.seq for entry in entries if getattr(entry, "erased", False)]
        assert (len(entries), erased) == (6, [3, 4, 6])
        seen = await view_of(store)
        assert (seen.checkpoint.id, [one.id for one in seen.turns]) == ("k1", ["b"])
        assert (seen.head.covered_through_seq, seen.head.turns, seen.head.live_turns) == (1, 2, 1)
        assert (await session_of(store))["message_context"]["summary"] == "early words"
        (mark,) = await write(store, checkpoint("k4", 5, 1, summary="a new one"))
        assert (mark.seq, mark.version) == (7, 2)

    async def test_without_a_summary_before_it_everything_is_live(self, store: Store) -> None:
        """And the session reflects that."""
        await write(store, *(done(name, assistant=f"answer {name}") for name in "abc"), checkpoint("k", 2))
        await store.erase(CHAT, turn("c"))
        assert (await head_of(store)).live_turns == 0
        await store.erase(CHAT, turn("a"))
        seen = await view_of(store)
        assert (seen.checkpoint, [one.id for one in seen.turns]) == (None, ["b"])
        session = await session_of(store)
        flow = {"current_agent_key": "", "last_bot_message": "answer b", "turn_count": 1}
        assert (session["flow_context"], session["message_context"]["mode"]) == (flow, "FULL_HISTORY")

    async def test_a_summary_from_after_a_reset_stays(self, store: Store) -> None:
        """It never read what came before."""
        await write(store, done("a", MARKER), checkpoint("k1", 1, summary=MARKER), reset("r"), done("b"))
        await store.log.mark(checkpoint("k2", 4, summary="of b"))
        await store.erase(CHAT, turn())
        assert MARKER not in await words_left(store)
        seen = await view_of(store)
        assert (seen.checkpoint.id, seen.head.reset_seq, seen.head.turns) == ("k2", 3, 1)
        assert (await store.log.mark(checkpoint("k3", 4, 2))).seq == 6

    async def test_what_an_application_kept_in_the_session_loses_the_words(self, store: Store) -> None:
        """Messages that repeat them are removed, and everything else stays as it was."""
        await store.log.append(done("a", MARKER, "ok"))
        messages = {"window_messages": [{"text": MARKER}, {"text": "other"}]}
        await store.sessions.put(CHAT, {"message_context": messages, "mine": ["ok?"]})
        await store.erase(CHAT, turn())
        session = await session_of(store)
        assert session["message_context"]["window_messages"] == [{"text": "other"}]
        assert session["mine"] == ["ok?"]

    async def test_copies_in_forks_go_too(self, store: Store) -> None:
        """They hold the same words; a turn with that id but another text is a different one."""
        for scope in (CHAT, FORK):
            mark = checkpoint("k", 1, scope=scope, summary=MARKER)
            await write(store, done("a", MARKER, scope=scope), mark)
        await write(store, done("a", "other words", scope=ELSE), done("a", MARKER, scope=HIS))
        assert sorted((await store.erase(CHAT, turn())).places) == [("chat", 1), ("fork", 1)]
        for scope in (CHAT, FORK):
            assert MARKER not in await words_left(store, scope)
        for scope in (ELSE, HIS):
            assert (await head_of(store, scope)).live_turns == 1

    @pytest.mark.parametrize("answered", [CHAT, FORK], ids=["original", "copy"])
    async def test_a_copy_that_was_answered_otherwise_goes_too(self, store: Store, answered: Scope) -> None:
        """A fork may begin at an open turn, and each side continues on its own."""
        await write(store, *(opened("a", MARKER, scope=scope) for scope in (CHAT, FORK)))
        await store.log.advance(replace(completed("a", f"Noted: {MARKER}"), scope=answered))
        await store.calls.add([shown("w", query=f"Noted: {MARKER}")], keep=9)
        assert {"chat", "fork"} == {name for name, _ in (await store.erase(CHAT, turn())).places}
        for scope in (CHAT, FORK):
            assert MARKER not in await words_left(store, scope)

    @pytest.mark.parametrize("part", [turn(), of_page()], ids=["turn", "page"])
    async def test_a_session_that_was_read_before_is_of_another_version(
        self, store: Store, part: Part
    ) -> None:
        """Even if the clock does not move and no entry is added: holders of the session can tell by the head."""
        await write(store, page("p"), done("a", MARKER, steps=[paged("p")]))
        before = await head_of(store)
        await store.erase(CHAT, part)
        after = await head_of(store)
        assert (before.last_seq, True) == (after.last_seq, before.updated < after.updated)

    async def test_the_pages_of_a_turn_go_with_it(self, store: Store) -> None:
        """Except those another turn also made with an equal call, or that the turn only loaded."""
        await write(store, *(page(uuid, f"text of {uuid}", spans=((0, 4),)) for uuid in "pqr"))
        first = done("a", steps=[paged("p"), paged("q"), paged("r", "load")])
        await write(store, first, done("b", steps=[paged("q"), paged("p", "load", "text of p")], tokens=30))
        receipt = await store.erase(CHAT, turn())
        for name in ("tool_result_archive", "archive_passage", "blobs"):
            assert receipt.counts[name] == 1
        assert {one.uuid for one in await store.pages.list(CHAT)} == {"q", "r"}
        left = (await everything(store))[1]
        assert [(one.page, one.result) for one in left.steps] == [("q", "see p"), (None, ERASED)]
        assert (left.tokens, (await head_of(store)).live_tokens) == (29, 29)

    async def test_a_page_leaves_a_note(self, store: Store) -> None:
        """Wherever a turn showed it. Windows that show it and its copies in forks are removed; equal texts of other pages stay."""
        await write(store, page("p", MARKER, spans=((0, 4),)), page("copy", MARKER, scope=FORK))
        await write(store, page("equal", MARKER, minutes=5), done("f", scope=FORK, steps=[paged("copy")]))
        await write(store, done("a", steps=[paged("p"), paged("equal")], tokens=20))
        await write(store, done("b", steps=[replace(paged("p", "load", f"p: {MARKER}"), page=None)]))
        await write(store, replace(checkpoint("k", 2), archive_refs=("p", "equal")))
        await write(store, shown("w", "page:p"), shown("v", "equal"))
        receipt = await store.erase(ADA, of_page())
        assert (receipt.page, receipt.counts["tool_result_archive"], receipt.counts["blobs"]) == ("p", 2, 0)
        assert (receipt.counts["ai_message"], receipt.counts["context_calls"]) == (3, 1)
        first, second, mark = await everything(store)
        steps = [(one.page, one.whole, one.result) for one in first.steps]
        assert steps == [(None, True, ERASED), ("equal", False, "see p")]
        assert (first.status, first.user, first.tokens) == ("done", "question", 19)
        assert second.steps[0].result == ERASED
        assert mark.archive_refs == ("equal",)
        assert (await view_of(store)).checkpoint.archive_refs == ("equal",)
        for uuid in ("p", "copy"):
            await refused(HandleNotFoundError, store.pages.load(ADA, uuid))
        assert (await store.pages.load(ADA, "equal"))[1] == MARKER

    @pytest.mark.parametrize("part", [turn(), of_page()], ids=["turn", "page"])
    async def test_what_was_read_before_is_not_written_behind_it(self, store: Store, part: Part) -> None:
        """Within its conversation; writes elsewhere are accepted."""
        await write(store, done("a"), done("b", scope=ELSE), page("p"))
        epoch = (await head_of(store)).epoch
        await store.erase(CHAT, part)
        late = replace(checkpoint("k", 1), epoch=epoch)
        await refused(ErasedError, store.log.mark(late), store.sessions.put(CHAT, {}, epoch=epoch))
        await store.log.mark(replace(late, scope=ELSE))
        await store.log.mark(replace(checkpoint("k", 1), epoch=(await head_of(store)).epoch))

    async def test_places_outside_begin_its_conversation_again(self, store: Store) -> None:
        """Only the places the part names: what a tier stored there was read from the log before the erasure."""
        await store.log.append(done("a"))
        for tier in ("vectors:outside:m", "vectors:elsewhere:m"):
            await store.watermarks.advance(CHAT, tier, 1, epoch=None)
        await store.erase(CHAT, replace(turn(), places=("outside",)))
        assert {} == await store.watermarks.known(CHAT, "vectors:outside:m")
        assert {"chat": 1} == await store.watermarks.known(CHAT, "vectors:elsewhere:m")

    async def test_a_log_with_an_erased_turn_can_be_restored(self, store: Store) -> None:
        """Into an empty conversation, unchanged."""
        await write(store, done("x"), done("a", MARKER))
        await store.erase(CHAT, turn())
        entries = await everything(store)
        await store.erase(CHAT)
        assert await store.log.restore(entries) == 2
        assert await everything(store) == entries
        query = EntryQuery(CHAT, statuses=frozenset({"done"}))
        assert [one.id for one in await store.reader.entries(query)] == ["x"]
