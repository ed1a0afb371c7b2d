"""Conversations to measure with: made up from a seed, in two languages, with exact token counts."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from pagefile.records import Scope, Turn
from pagefile.stores import open_store
from pagefile.text.tokens import TokenCounter
from pagefile.window.measure import turn_tokens

_BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)

_ENGLISH = (
    "The nightly import for {place} stopped at row {number}, and nobody noticed before {day}.",
    "Could you look at ticket {code} again and tell {name} what is still missing?",
    "I moved the meeting with {name} to {day} at {hour}:30, because the room in {place} was taken.",
    "According to the contract, the price stays at {number} euros until the end of the year.",
    "My blood pressure was {hour}5 over 90 this morning, and I am allergic to {thing}.",
    "We tried the {thing} first, but it did not fit into the budget of {number} that {name} approved.",
    "The function returns an empty list when the cache is cold; version {code} fixes this.",
    "{name} prefers to write in the evening and asked not to be called before {hour} o'clock.",
    "Please remember that the order {code} goes to the warehouse in {place}, not to the shop.",
    "That explains why the second test failed on {day} while the first one passed.",
    "If the {thing} arrives late, we can still use the old one for about {hour} days.",
    "Here is a short plan: read the report, ask {name} about {place}, then decide about the {thing}.",
)
_CHINESE = (
    "{name}说下周{hour}号要去{place}出差，记得提前订酒店。",
    "订单{code}的金额是{number}元，客户希望在{day}之前收到{thing}。",
    "我对{thing}过敏，而且有高血压，请在安排饮食时注意。",
    "上次讨论的方案预算是{number}，{name}认为还可以再压缩一点。",
    "这个接口在缓存为空的时候会返回空列表，版本{code}已经修复。",
)
_SLOTS = {
    "name": ("Anna", "Piotr", "Mei Ling", "Yusuf", "Carla", "张伟", "李娜", "Thomas", "Ravi", "Ingrid"),
    "place": ("Rotterdam", "Shenzhen", "Lyon", "Porto Alegre", "杭州", "Kraków", "Nairobi", "Osaka"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "thing": (
        "penicillin",
        "sensor",
        "keyboard",
        "bicycle",
        "花生",
        "printer",
        "compressor",
        "蓝牙耳机",
        "contract",
    ),
}
#: One sentence in this many is Chinese.
_CHINESE_SHARE = 4


@dataclass(frozen=True, slots=True)
class Size:
    """How long a turn is, in sentences of each side."""

    user: int
    assistant: int


#: About 200 tokens: a hundred of them are more than a window holds.
LONG = Size(user=3, assistant=7)
#: About 40 tokens, chat overhead included.
SHORT = Size(user=1, assistant=1)


class Author:
    """Writes turns; the same seed writes the same ones."""

    def __init__(self, counter: TokenCounter, seed: int = 7) -> None:
        self._counter = counter
        self._random = random.Random(seed)

    def turns(self, scope: Scope, count: int, size: Size, *, distinct: int | None = None) -> list[Turn]:
        """Turns as a log holds them; only `distinct` of them differ in their words, so that many cost little."""
        kinds = [self._words(size) for _ in range(min(count, distinct or count))]
        return [self._turn(scope, number, *kinds[number % len(kinds)]) for number in range(count)]

    def side(self, sentences: int) -> str:
        """What one side says."""
        return " ".join(self._sentence() for _ in range(sentences))

    def _words(self, size: Size) -> tuple[str, int, str, int]:
        user, assistant = self.side(size.user), self.side(size.assistant)
        return user, self._counter.count(user), assistant, self._counter.count(assistant)

    def _sentence(self) -> str:
        pick = self._random
        pattern = pick.choice(_CHINESE if pick.randrange(_CHINESE_SHARE) == 0 else _ENGLISH)
        slots = {slot: pick.choice(words) for slot, words in _SLOTS.items()}
        code = f"{pick.choice('ABKTX')}-{pick.randrange(10_000)}"
        return pattern.format(
            **slots, code=code, number=pick.randrange(100, 90_000), hour=pick.randrange(7, 20)
        )

    def _turn(
        self, scope: Scope, number: int, user: str, user_tokens: int, assistant: str, assistant_tokens: int
    ) -> Turn:
        moment = _BEGAN + timedelta(minutes=number)
        return Turn(
            id=f"turn-{number}",
            scope=scope,
            seq=number + 1,
            status="done",
            user=user,
            assistant=assistant,
            steps=(),
            at=moment,
            created=moment,
            user_tokens=user_tokens,
            assistant_tokens=assistant_tokens,
            tokens=turn_tokens(user, user_tokens, assistant, assistant_tokens, ()),
            counter=self._counter.name,
        )


async def fill(database: Path, turns: Sequence[Turn]) -> None:
    """Write turns of one conversation into a database, as an import does."""
    store = await open_store(url_of(database))
    try:
        await store.log.restore(turns)
    finally:
        await store.close()


def url_of(database: Path) -> str:
    """The URL of a database file."""
    return f"sqlite:///{quote(database.as_posix())}"
