"""Turns whose messages are more than a question, tool calls and an answer."""

import hashlib
from dataclasses import replace
from uuid import UUID

import anyio
import pytest

from pagefile.content import Media, Message, Other, Reasoning, Text, ToolCall, ToolResult
from pagefile.errors import ConflictError, InvalidArgumentError, NotFoundError
from pagefile.ports import Extend, Store
from pagefile.records import Scope, plain_layout
from pagefile.testing.contracts.base import Contract, changes_nothing, everything, head_of, refused, write
from pagefile.testing.drafts import aborted, added, completed, done, extended, opened, picture, step, view
from pagefile.testing.scopes import CHAT

SEEN = Message("assistant", (Text("I see"),))
CALL, RESULT = Message("assistant", (ToolCall(0),)), Message("tool", (ToolResult(0),))
_TABLE = Media("file", "text/csv", url="https://x/y.csv", name="y.csv")
#: Every kind of part; texts that the row already has, and others.
LAYOUT = (
    Message("system", (Text("be brief"),), "openai"),
    Message("user", (Text("question"), picture(b"one"), Text("more"))),
    Message(
        "assistant",
        (Reasoning("hm", {"signature": "x", "n": [1, 2.5, None]}), Text("answer"), ToolCall(0)),
        "anthropic",
        {"role": "assistant", "content": [{"$part": 0}], "id": "m1"},
    ),
    Message("tool", (ToolResult(0, (_TABLE,), True),)),
    Message("user", (Text("question"),)),
    Message("assistant", (Other({"type": "new", "deep": {"空": [True]}}), Text("answer"))),
    Message("assistant", ()),
)


