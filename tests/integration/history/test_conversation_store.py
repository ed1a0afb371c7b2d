"""`ConversationStore` keeps its promises on every database."""

from datetime import UTC, datetime, timedelta

import anyio
import pytest

from pagefile import ConflictError, InvalidArgumentError
from pagefile.standalone import ConversationStore


async def talk(store, *numbers, conversation_id="c"):
    for number in numbers:
        await store.append_message(conversation_id, "user", f"问{number}")
        await store.append_message(conversation_id, "assistant", f"答{number}")


def texts(messages):
    return [message["content"] for message in messages]


async def test_nothing_yet(store):
    """A conversation that nobody wrote to is empty, not an error."""
    assert [] == await store.list_messages("c")
    assert [] == await store.list_messages("c", limit=6, desc=True)
    assert 0 == await store.count_messages("c")
    assert await store.get_summary("c") is None


async def test_both_messages_are_kept(store):
    """The user's message is written first, and both are there when the answer is."""
    asked = await store.append_message("c", "user", "你好")
    assert ("user", "你好", "c") == (asked["role"], asked["content"], asked["conversation_id"])
    answered = await store.append_message("c", "assistant", "您好")
    assert asked["turn_id"] == answered["turn_id"]
    assert [asked["id"], answered["id"]] == [m["id"] for m in await store.list_messages("c")]
    assert [("user", "你好"), ("assistant", "您好")] == [
        (m["role"], m["content"]) for m in await store.list_messages("c")
    ]


async def test_lists(store):
    """Limit counts messages; desc begins with the newest."""
    await talk(store, 1, 2, 3, 4)
    everything = ["问1", "答1", "问2", "答2", "问3", "答3", "问4", "答4"]
    assert everything == texts(await store.list_messages("c"))
    assert everything[::-1] == texts(await store.list_messages("c", desc=True))
    assert everything[:3] == texts(await store.list_messages("c", limit=3))
    assert everything[:-4:-1] == texts(await store.list_messages("c", limit=3, desc=True))
    assert everything == texts(await store.list_messages("c", limit=100))
    assert everything[::-1] == texts(await store.list_messages("c", limit=100, desc=True))
    assert 8 == await store.count_messages("c")


@pytest.mark.parametrize("desc", [False, True])
async def test_a_limit_of_nothing_is_refused(store, desc):
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        await store.list_messages("c", limit=0, desc=desc)


async def test_what_has_no_answer_is_listed_and_counted(store):
    """A stream that broke off leaves the user's message, and nothing of the answer."""
    await talk(store, 1)
    asked = await store.append_message("c", "user", "还没回答")
    assert ["问1", "答1", "还没回答"] == texts(await store.list_messages("c"))
    assert 3 == await store.count_messages("c")
    await store.abort_turn("c", asked["turn_id"])
    await talk(store, 2)
    assert ["问1", "答1", "还没回答", "问2", "答2"] == texts(await store.list_messages("c"))
    assert 5 == await store.count_messages("c")
    with pytest.raises(ConflictError):
        await store.append_message("c", "assistant", "太晚了", turn_id=asked["turn_id"])


async def test_an_answer_names_its_turn(store):
    """Requests that overlap do not take each other's answers: everything is listed as it was said."""
    first = await store.append_message("c", "user", "问1")
    second = await store.append_message("c", "user", "问2")
    await store.append_message("c", "assistant", "答1", turn_id=first["turn_id"])
    await store.append_message("c", "assistant", "答2", turn_id=second["turn_id"])
    assert ["问1", "问2", "答1", "答2"] == texts(await store.list_messages("c"))


async def test_turns_that_are_named_have_their_own_answers(store):
    """Whoever names the turns of both sides has each answer beside its question."""
    for number in (1, 2):
        await store.append_message("c", "user", f"问{number}", turn_id=f"t{number}")
    for number in (2, 1):
        await store.append_message("c", "assistant", f"答{number}", turn_id=f"t{number}")
    assert ["问2", "答2", "问1", "答1"] == texts(await store.list_messages("c"))


