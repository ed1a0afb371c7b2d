"""The service's log cannot be filled by whoever sends nonsense."""

import logging

from pagefile.service.logs import Seldom


def passed(seldom, message, times):
    records = [
        logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, message, (), None) for _ in range(times)
    ]
    return [record.getMessage() for record in records if seldom.filter(record)]


def test_a_repeated_message_is_left_out_and_says_so():
    seldom = Seldom(3, now=lambda: 30.0)
    told = passed(seldom, "Invalid HTTP request received.", 1000)
    assert 3 == len(told)
    assert ["Invalid HTTP request received."] * 2 == told[:2]
    assert "left out" in told[2]


def test_other_messages_and_the_next_minute_are_not_left_out():
    seconds = [30.0]
    seldom = Seldom(3, now=lambda: seconds[0])
    passed(seldom, "a", 10)
    assert ["b"] == passed(seldom, "b", 1)
    seconds[0] += 60
    assert ["a"] == passed(seldom, "a", 1)
