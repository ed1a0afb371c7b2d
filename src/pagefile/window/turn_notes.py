"""What a window adds to earlier turns: that no answer came, when they were said, and shorter forms of what is too long."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from pagefile.content import Message, Text
from pagefile.records import Turn, within_time
from pagefile.text.passages import render_excerpt, selected
from pagefile.text.relevance import is_personal
from pagefile.text.small_talk import is_small_talk
from pagefile.text.tokens import MESSAGE_OVERHEAD
from pagefile.window.candidates import Form, ShownTurn
from pagefile.window.compile import CUT_TURNS
from pagefile.window.measure import Count, resting_tokens, side_tokens
from pagefile.window.placeholder import LOAD_TOOL, TURN_HANDLE
from pagefile.window.wording import ZH, Wording

#: Turns larger than the window divided by `LARGE` also get shorter forms, of these fractions (1/n) of the window.
LARGE, SHARES = 4, (2, 4, 8)
#: No turn is abridged to less than the room divided by this.
_LEAST = 16


def is_large(turn: Turn, window_tokens: int) -> bool:
    return resting_tokens(turn) > window_tokens // LARGE


def least_tokens(turn: Turn, window_tokens: int) -> int:
    """About what the shortest form of a turn takes, short of dropping its tool calls."""
    least = resting_tokens(turn)
    return min(least, window_tokens // SHARES[-1]) if least > window_tokens // LARGE else least


# -- order ---------------------------------------------------------------------------------------------------------------


def in_order(
    ended: Sequence[Turn], running: Sequence[Turn], last_seq: int, asked: str
) -> list[tuple[Turn, float]]:
    """The turns to show, each with its position: one without an answer appears where it was said.

    What the user then said again word for word, as people do when an answer fails, appears once.
    """
    if not running and all(turn.status == "done" for turn in ended):
        return [(turn, turn.seq or 0) for turn in ended]
    placed = [(turn, _place(turn, ended)) for turn in ended]
    placed += [(turn, _place(turn, ended) or last_seq + n) for n, turn in enumerate(running, 1)]
    placed.sort(key=lambda one: one[1])
    shown: list[tuple[Turn, float]] = []
    for turn, position in reversed(placed):
        said = turn.said.strip()
        if turn.status == "done" or said != asked:
            shown.append((turn, position))
        asked = said
    return shown[::-1]


def _place(turn: Turn, ended: Sequence[Turn]) -> float:
    """The `seq` of a turn, or just before that of the first answered one that was said later; 0 if it has neither."""
    own = turn.seq or 0
    if turn.status == "done":
        return own
    answered = (one for one in ended if one.status == "done" and one.at > turn.at)
    later = next((one.seq or 0 for one in answered), 0)
    return later - 0.5 if later and (later < own or not own) else own


# -- lines beside a turn ---------------------------------------------------------------------------------------------------


def with_lines(turn: Turn, before: str, after: str, count: Count) -> Turn:
    """The turn with a line before and after what the user said."""
    if not before and not after:
        return turn
    if turn.layout is not None:
        told = [(Message("user", (Text(line),)),) if line else () for line in (before, after)]
        return replace(turn, layout=(*told[0], *turn.layout, *told[1]))
    user, user_tokens, tokens = _lined(turn, before, after, count)
    return replace(turn, user=user, user_tokens=user_tokens, tokens=tokens)


def lined_form(turn: Turn, before: str, count: Count) -> Form:
    """The only form of a turn that has neither steps nor parts, with a line before what the user said."""
    user, _, tokens = _lined(turn, before, "", count)
    return Form(tokens, ShownTurn(turn.id, "full", user, turn.assistant))


def _lined(turn: Turn, before: str, after: str, count: Count) -> tuple[str, int, int]:
    """What the user said between two lines, its tokens, and those of the turn."""
    user = "\n".join(filter(None, (before, turn.user, after)))
    tokens = count(user)
    added = tokens - turn.user_tokens + (0 if turn.user else MESSAGE_OVERHEAD)
    return user, tokens, turn.tokens + added


def status_line(turn: Turn, wording: Wording) -> str:
    """That no answer came, or none yet."""
    if turn.status == "done":
        return ""
    return wording.unanswered if turn.status == "aborted" else wording.waiting


# -- time --------------------------------------------------------------------------------------------------------------------

#: After a pause of this length the next turn says when it was said.
LONG_PAUSE = timedelta(hours=6)
#: Questions about the present time.
_PRESENT = re.compile(
    r"今[天晚早]|现在|此刻|几号|几点|点[钟半]|小时|分钟|提醒|来得及|星期几|周几|礼拜几|日期|多久|多少天|哪[天月年]|什么时候|何时"
    r"|\b(?:today|tonight|right now|this (?:morning|afternoon|evening)|o'clock|hours?|minutes?|remind(?!\w* me (?:what|who|whose|which|where|why|how)\b)\w*|"
    r"when (?:did|was|were|is|do|does|will)|how long|how many (?:days|weeks|months|years)|(?:what|which) (?:day|date|time)|what(?:'s| is) the (?:day|date|time))\b",
    re.IGNORECASE,
)
#: Asked of the world these are about another time, and how long something takes: "When did the wall come down?", 那要煮多久？
_NOT_PRESENT = re.compile(
    r"\bwhen (?:did|was|were)\b|\bhow long (?:does|do|did|is|are|was|were|would|should)\b|哪年|什么时候(?=[^我你]*的[?？]?$)|(?<!还)(?<!还有)(?<!还要)(?<!再过)多久(?![前后了])",
    re.IGNORECASE,
)
#: Small talk may ask for the day.
_ASKS_DAY = re.compile(r"几|日期|\b(?:what|which)\b", re.IGNORECASE)
_READ_CHARS = 500
#: What names a time and is about none: code, words that a program accepts (today / yesterday / …), and how long something takes.
_NO_TIME = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]+`|\b\w+(?: ?/ ?\w+){2,}"
    r"|(?<!\bin )(?<!\bwithin )(?<!\bin the next )(?<!\bin the last )(?<!\bin the past )(?<!\bwithin the next )(?<!\bfor the next )(?<!\bof the last )"
    r"\b\d+(?:\.\d+)?(?:-| )?(?:hour|minute)s?\b(?! (?:ago|from now|left|later|earlier|until|till|to go)\b)"
    r"|[\d一二三四五六七八九十半两几]+ ?个?(?:小时|分钟)(?![后前内以之])",
    re.DOTALL | re.IGNORECASE,
)
#: A time as programs write it: channels stamp every message with one.
_STAMP = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")


def date_lines(shown: Sequence[tuple[Turn, float]], now: datetime, *, whole: bool) -> dict[str, str]:
    """When turns were said, by id, where a reader needs it: where the day changes, and after a long pause.

    Turns of today need none before the first pause. It follows from the log alone, not from how far a window reaches back, so the
    beginning of a prompt stays the same: a window begins with the first live turn (`whole`), or at the beginning of a block.
    """
    lines: dict[str, str] = {}
    zone, today = now.tzinfo, now.date()
    before, day = None, today
    midnight = midnight_after = _midnight(today, 0, zone)
    for turn, position in shown:
        at = within_time(turn.at)
        # Days begin as on the user's clock; hundreds of times are compared with two, instead of each being read by it.
        if other_day := not midnight <= at < midnight_after:
            day = at.astimezone(zone).date()
            midnight, midnight_after = _midnight(day, 0, zone), _midnight(day, 1, zone)
        begins = day != today and position % CUT_TURNS == 0
        if before is None:
            needed = begins or (whole and day != today)
        else:
            needed = begins or other_day or at - before >= LONG_PAUSE
        if needed:
            lines[turn.id] = f"[{at.astimezone(zone):%Y-%m-%d %H:%M}]"
        before = at
    return lines


def _midnight(day: date, days: int, zone: tzinfo | None) -> datetime:
    """When a day begins on a user's clock, or that many days later; the first or last time there is beyond those."""
    try:
        return datetime.combine(day + timedelta(days), time(), zone).astimezone(UTC)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if days else datetime.min.replace(tzinfo=UTC)


