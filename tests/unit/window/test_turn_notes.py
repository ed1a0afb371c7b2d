"""When a window says the time, beside the day that every window says."""

from datetime import UTC, datetime

import pytest

from pagefile.window.turn_notes import asks_for_time

NOW = datetime(2026, 11, 19, 10, 0, tzinfo=UTC)


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
