"""Nothing a user said vanishes, and windows say when: unanswered, several in a row, too long, yesterday."""

from datetime import UTC, datetime, timedelta

import anyio
import pytest
from hypothesis import example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from pagefile import Memory, Settings
from pagefile.settings import ArchiveSettings
from pagefile.testing import FakeClock

BY_HAND = Settings(window_tokens=1200, checkpoints="manual", on_tier_error="raise")
#: A Wednesday.
NOW = datetime(2026, 6, 17, 23, 40, tzinfo=UTC)
ACTIONS = st.lists(st.sampled_from(["record", "begin", "abort", "complete", "large", "summary"]), max_size=12)


#: A question that was never answered, behind turns that fill the window.
FULL = [
    "record",
    "record",
    "begin",
    "large",
    "record",
    "large",
    "record",
    "record",
    "record",
    "begin",
    "begin",
]


@examples(max_examples=40, deadline=None)
@given(ACTIONS)
@example(FULL)
def test_every_word_of_a_user_is_in_the_window_or_covered_or_recalled(actions):
    """Whatever became of the answers, and however long a turn is."""
    anyio.run(_play, actions)


async def _play(actions):
    async with Memory.open("memory://", settings=BY_HAND, embedder="none") as memory:
        chat = memory.conversation("c", user_id="u")
        said, waiting = [], []
        for number, action in enumerate(actions):
            words = f"Zebra{number}"
            if action in {"record", "large"}:
                more = " sentences about something else." * 800 if action == "large" else ""
                await chat.record(f"My word is {words}.{more}", "Noted.")
                said.append(words)
            elif action == "begin":
                waiting.append(await chat.begin(f"My word is {words}."))
                said.append(words)
            elif action == "summary":
                head = await chat.turns(limit=1)
                if any(turn.seq for turn in head):
                    await _summarise(chat)
            elif waiting:
                await (
                    chat.abort(waiting.pop()) if action == "abort" else chat.complete(waiting.pop(0), "ok")
                )
        window = str((await memory.conversation("c", user_id="u").context("next?")).messages)
        covered = str([mark.summary for mark in await chat.checkpoints()])
        for words in said:
            known = f"{words}." in window or f"{words}." in covered
            assert known or any(f"{words}." in hit.text for hit in await chat.recall(words, 50)), words


async def _summarise(chat):
    """An honest summary of every turn that ended."""
    turns = [turn for turn in await chat.turns(limit=1000) if turn.seq]
    text = " ".join(turn.user.split(" sentences")[0] for turn in turns if turn.user)
    if (await chat.head()).live_turns:
        await chat.checkpoint(text, recent_turns=0)


async def test_the_rest_of_a_long_turn_can_be_loaded(tmp_path):
    """A turn that is shown in part says how to load the rest, and the model's tool does."""
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=BY_HAND, embedder="none") as memory:
        chat = memory.conversation("c", user_id="u")
        clauses = [f"Clause {number}: the party shall act on matter {number}." for number in range(400)]
        clauses[250] = "Clause 250: the penalty for late delivery is 7 percent."
        turn = await chat.record("\n".join(clauses), "A long contract.")
        window = await chat.context("What is the penalty for late delivery?")
        assert "7 percent" in str(window.messages)
        assert f'load_tool_history(uuid="turn:{turn.id}"' in str(window.messages)
        assert window.tokens <= 1200
        asked = {"uuid": f"turn:{turn.id}", "query": "matter 123"}
        assert "Clause 123" in await chat.call_tool("load_tool_history", asked)
        assert "Clause 399" in await chat.load(f"turn:{turn.id}")
        assert "no-such" in await chat.call_tool("load_tool_history", {"uuid": "turn:no-such"})


async def test_a_window_is_dated_by_the_users_clock(tmp_path):
    """Days change at the user's midnight; today's turns need no date, and the beginning of the prompt stays the same."""
    clock = FakeClock(NOW)
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", clock=clock, embedder="none") as memory:
        there = memory.conversation("c", user_id="u", timezone="Asia/Shanghai")
        for hours in (40, 39, 1):
            await there.record(f"said {hours} hours ago", "ok", at=NOW - timedelta(hours=hours))
        first = await there.context("hello")
        clock.advance(60)
        second = await there.context("hello again")
        today, *texts = [message["content"] for message in first.messages]
        assert today == "Today is Thursday, 2026-06-18 (Asia/Shanghai)."
        assert texts[0] == "[2026-06-16 15:40]\nsaid 40 hours ago"
        assert texts[2] == "said 39 hours ago"
        # An hour ago it was half past ten in the evening in London, and the next morning in Shanghai.
        assert texts[4] == "[2026-06-18 06:40]\nsaid 1 hours ago"
        assert "2026-06-18 07:40 星期四 Asia/Shanghai" in texts[-2] or "Thursday Asia/Shanghai" in texts[-2]
        assert first.prefix_hash == second.prefix_hash


