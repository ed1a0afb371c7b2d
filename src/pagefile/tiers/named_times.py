"""What a window says where a question asks for a time at which nothing was recorded: silence would be filled with other days."""

from collections.abc import Iterable
from datetime import datetime

from pagefile.records import Turn
from pagefile.text.recall_gate import names_only_a_time
from pagefile.text.times import Period, periods
from pagefile.tiers.base import WindowRequest
from pagefile.window.candidates import Candidate, Form
from pagefile.window.turn_notes import within_time
from pagefile.window.wording import Wording

_NAME = "nothing recorded"


def nothing_then(request: WindowRequest, asked: datetime, found: Iterable[Turn]) -> list[Candidate]:
    """A line that says so, if the question asks for nothing but a past time, and neither the window nor what was found is of it.

    In a project other projects' turns are not looked for.
    """
    query = request.searched
    if request.project is not None or not names_only_a_time(query):
        return []
    named = periods(query, asked.date())[0]
    past = [one for one in named if one.last <= asked.date()]
    turns = [*request.view.turns, *found]
    days = {within_time(turn.at).astimezone(asked.tzinfo).date() for turn in turns}
    if (
        not past
        or len(past) < len(named)
        or any(one.first <= day <= one.last for one in past for day in days)
    ):
        return []
    said = request.wording.comma.join(_said(one, request.wording) for one in past)
    text = request.wording.nothing_then.format(period=said)
    return [Candidate(_NAME, "episodes", (Form(request.count(f"{text}\n"), text=text),), value=1.0)]


def _said(period: Period, wording: Wording) -> str:
    if period.first == period.last:
        return wording.on_day.format(day=period.first)
    return wording.in_period.format(first=period.first, last=period.last)