def asks_for_time(query: str) -> bool:
    """Whether a question is about the present time; for one that names another day, the day in the system text is enough."""
    text = _NO_TIME.sub(" ", _STAMP.sub("", query[:_READ_CHARS]))
    if is_small_talk(text) and not _ASKS_DAY.search(text):
        return False
    if not is_personal(text):
        text = _NOT_PRESENT.sub(" ", text)
    return _PRESENT.search(text) is not None


def now_line(now: datetime, wording: Wording) -> str:
    return f"{now:%Y-%m-%d %H:%M} {wording.days[now.weekday()]} {now.tzinfo}"


def today_line(now: datetime, wording: Wording) -> str:
    """The day without the time: it is part of the beginning of every prompt, which caches keep for minutes or hours."""
    return wording.today.format(day=f"{now:%Y-%m-%d}", weekday=wording.days[now.weekday()], zone=now.tzinfo)


# -- shorter forms -----------------------------------------------------------------------------------------------------------


def excerpts(turn: Turn, query: str, window_tokens: int, count: Count, wording: Wording) -> Iterator[Turn]:
    """Shorter and shorter: the passages of both sides that matter for the query, else their beginning and end, without tools."""
    least = resting_tokens(turn)
    for share in SHARES:
        if (budget := window_tokens // share) < least:
            yield _excerpt(turn, query, budget, count, wording)


def _excerpt(turn: Turn, query: str, budget: int, count: Count, wording: Wording) -> Turn:
    note = wording.abridged.format(call=load_call(turn.id))
    room = budget - count(note) - 2 * MESSAGE_OVERHEAD
    said, answered = abridged((turn.said, turn.answered), query, room, count, wording)
    user, assistant = f"{said}\n{note}".strip(), answered or None
    tokens = count(user), count(answered)
    total = side_tokens(user, tokens[0]) + side_tokens(assistant, tokens[1])
    sides = {"user": user, "assistant": assistant, "user_tokens": tokens[0], "assistant_tokens": tokens[1]}
    return replace(turn, **sides, tokens=total, steps=(), layout=None)


def allotted(costs: Sequence[int], room: int) -> list[int]:
    """The tokens for each of the newest turns that fit, oldest first; fewer than its costs for one that is to be abridged.

    A turn of more than a quarter of the room gets at most half of what newer ones leave, and the last sixteenth is left free.
    """
    large, least = room // LARGE, room // _LEAST
    given: list[int] = []
    for cost in reversed(costs):
        fits = cost <= room if cost <= large else cost <= room // 2
        if not fits and (cost <= large or room // 2 < least):
            break
        given.append(cost if fits else room // 2)
        room -= given[-1]
    return given[::-1]


def load_call(turn_id: str) -> str:
    """How a model loads the rest of a turn."""
    return f'{LOAD_TOOL}(uuid="{TURN_HANDLE}{turn_id}", query="…")'


def abridged(sides: Sequence[str], query: str, budget: int, count: Count, wording: Wording) -> list[str]:
    """The passages of the sides of a turn that matter for the query, else their beginning and end.

    The answer is what the next question is most often about: the last side gets what it needs, up to half, and so on.
    """
    zh = wording is ZH
    made: list[str] = []
    for before, text in reversed([*enumerate(sides)]):
        chosen = selected(text, query, budget=budget // 2 if before else budget, cost=count, zh=zh)
        made.append(render_excerpt(chosen, len(text), zh=zh))
        budget -= count(made[-1])
    return made[::-1]
