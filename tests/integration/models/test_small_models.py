"""Facts and summaries by a model that answers badly: never less than our rules find without it."""

import json
from datetime import UTC, datetime

import pytest

from pagefile import Memory, ModelOutputError
from pagefile.models import ChatSummarizer
from pagefile.models.extractors import ChatExtractor, RuleExtractor
from pagefile.ports import ChatModel, Said, SummaryRequest
from pagefile.text.tokens import open_counter

AT = datetime(2026, 5, 4, tzinfo=UTC)
SAID = [
    Said("t1", "I'm allergic to penicillin.", AT, None),
    Said("t2", "How much is rent in Bern?", AT, None),
    Said("t3", "We keep our bikes in the cellar because the hall is narrow.", AT, None),
]


class Scripted(ChatModel):
    def __init__(self, answer):
        self.answer = answer

    async def complete(self, messages, *, max_tokens):
        return self.answer


def fact(turn, quote, text, **more):
    return {"turn": turn, "quote": quote, "text": text, **more}


BIKES = fact(3, "we keep our bikes in the cellar", "The user keeps the bikes in the cellar.")
RENT = fact(2, "rent in Bern", "The user is asking about the cost of rent.")


async def extracted(answer):
    return [(one.turn_id, one.quote, one.text) for one in await ChatExtractor(Scripted(answer)).extract(SAID)]


async def by_rules():
    return [(one.turn_id, one.quote, one.text) for one in await RuleExtractor().extract(SAID)]


BY_MODEL = ("t3", "We keep our bikes in the cellar", "The user keeps the bikes in the cellar.")


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps({"facts": [RENT, BIKES]}),
        "Sure! Here are the facts:\n```json\n" + json.dumps({"facts": [BIKES]}, indent=2) + "\n```\nAnything else?",
        json.dumps([BIKES]),
        json.dumps({"facts": [{**BIKES, "reason": "it says so"}, BIKES, {"turn": 9, "quote": "x", "text": "y"}]}),
        json.dumps({"facts": [BIKES, RENT]})[:-30],
        "\n".join(json.dumps(one) for one in (RENT, BIKES)),
    ],
    ids=["questions", "chatter", "a bare list", "one of another form", "cut short", "an object a line"],
)  # fmt: skip
async def test_what_holds_is_kept_of_a_bad_answer(answer):
    """And what the rules find is always there, first."""
    assert [*await by_rules(), BY_MODEL] == await extracted(answer)


@pytest.mark.parametrize(
    "answer",
    [
        '{"facts": []}',
        json.dumps({"facts": [RENT]}),
        json.dumps({"facts": [fact(1, "allergic to penicillin", "L'utilisateur a une allergie.")]}),
        json.dumps({"facts": [fact(1, "I'm allergic to penicillin.", "The user is allergic to penicillin")]}),
    ],
    ids=["nothing", "a question", "another language", "what a rule says"],
)  # fmt: skip
async def test_a_model_that_finds_nothing_costs_nothing(answer):
    assert await by_rules() == await extracted(answer)
    assert 1 == len(await by_rules())


@pytest.mark.parametrize(
    "answer", ["I'm sorry, but I can't help with that.", "{'facts': [", '{"facts": "none"}', '{"facts": [1, 2]}', "[]"]
)  # fmt: skip
async def test_an_answer_of_another_form_is_said_to_be_one(answer):
    """Whoever asked counts it, and reads by rules."""
    with pytest.raises(ModelOutputError, match="form"):
        await extracted(answer)


# -- summaries ---------------------------------------------------------------------------------------------------------

TALK = {
    "en": [
        ("user", "I'm allergic to penicillin and my flight to Oslo is on 4 May at 7:15."),
        ("assistant", "Noted: the flight to Oslo on 4 May at 7:15."),
        ("user", "The hotel costs 120 euros a night. Please keep answers short."),
        ("assistant", "All right."),
    ],
    "zh": [
        ("user", "我对青霉素过敏，5月4日7:15飞奥斯陆。"),
        ("assistant", "好的，记下了。"),
        ("user", "酒店每晚120欧元。以后回答请简短。"),
        ("assistant", "明白。"),
    ],
}
GOOD = {
    "en": "The user is allergic to penicillin and flies to Oslo on 4 May at 7:15. The hotel costs 120 euros a night; answers should be short.",
    "zh": "用户对青霉素过敏，5月4日7:15飞往奥斯陆，酒店每晚120欧元，希望回答简短。",
}


async def summarised(answer, tongue, limit=300):
    return await ChatSummarizer(Scripted(answer)).summarize(
        SummaryRequest(None, tuple(TALK[tongue]), limit, tongue)
    )


@pytest.mark.parametrize("tongue", ["en", "zh"])
async def test_a_good_summary_is_the_models(tongue):
    """What the rules keep is said in it: nothing is added."""
    summary = await summarised(GOOD[tongue], tongue)
    assert summary.startswith(GOOD[tongue])
    assert "120" not in summary.removeprefix(GOOD[tongue])


@pytest.mark.parametrize(
    ("tongue", "around"),
    [
        ("en", "Sure, here is a brief summary of the conversation:\n\n{}\n\nLet me know if you need anything else!"),
        ("en", "```\n**Summary:** {}\n```"),
        ("en", "{} The flight was booked on 17 June for 988 dollars."),
        ("zh", "好的，以下是对话摘要：\n{}\n\n如果还有其他问题，请随时告诉我！"),
        ("zh", "**摘要：**{}航班号是SK4711。"),
    ],
)  # fmt: skip
async def test_chatter_and_made_up_numbers_are_left_out(tongue, around):
    assert await summarised(GOOD[tongue], tongue) == await summarised(around.format(GOOD[tongue]), tongue)