class MessagesContract(Contract):
    """`TurnDraft.layout`, `Extend`, and how messages are compared."""

    async def test_messages_come_back_as_they_were_given(self, store: Store) -> None:
        turn = await store.log.append(replace(done("a", steps=[step()]), layout=LAYOUT))
        assert (turn.layout, turn.messages) == (LAYOUT, LAYOUT)
        assert await everything(store) == [turn]
        assert (await store.reader.view(view())).turns == (turn.spoken,)

    async def test_a_turn_in_the_short_form_has_the_messages_that_follow_from_it(self, store: Store) -> None:
        """`layout` is None, also when it is read back."""
        assert (await store.log.append(done("a", steps=[step()]))).layout is None
        (read,) = await everything(store)
        assert (read.layout, read.messages) == (None, plain_layout("question", range(1), "answer"))

    async def test_no_messages_are_not_the_short_form(self, store: Store) -> None:
        """An empty list stays empty."""
        await store.log.append(replace(done("a"), layout=()))
        assert [one.layout for one in await everything(store)] == [()]

    async def test_the_same_messages_twice_are_stored_once(self, store: Store) -> None:
        """The same id with the same texts, steps and messages returns what is stored."""
        first = await store.log.append(replace(done("a", steps=[step()]), layout=LAYOUT))
        assert await store.log.append(replace(done("a", steps=[step()]), layout=LAYOUT, tokens=99)) == first
        short = await store.log.append(done("b", steps=[step()]))
        spelled = replace(done("b", steps=[step()]), layout=plain_layout("question", range(1), "answer"))
        assert await store.log.append(spelled) == short

    @pytest.mark.parametrize("layout", [None, LAYOUT[:-1], LAYOUT[::-1], ()])
    async def test_the_same_id_with_other_messages_conflicts(
        self, store: Store, layout: tuple[Message, ...] | None
    ) -> None:
        given = replace(done("a", steps=[step()]), layout=LAYOUT)
        await store.log.append(given)
        await changes_nothing(store, ConflictError, store.log.append(replace(given, layout=layout)))

    async def test_an_open_turn_is_extended_message_by_message(self, store: Store) -> None:
        """New messages and steps are appended; a missing result is filled in."""
        _, called = await write(store, opened("a"), extended("a", SEEN, CALL, steps=[step(result="")]))
        assert called.messages == (*plain_layout("question", (), None), SEEN, CALL)
        assert (called.steps, called.tokens, called.seq) == ((step(result=""),), 11, None)
        filled = Extend(CHAT, "a", (RESULT,), 4, results={0: step(given={"x": (1,)})})
        answered = await store.log.advance(filled)
        assert answered.steps == (step(given={"x": [1]}),)
        assert (await everything(store)) == [answered]
        ended = await store.log.advance(completed("a", "done then"))
        assert ended.messages == (*called.messages, RESULT, Message("assistant", (Text("done then"),)))
        assert (await everything(store)) == [ended]

    async def test_a_turn_without_a_question_gets_it_when_it_comes(self, store: Store) -> None:
        """The user's first text, once."""
        await store.log.append(replace(opened("a", None), user_tokens=0))
        said = Message("user", (Text("hello"),))
        for text in ("hello", "ignored"):
            turn = await store.log.advance(Extend(CHAT, "a", (said,), 3, user=text, user_tokens=2, after=0))
        assert (turn.user, turn.user_tokens) == ("hello", 2)
        assert await everything(store) == [turn]
        turn = await store.log.advance(Extend(CHAT, "a", (SEEN,), 3, user="later", user_tokens=9))
        assert (turn.user, turn.user_tokens) == ("hello", 2)

    async def test_what_is_shown_after_a_question_is_added_to_it(self, store: Store) -> None:
        """Its name is added to the user's text; begun again with the words alone, it is still the same turn."""
        await store.log.append(opened("a"))
        named = "question\n[image]"
        turn = await store.log.advance(Extend(CHAT, "a", (SEEN,), 3, user=named, user_tokens=5, after=1))
        assert (turn.user, turn.user_tokens) == (named, 5)
        assert await everything(store) == [turn]
        assert await store.log.append(opened("a")) == turn
        other = store.log.append(opened("a", "another question"))
        await changes_nothing(store, ConflictError, other)

    async def test_the_same_messages_extend_a_turn_once(self, store: Store) -> None:
        """At the end, or at the position they were made for; nothing is counted twice."""
        given = extended("a", SEEN, CALL, steps=[step()], after=1)
        _, first, again = await write(store, opened("a"), given, replace(given, after=None))
        further, once_more = await write(store, extended("a", RESULT, after=3), given)
        assert (again, once_more) == (first, further)
        assert await everything(store) == [further]

    async def test_the_same_messages_with_another_result_conflict(self, store: Store) -> None:
        """Messages refer to the step that holds a result, so results are compared too; nothing is written."""
        await write(store, opened("a"), extended("a", CALL, steps=[step(result="")], after=1))
        first = Extend(CHAT, "a", (RESULT,), 4, results={0: step(result="first")}, after=2)
        turn, again = await write(store, first, first)
        assert turn == again
        for after in (2, None):
            other = replace(first, results={0: step(result="second")}, after=after)
            await changes_nothing(store, ConflictError, store.log.advance(other), match="another result")

    async def test_a_call_and_its_result_sent_twice_must_be_the_same(self, store: Store) -> None:
        """Also if both came together, and if the result is a page."""
        await store.log.append(opened("a"))
        kept = replace(step(result="📎"), page=str(UUID(int=1)), whole=False)
        turn = await store.log.advance(extended("a", CALL, RESULT, steps=[kept], after=1))
        again = replace(kept, result="in other words")
        assert await store.log.advance(extended("a", CALL, RESULT, steps=[again], after=1)) == turn
        other = extended("a", CALL, RESULT, steps=[replace(kept, page=str(UUID(int=2)))], after=1)
        await changes_nothing(store, ConflictError, store.log.advance(other), match="another result")

    async def test_messages_for_a_turn_that_has_moved_on_conflict(self, store: Store) -> None:
        """Another number of messages, or another caller's steps; nothing is written."""
        await write(store, opened("a"), extended("a", CALL, steps=[step()]))
        late = (
            extended("a", SEEN, after=1),
            extended("a", SEEN, after=7),
            extended("a", SEEN, CALL, steps=[step("other")]),
            extended("a", Message("assistant", (ToolCall(2),)), steps=[step("other")]),
            extended("a", Message("tool", (ToolResult(1),))),
        )
        await changes_nothing(store, ConflictError, *map(store.log.advance, late))

    async def test_of_two_who_extend_at_once_one_must_look_again(self, store: Store) -> None:
        """Both name the same step, so only one of them can be right."""
        await store.log.append(opened("a"))
        lost: list[str] = []

        async def extend(name: str) -> None:
            try:
                await store.log.advance(extended("a", CALL, steps=[step(name)], after=1))
            except ConflictError:
                lost.append(name)

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(extend, f"call-{number}")
        (turn,) = await everything(store)
        assert (len(turn.steps), len(turn.messages)) == (1, 2)
        assert sorted([*lost, turn.steps[0].call_id]) == [f"call-{number}" for number in range(5)]

    async def test_a_turn_that_ended_is_not_extended(self, store: Store) -> None:
        """It raises `ConflictError`, whether the messages are new or already there."""
        await write(store, opened("a"), opened("b"), extended("a", SEEN), completed("a"), aborted("b"))
        changes = extended("a", SEEN), extended("a", CALL, steps=[step()]), extended("b", SEEN)
        await refused(ConflictError, *map(store.log.advance, changes))
        await refused(NotFoundError, store.log.advance(extended("c", SEEN)))

    async def test_a_step_of_a_turn_with_messages_is_a_message_too(self, store: Store) -> None:
        """`AddStep` is equivalent to the messages of a call and its result."""
        *_, turn = await write(store, opened("a"), extended("a", SEEN), added("a"))
        assert turn.messages[-2:] == (CALL, RESULT)
        assert await everything(store) == [turn]

    async def test_what_is_not_json_in_a_message_is_refused(self, store: Store) -> None:
        bad = Message("user", (Other({"x": float("nan")}),))
        await store.log.append(opened("b"))
        appended = store.log.append(replace(done("a"), layout=(bad,)))
        await changes_nothing(store, InvalidArgumentError, appended, store.log.advance(extended("b", bad)))

    async def test_an_answer_made_for_other_messages_conflicts(self, store: Store) -> None:
        """`Complete.after`: the answer belongs to messages that have changed since. A turn in the short form has none."""
        await write(store, opened("a"), added("a"), replace(completed("a"), after=1), opened("b"))
        await store.log.advance(extended("b", SEEN))
        await refused(ConflictError, store.log.advance(replace(completed("b"), after=1)))
        ended, again = await write(store, *[replace(completed("b"), after=2)] * 2)
        assert (ended.status, len(ended.messages), again) == ("done", 3, ended)

    async def test_restored_turns_keep_their_messages(self, store: Store) -> None:
        """Along with their files."""
        original = await store.log.append(replace(done("a", steps=[step()]), layout=LAYOUT))
        copy = Scope("tenant", "ada", "copy")
        key = hashlib.sha256(b"one").hexdigest()
        blobs = {key: b"one", hashlib.sha256(b"nowhere").hexdigest(): b"nowhere"}
        assert await store.log.restore([replace(original, scope=copy)], blobs=blobs) == 1
        assert [one.layout for one in await everything(store, copy)] == [LAYOUT]
        assert await store.media.load(copy, key) == b"one"
        await refused(NotFoundError, store.media.load(copy, hashlib.sha256(b"nowhere").hexdigest()))
        assert await store.log.restore([replace(original, id="b", scope=copy, seq=2)], blobs=blobs) == 1
        assert (await head_of(store, copy)).turns == 2
