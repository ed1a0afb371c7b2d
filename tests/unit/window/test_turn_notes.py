"""When a window says the time, beside the day that every window says."""

import pytest

from pagefile.window.turn_notes import asks_for_time


@pytest.mark.parametrize(
    ("message", "asks"),
    [
        ("Every entry is rounded up to the next 15-minute unit before it is counted.", False),
        ("An invoice rounds each entry up to the next 15 minutes.", False),
        ("Accept the same words as the other commands (today / yesterday / this_week).", False),
        ('Print `{"week":"2026-03-02","seconds":2700}` for each week.', False),
        ("```\nsleep until 2026-03-02\n```\nWhat does this do?", False),
        ("把每条记录向上取整到15分钟。", False),
        ("I have to leave in 15 minutes, which bus do I take?", True),
        ("What did I say 20 minutes ago?", True),
        ("Who called in the last 2 hours?", True),
        ("15分钟后提醒我", True),
        ("Remind me to call Petra.", True),
        ("20分钟前我说了什么？", True),
        ("会议还有多久开始？", True),
        ("What happened today?", True),
    ],
)
def test_a_length_of_time_and_what_is_in_code_is_no_question_about_it(message, asks):
    """The time stands beside the question, and a later question moves it: caches lose a whole run for it."""
    assert asks == asks_for_time(message)


@pytest.mark.parametrize(
    ("message", "asks"),
    [
        ("How long until the meeting?", True),
        ("What is the time?", True),
        ("chat=local, 2026-08-04T11:33:25+00:00: How many hours are left?", True),
        ("chat=local, 2026-08-04T11:33:25+00:00: fix the parser", False),
        ("[2026-08-04T11:33:25.120Z] fix the parser", False),
        ("fix the parser", False),
    ],
)
def test_a_time_that_a_program_stamped_on_a_message_is_no_question_about_it(message, asks):
    assert asks == asks_for_time(message)


@pytest.mark.parametrize(
    "message",
    [
        "What did I do on 2026-08-04?",
        "What did I ask you yesterday?",
        "Our daughter Maja turns 7 on March 14.",
        "Write me a report of last week's sales.",
        "我上周说了什么？",
        "Remind me what our deploy command is.",
    ],
)
def test_a_question_that_names_another_day_needs_no_time(message):
    """Every window says the day; beside the question it would be there twice."""
    assert not asks_for_time(message)


@pytest.mark.parametrize(
    ("message", "asks"),
    [
        ("When did Queen Anne reign?", False),
        ("How long is the Shannon?", False),
        ("深圳是哪年设经济特区的？", False),
        ("那要煮多久？", False),
        ("今天天气不错", False),
        ("I'm exhausted tonight", False),
        ("今天星期几呀？", True),
        ("What day is it today?", True),
        ("When did I start at the bakery?", True),
        ("How long have we got?", True),
        ("还有多久开始？", True),
        ("我是哪年搬来的？", True),
        ("When is the next train?", True),
    ],
)
def test_a_question_about_the_past_of_the_world_needs_no_clock(message, asks):
    """The day stands in every window; the time beside such a question is tokens for nothing."""
    assert asks == asks_for_time(message)
