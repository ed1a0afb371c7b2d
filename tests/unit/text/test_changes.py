"""A later statement that shares no word with an earlier one may end it all the same."""

import pytest

from pagefile.text.changes import change_terms, says_otherwise
from pagefile.text.words import terms

OTHERWISE = [
    ("I live in Porto with my wife.", "We have relocated to Ghent."),
    ("My flat is great, I live in Lyon near the river.", "I moved to Turin last week."),
    ("我住在苏州工业园区。", "上个月我们搬到了成都。"),
    ("I work as a baker in Leeds.", "I start my new job at the library on Monday."),
    ("我在银行上班。", "我跳槽了，下周去一家创业公司。"),
]
AS_BEFORE = [
    ("I live in Porto with my wife.", "My sister moved to Ghent."),
    ("I live in Porto with my wife.", "We moved the meeting to Tuesday."),
    ("I'm allergic to cashews.", "I moved to Ghent."),
    ("I work as a baker in Leeds.", "We have relocated to Ghent."),
    ("我住在苏州工业园区。", "我妹妹搬到了成都。"),
    ("我住在苏州工业园区。", "今天天气不错。"),
]


@pytest.mark.parametrize(("old", "new"), OTHERWISE)
def test_what_ends_a_statement_is_known_by_its_topic_and_its_change(old, new):
    assert says_otherwise(old, new)
    # Only turns with one of these terms are read at all.
    assert not set(change_terms()).isdisjoint(terms(new))


@pytest.mark.parametrize(("old", "new"), AS_BEFORE)
def test_what_is_about_something_or_somebody_else_ends_nothing(old, new):
    assert not says_otherwise(old, new)