async def test_yesterday_is_yesterday_there(tmp_path):
    """At 07:30 in Shanghai, as the conversation, the request or the setting says where the user is."""
    clock = FakeClock(datetime(2026, 6, 17, 23, 30, tzinfo=UTC))
    chosen = Settings(timezone="Asia/Shanghai")
    for settings, timezone in ((Settings(), "Asia/Shanghai"), (chosen, None)):
        async with Memory.open("memory://", settings=settings, clock=clock, embedder="none") as memory:
            chat = memory.conversation("c", user_id="u")
            for day, food in ((15, "饺子"), (16, "烤鸭"), (17, "烤鱼")):
                await chat.record(f"晚饭吃了{food}", "好的", at=datetime(2026, 6, day, 11, tzinfo=UTC))
            asking = memory.conversation("c", user_id="u", timezone=timezone)
            assert "烤鱼" in (await asking.recall("昨天晚饭吃了什么？", 3))[0].text


UNANSWERED = {
    "en": (
        "I'm allergic to penicillin.",
        "user (unanswered): I'm allergic to penicillin.",
        "Another {} about {}.",
    ),
    "zh": ("我对青霉素过敏。", "用户（未获回答）: 我对青霉素过敏。", "再说第{}件事，关于{}。"),
}


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_what_was_not_answered_is_marked_in_every_later_summary_and_when_it_is_recalled(language):
    """Not told as if it had been dealt with: in the first summary, in one that is made from it, in recall here and elsewhere."""
    said, line, other = UNANSWERED[language]
    topics = ["trains", "bread", "snow", "chess", "tulips", "tax", "opera", "boats"]
    async with Memory.open("memory://", settings=BY_HAND, embedder="none") as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.abort(await chat.begin(said))
        for round_ in (0, 1):
            for number, topic in enumerate(topics[4 * round_ : 4 * round_ + 4]):
                await chat.record(other.format(number, topic), "Noted." if language == "en" else "好的。")
            assert line in (await chat.checkpoint(recent_turns=0)).summary.splitlines()
        (found,) = await chat.recall(said, 1)
        assert ("aborted", said) == (found.status, found.text)
        window = await memory.conversation("d", user_id="u").context(said)
        mark = {"en": "[This message was not answered.]", "zh": "[这条消息没有得到回答]"}[language]
        assert f"- {said} → {mark}" in str(window.messages)


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_who_writes_a_summary_reads_what_was_not_answered(language):
    """Before the words, as in our own summaries."""
    said, line, other = UNANSWERED[language]
    read: list[str] = []

    def write(text: str) -> str:
        read.append(text)
        return text.splitlines()[0]

    async with Memory.open("memory://", settings=BY_HAND, summarizer=write, embedder="none") as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.abort(await chat.begin(said))
        await chat.record(other.format(1, "trains"), "Noted.")
        summary = (await chat.checkpoint(recent_turns=0)).summary
    capitals = line.replace("user", "User")
    assert [capitals] == read[0].splitlines()[:1]
    assert capitals == summary


async def test_what_is_asked_again_and_answered_is_no_longer_unanswered():
    """People say the same again when an answer fails."""
    async with Memory.open("memory://", settings=BY_HAND, embedder="none") as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.abort(await chat.begin("I'm allergic to penicillin."))
        await chat.record("I'm allergic to penicillin.", "I will remember.")
        assert (await chat.checkpoint(recent_turns=0)).summary == "user: I'm allergic to penicillin."


PRICES = "\n".join(f"P-{n:04} costs {n * 7 % 1000} euros" for n in range(900))


async def test_of_a_turn_without_an_answer_results_come_back_and_its_half_answer_does_not():
    """S2-61: what a tool returned is true whoever broke off; what the model was about to say is in no window, summary or recall."""
    settings = Settings(archive=ArchiveSettings(threshold=1000), checkpoints="manual")
    async with Memory.open("memory://", settings=settings, embedder="none") as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.begin("Fetch the price list.")
        turn = await chat.step(turn, tool="fetch_prices", input={"list": "2026"}, result=PRICES)
        turn = await chat.extend(turn, [{"role": "assistant", "content": "The zebra costs"}])
        await chat.abort(turn)
        for n in range(3):
            await chat.record(f"Something else, {n}.", "Noted.")
        await memory.settle()
        asked = await chat.context("What does P-0412 cost?")
        (loaded,) = (one for one in asked.receipt.verdicts if one.block == "loaded" and one.kept)
        assert "P-0412 costs 884 euros" in str(asked.messages)
        assert not [one for one in (await chat.context("Thanks!")).receipt.verdicts if one.block == "loaded"]
        await chat.checkpoint(recent_turns=1)
        told = str((await chat.context("The zebra?")).messages) + str(
            [one.summary for one in await chat.checkpoints()]
        )
        told += str(await memory.recall("zebra", user_id="u")) + str(await memory.pages(user_id="u"))
        assert "zebra costs" not in told
        assert loaded.id.startswith("page:")
