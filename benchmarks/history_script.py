"""What is said in `pagefile bench history`: small talk in two languages, and in between what must not be forgotten."""

from dataclasses import dataclass

from benchmarks.corpus import Author, Size
from pagefile.text.tokens import TokenCounter

#: About 160 tokens a turn, as the document's 8000 for 50 turns are.
SIZE = Size(user=2, assistant=5)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A turn of the script."""

    user: str
    assistant: str


@dataclass(frozen=True, slots=True)
class KeyFact:
    """Something said once, the question that needs it much later, and what the prompt must then hold."""

    said: Exchange
    question: str
    answer: str


FACTS = (
    KeyFact(Exchange("我叫王芳，对芒果过敏。", "好的，以后推荐都会避开它。"), "我对什么水果过敏？", "芒果"),
    KeyFact(
        Exchange("My sister Eleanor works as a glaciologist in Tromsø.", "What a fascinating job."),
        "What does my sister Eleanor do for work?",
        "glaciologist",
    ),
    KeyFact(
        Exchange("我最喜欢的导演是克里斯托弗·诺兰。", "记下了，他的作品很多。"),
        "刚才说的那个导演是谁？",
        "诺兰",
    ),
    KeyFact(
        Exchange("The gate code of the summer house is 4471.", "I will keep that in mind."),
        "What is the gate code of the summer house?",
        "4471",
    ),
    KeyFact(Exchange("我的猫叫煤球，今年三岁。", "真可爱。"), "我的猫叫什么名字？", "煤球"),
    KeyFact(
        Exchange("I proposed that we name the boat Halcyon.", "A beautiful choice."),
        "What did I want to name the boat?",
        "Halcyon",
    ),
    KeyFact(Exchange("婚礼定在2026年10月18日，在苏州举行。", "恭喜恭喜！"), "婚礼定在哪一天？", "10月18日"),
    KeyFact(
        Exchange("My favourite film of all time is Stalker by Tarkovsky.", "A slow and deep one."),
        "Which film is my favourite of all time?",
        "Stalker",
    ),
    KeyFact(Exchange("我的会员卡号是VIP-88231。", "已经记录。"), "我的会员卡号是多少？", "VIP-88231"),
    KeyFact(
        Exchange("My passport expires in March 2031.", "Then there is time."),
        "When does my passport expire?",
        "March 2031",
    ),
    KeyFact(
        Exchange("我不吃香菜，点菜的时候请注意。", "好的，点菜时会说明。"), "点菜的时候我不吃什么？", "香菜"
    ),
    KeyFact(
        Exchange("The doctor told me to take 75 micrograms of levothyroxine.", "Always before breakfast."),
        "How much levothyroxine do I take?",
        "75 micrograms",
    ),
)


def small_talk(counter: TokenCounter, turns: int) -> list[Exchange]:
    """Filler turns, the same ones each time."""
    author = Author(counter)
    return [Exchange(author.side(SIZE.user), author.side(SIZE.assistant)) for _ in range(turns)]


def with_facts(counter: TokenCounter, turns: int) -> list[Exchange]:
    """Small talk with all facts in it: the first in the first turn, the others one after another until shortly before the end."""
    script = small_talk(counter, turns)
    apart = max(1, (turns - 10) // len(FACTS))
    for number, fact in enumerate(FACTS):
        script[number * apart] = fact.said
    return script