async def test_what_a_summary_left_out_is_added():
    """In the words of the conversation, within the limit."""
    short = "The user is allergic to penicillin and flies to Oslo on 4 May at 7:15. The hotel is booked for two, and answers should be short."
    for limit in (300, 60):
        summary = await summarised(short, "en", limit)
        assert "penicillin" in summary
        assert "120 euros" in summary
        assert open_counter().count(summary) <= limit


TRIP = [
    (
        "user",
        "I'm allergic to penicillin. My flight to Oslo is on 4 May at 7:15 and the return is on 9 May at 18:40.",
    ),
    (
        "user",
        "The hotel Sonne costs 120 euros a night, the car 55 euros a day, and the museum opens at 10:00.",
    ),
    ("user", "Jonas lands on 5 May. We meet Petra on 6 May at noon in Bergen."),
]


@pytest.mark.parametrize("limit", [400, 110])
async def test_a_summary_in_a_models_own_words_stays(limit):
    """Other forms of dates and amounts are no reason to leave its sentences out; what is vital is added first where room is short."""
    own = (
        "They fly to Oslo on May 4th (7:15) and come back on the 9th in the evening. Petra joins for lunch in Bergen on May 6th, a day after Jonas "
        "arrives. Budget: hotel Sonne at €120 a night."
    )
    request = SummaryRequest(None, tuple(TRIP), limit, "en")
    summary = await ChatSummarizer(Scripted(own)).summarize(request)
    assert summary.startswith(own)
    assert "allergic to penicillin" in summary
    assert open_counter().count(summary) <= limit


async def test_a_correction_that_a_model_missed_is_added():
    said = [*TRIP, ("user", "The flight to Oslo is on 4 May at 8:20 now, not at 7:15.")]
    own = "They fly to Oslo at 7:15. Petra joins in Bergen on 6 May, Jonas lands on 5 May. The hotel Sonne costs 120 euros."
    summary = await ChatSummarizer(Scripted(own)).summarize(SummaryRequest(None, tuple(said), 400, "en"))
    assert "8:20 now, not at 7:15" in summary
    assert "Petra joins in Bergen" in summary


@pytest.mark.parametrize(
    ("tongue", "answer"),
    [
        ("en", "The user and the assistant talked about travel."),
        ("en", GOOD["zh"]),
        ("zh", GOOD["en"]),
        ("en", "The flight is on 5 June at 9:40."),
        ("zh", "用户询问了旅行的建议，助手提供了帮助。"),
        ("en", "def summarize(conversation):\n    return conversation[:100]"),
        ("en", "{}"),
    ],
)
async def test_a_summary_that_says_too_little_is_none(tongue, answer):
    """Whoever asked takes the one that the rules make."""
    with pytest.raises(ModelOutputError, match=r"leaves out|nothing in common"):
        await summarised(answer, tongue)


@pytest.mark.parametrize(
    "form", ["{}", "User: {}", "用户：{}", "Summary so far: {}", "- {}", "1. {}", "* **User:** {}"]
)
async def test_a_copy_is_none(form):
    """Choosing sentences is what the rules do better: what was overruled is copied as well."""
    said = [*TRIP, ("user", "The flight to Oslo is on 4 May at 8:20 now, not at 7:15.")]
    copy = "\n".join(form.format(text) for _, text in said[:-1])
    with pytest.raises(ModelOutputError, match="copies"):
        await ChatSummarizer(Scripted(copy)).summarize(SummaryRequest(None, tuple(said), 400, "en"))


class Copying(ChatModel):
    """Repeats what it is shown, earlier summaries of its own too."""

    async def complete(self, messages, *, max_tokens):
        return messages[-1]["content"]


@pytest.mark.parametrize(
    "weak", [Scripted("The user and the assistant talked about travel and a hotel."), Copying()]
)
async def test_a_checkpoint_by_a_weak_model_is_the_one_without_a_model(weak):
    made = []
    for model in (None, weak):
        async with Memory.open("memory://", model=model, embedder="none") as memory:
            chat = memory.conversation("c")
            for at in (0, 2):
                await chat.record(TALK["en"][at][1], TALK["en"][at + 1][1])
            made.append((await chat.checkpoint(recent_turns=0)).summary)
    assert made[0] == made[1]
    assert "penicillin" in made[0]


@pytest.mark.parametrize(
    ("own", "added"),
    [
        (
            "The user is allergic to penicillin and has two cats.",
            ["user (unanswered): I'm allergic to penicillin."],
        ),
        ("The user is allergic to penicillin, which was never answered, and has two cats.", []),
    ],
)
async def test_that_no_answer_came_is_added_where_a_model_leaves_it_out(own, added):
    """The words alone would read as if somebody had dealt with them."""
    said = (
        ("user (unanswered)", "I'm allergic to penicillin."),
        ("user", "I have two cats."),
        ("assistant", "Nice."),
    )
    summary = await ChatSummarizer(Scripted(own)).summarize(SummaryRequest(None, said, 400, "en"))
    assert [own, *added] == summary.splitlines()
