"""The conversation that everybody is measured on in `pagefile bench peers`: two languages, long tool results, details to find again.

It goes on for as long as it is read. Its talk repeats after a while, so every text carries its own number: no system can
keep one text for many. All details are in the first turns, so that each size of conversation is asked the same.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from benchmarks.bulk import KINDS
from benchmarks.corpus import Author, Size
from pagefile.text.tokens import EstimateCounter

#: In how many of the first turns the details stand.
PLANTED_IN = 80
#: One turn in this many calls a tool, whose result has this many characters: enough for Pagefile to page it out.
RESULT_EVERY = 8
RESULT_CHARS = 12_000
#: After how many turns the talk repeats, and after how many results the results.
_DISTINCT_TURNS = 200
_DISTINCT_RESULTS = 16
#: A turn that plants a detail in the talk comes at this interval.
_SAID_EVERY = 3
_SIZE = Size(user=1, assistant=4)
_SEED = 11
#: The number of a text, which tells it from its repetitions.
SERIAL = re.compile(r" ?#\d{7}")


@dataclass(frozen=True, slots=True)
class Detail:
    """Something said once, in the talk or inside a tool's result, and the question that needs it later."""

    said: str
    question: str
    answer: str
    in_result: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A turn of the conversation, with what a tool returned in it, if one was called."""

    number: int
    user: str
    assistant: str
    result: str | None = None

    @property
    def text(self) -> str:
        """What was said by both."""
        return f"{self.user}\n{self.assistant}"

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything that must not get lost."""
        return (
            (self.user, self.assistant) if self.result is None else (self.user, self.assistant, self.result)
        )


#: A statement and a question about it, in other words where people would use others.
_SAID = (
    ("The door code at {who}'s place is {value}.", "Which code opens the door at {who}'s?"),
    ("{who} keeps the spare key in locker {value}.", "In which locker is {who}'s spare key?"),
    ("My customer number with {who} is {value}.", "What is my customer number with {who}?"),
    ("{who}'s flight home has the booking reference {value}.", "How is {who}'s flight booked?"),
    ("{who}的门禁密码是{value}。", "{who}家的门禁密码是多少？"),
    ("我在{who}那里的会员编号是{value}。", "我在{who}那里的会员编号是什么？"),
    ("{who}的快递单号是{value}，明天到。", "{who}的快递单号是多少？"),
)
_READ = (
    ("Note: the torque limit of {who}'s crane is {value}.", "What is the torque limit of {who}'s crane?"),
    ("备注：{who}的设备序列号是{value}。", "{who}的设备序列号是多少？"),
)
_WHO = (
    *("Greta", "Aunt Odile", "Professor Haraldsen", "Bartholomew", "Ximena", "Doctor Oyelaran", "Saskia"),
    *("Uncle Teodor", "Marguerite", "Captain Lindqvist", "Zuleika", "Ferdinand", "Ottilie", "Ambrose"),
)
_WHO_CHINESE = (
    *("欧阳明", "司马晴", "诸葛兰", "上官云", "慕容雪", "夏侯杰", "东方朔", "尉迟恭", "公孙瑶", "端木磊"),
    *("皇甫静", "令狐松", "宇文博", "长孙琳"),
)


@cache
def details() -> tuple[Detail, ...]:
    """All details, in the order in which they come up."""
    pick = random.Random(_SEED)
    planted: list[Detail] = []
    counts = {False: 0, True: 0}
    for number in range(PLANTED_IN):
        in_result = _calls_a_tool(number)
        if in_result or number % _SAID_EVERY == 0:
            patterns = _READ if in_result else _SAID
            said, question = patterns[counts[in_result] % len(patterns)]
            names = _WHO if said.isascii() else _WHO_CHINESE
            words = {
                "who": names[len(planted) // 2 % len(names)],
                "value": f"{pick.choice('BKRTVX')}{pick.randrange(10**5, 10**6)}",
            }
            counts[in_result] += 1
            planted.append(Detail(said.format(**words), question.format(**words), words["value"], in_result))
    return tuple(planted)


def lines() -> Iterator[Line]:
    """The conversation, for as long as anybody listens."""
    planted = iter(details())
    number = 0
    while True:
        user, assistant = _talk()[number % _DISTINCT_TURNS]
        result = _result(number // RESULT_EVERY % _DISTINCT_RESULTS) if _calls_a_tool(number) else None
        if number < PLANTED_IN and (result is not None or number % _SAID_EVERY == 0):
            detail = next(planted)
            if result is None:
                user = f"{detail.said} {user}"
            else:
                result = _with(result, detail.said)
        serial = f"#{number:07}"
        yield Line(
            number,
            f"{user} {serial}",
            f"{assistant} {serial}",
            None if result is None else f"{result} {serial}",
        )
        number += 1


def _calls_a_tool(number: int) -> bool:
    return number % RESULT_EVERY == RESULT_EVERY - 1


@cache
def _talk() -> list[tuple[str, str]]:
    author = Author(EstimateCounter())
    return [(author.side(_SIZE.user), author.side(_SIZE.assistant)) for _ in range(_DISTINCT_TURNS)]


@cache
def _result(number: int) -> str:
    kinds = list(KINDS.values())
    return kinds[number % len(kinds)](RESULT_CHARS, number)


def _with(result: str, said: str) -> str:
    """The result with a sentence at the end of a line in its middle, or wherever there is a space."""
    middle = len(result) // 2
    at = next((found for mark in ("\n", " ") if (found := result.find(mark, middle)) >= 0), middle)
    return f"{result[:at]} {said}{result[at:]}"
