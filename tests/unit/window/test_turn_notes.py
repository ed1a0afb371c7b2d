"""When a window says the time, beside the day that every window says."""

from datetime import UTC, datetime

import pytest

from pagefile.window.turn_notes import asks_for_time

NOW = datetime(2026, 11, 19, 10, 0, tzinfo=UTC)


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
        ("20分钟前我说了什么？", True),
        ("会议还有多久开始？", True),
        ("What happened today?", True),
    ],
)
def test_a_length_of_time_and_what_is_in_code_is_no_question_about_it(message, asks):
    """The time stands beside the question, and a later question moves it: caches lose a whole run for it."""
    assert asks == asks_for_time(message, NOW)


@pytest.mark.parametrize(
    ("message", "asks"),
    [
        ("How long until the meeting?", True),
        ("What did I do on 2026-08-04?", True),
        ("chat=local, 2026-08-04T11:33:25+00:00: How many hours are left?", True),
        ("chat=local, 2026-08-04T11:33:25+00:00: fix the parser", False),
        ("[2026-08-04T11:33:25.120Z] fix the parser", False),
        ("fix the parser", False),
    ],
)
def test_a_time_that_a_program_stamped_on_a_message_is_no_question_about_it(message, asks):
    assert asks == asks_for_time(message, NOW)