async def test_an_answer_without_a_name_goes_to_the_messages_that_wait(store, memory):
    """Also from another process, which only has the database; several in a row are one side."""
    await store.append_message("c", "user", "问1")
    await store.append_message("c", "user", "问2")
    await ConversationStore(memory).append_message("c", "assistant", "答2")
    assert ["问1", "问2", "答2"] == texts(await store.list_messages("c"))
    assert 1 == len(await memory.conversation("c").turns())


async def test_an_assistant_may_speak_first(store):
    await store.append_message("c", "assistant", "欢迎！")
    await talk(store, 1)
    assert ["欢迎！", "问1", "答1"] == texts(await store.list_messages("c"))
    assert 3 == await store.count_messages("c")


async def test_the_same_message_again(store):
    """A caller that tries again under the same turn writes nothing twice."""
    for _ in range(2):
        await store.append_message("c", "user", "问", turn_id="t1")
    for _ in range(2):
        await store.append_message("c", "assistant", "答", turn_id="t1")
    assert 2 == await store.count_messages("c")
    with pytest.raises(ConflictError):
        await store.append_message("c", "assistant", "另一个", turn_id="t1")


@pytest.mark.parametrize(("role", "known"), [("human", "user"), ("ai", "assistant")])
async def test_other_names_of_the_roles(store, role, known):
    await store.append_message("c", "user", "问")
    assert known == (await store.append_message("c", role, "好"))["role"]


@pytest.mark.parametrize("role", ["system", "tool", "", "User"])
async def test_unknown_roles_are_refused(store, role):
    with pytest.raises(InvalidArgumentError, match="'user' or 'assistant'"):
        await store.append_message("c", role, "文")


async def test_times_with_and_without_a_zone(store):
    """Extra test 23: whatever comes in, what goes out can be compared."""
    for at in (datetime(2026, 1, 23, 8), datetime(2026, 1, 23, 8, tzinfo=UTC)):  # noqa: DTZ001 - that is the test
        await store.append_message("c", "user", "问", at=at)
        await store.append_message("c", "assistant", "答")
    messages = await store.list_messages("c")
    assert 1 == len({message["timestamp"] for message in messages})
    assert all(message["created_at"].utcoffset() == timedelta(0) for message in messages)
    assert sorted(message["created_at"] for message in messages) == [m["created_at"] for m in messages]


# -- the summary ---------------------------------------------------------------------------------------------------------


async def test_a_summary_is_kept(store):
    """One row a conversation; the second takes the place of the first."""
    await talk(store, *range(5))
    saved = await store.save_summary("c", "用户问了前两个问题。", covered_message_count=4)
    assert saved == await store.get_summary("c")
    assert ("用户问了前两个问题。", 4, 1) == (saved.summary, saved.covered_message_count, saved.version)
    again = await store.save_summary("c", "用户问了前三个问题。", covered_message_count=6)
    assert again == await store.get_summary("c")
    assert (6, 2) == (again.covered_message_count, again.version)
    await talk(store, 5, 6)
    assert 6 == (await store.get_summary("c")).covered_message_count
    assert 14 == await store.count_messages("c")


async def test_a_summary_is_one_row_and_goes_with_its_conversation(store, memory):
    """However often it is saved; no summary is left of a conversation that is gone."""
    await talk(store, *range(5))
    for covered in (2, 4, 6):
        await store.save_summary("c", f"到第{covered}条。", covered_message_count=covered)
    gone = await memory.forget(conversation_id="c")
    assert 1 == gone.counts["conversation_summaries"]
    assert await store.get_summary("c") is None


async def test_the_summary_is_the_checkpoint(store, memory):
    """CX-4: one summary, two views of it: the engine's window begins with it."""
    await talk(store, *range(5))
    saved = await store.save_summary("c", "用户喜欢诺兰，订单A-77。", covered_message_count=6)
    (checkpoint,) = await memory.conversation("c").checkpoints()
    assert (saved.id, saved.summary, saved.version, 3) == (
        checkpoint.id,
        checkpoint.summary,
        checkpoint.version,
        checkpoint.covered_turns,
    )
    window = await memory.conversation("c").context("问")
    assert "SUMMARY_N" == window.mode
    made = await memory.conversation("c").checkpoint("引擎写的摘要。", recent_turns=1)
    assert made.id == (await store.get_summary("c")).id
    assert 8 == (await store.get_summary("c")).covered_message_count


async def test_half_a_turn_is_not_covered(store):
    """A summary speaks for whole turns: question and answer stay together."""
    await talk(store, *range(4))
    assert 4 == (await store.save_summary("c", "摘要", covered_message_count=5)).covered_message_count


@pytest.mark.parametrize("count", [0, 1, -3])
async def test_a_summary_of_nothing_is_refused(store, count):
    await talk(store, 1)
    with pytest.raises(InvalidArgumentError, match="no whole turn"):
        await store.save_summary("c", "摘要", covered_message_count=count)
    assert await store.get_summary("c") is None


async def test_an_empty_summary_is_refused(store):
    await talk(store, 1)
    with pytest.raises(InvalidArgumentError, match="empty"):
        await store.save_summary("c", "  ", covered_message_count=2)


async def test_nobody_overwrites_a_summary_unseen(store):
    """Extra test 10: of two writers that read the same version, one is told."""
    await talk(store, *range(6))
    await store.save_summary("c", "甲", covered_message_count=2, expected_version=0)
    with pytest.raises(ConflictError):
        await store.save_summary("c", "乙", covered_message_count=4, expected_version=0)
    assert "甲" == (await store.get_summary("c")).summary
    await store.save_summary("c", "乙", covered_message_count=4, expected_version=1)
    assert "乙" == (await store.get_summary("c")).summary


async def test_a_summary_never_covers_less(store):
    """The cursor only goes forward."""
    await talk(store, *range(6))
    await store.save_summary("c", "甲", covered_message_count=8)
    with pytest.raises(ConflictError):
        await store.save_summary("c", "乙", covered_message_count=2)


async def test_a_reset_starts_over(store, memory):
    """What came before is in no list and no count, and the summary is gone."""
    await talk(store, *range(6))
    await store.save_summary("c", "甲", covered_message_count=8)
    await memory.conversation("c").reset()
    assert [] == await store.list_messages("c")
    assert (0, None) == (await store.count_messages("c"), await store.get_summary("c"))
    await talk(store, 7, 8)
    assert ["问7", "答7", "问8", "答8"] == texts(await store.list_messages("c"))
    assert 4 == await store.count_messages("c")
    assert 2 == (await store.save_summary("c", "乙", covered_message_count=2)).covered_message_count


async def test_counts_of_a_conversation_that_was_erased(store, memory, clock):
    """What is counted along is not mistaken for what was written again under the same id."""
    await talk(store, 1, 2)
    assert 4 == await store.count_messages("c")
    await memory.forget(conversation_id="c")
    clock.advance(60)
    await talk(store, *range(5))
    assert 10 == await store.count_messages("c")


async def test_counts_of_many_readers_at_once(store):
    await talk(store, *range(8))
    counts = []

    async def count():
        counts.append(await store.count_messages("c"))

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(count)
    assert [16] * 8 == counts


async def test_conversations_and_tenants_are_apart(store, memory):
    """Extra test 21."""
    await talk(store, 1)
    await talk(store, 2, conversation_id="o'b\"; --")
    other = ConversationStore(memory, tenant="other")
    assert [] == await other.list_messages("c")
    assert ["问2", "答2"] == texts(await store.list_messages("o'b\"; --"))
    assert ["问1", "答1"] == texts(await store.list_messages("c"))


async def test_the_conversation_of_a_session(store, memory):
    """The same id each time, another one for another user, session or tenant."""
    first = await store.get_or_create_conversation_id("u", "s")
    assert first == await ConversationStore(memory).get_or_create_conversation_id("u", "s")
    others = {
        await store.get_or_create_conversation_id("u", "s2"),
        await store.get_or_create_conversation_id("u2", "s"),
        await ConversationStore(memory, tenant="t").get_or_create_conversation_id("u", "s"),
    }
    assert 4 == len({first, *others})
    await store.append_message(first, "user", "问", user_id="u")
    await store.append_message(first, "assistant", "答")
    assert 2 == await store.count_messages(first)
