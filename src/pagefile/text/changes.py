"""What was said later about the same in other words: who moved does not live there any more, and shares no word with having lived there."""

import re
from functools import cache

from pagefile.text.corrections import CERTAIN, Statement, cue_pattern, successions, topic_pattern
from pagefile.text.tables import table
from pagefile.text.words import terms

_TABLE = table("pagefile.text", "corrections")
#: Where somebody has one at a time: a later statement about it that speaks of a change is shown with the earlier one.
_ONE_AT_A_TIME = ("home", "work")
#: Words that tell of a change, whatever it is: only turns that have one of them are read.
_TELLING = (
    "move moved moving relocate relocated switch switched change changed job joined hired started starting quit resign resigned left "
    "stop stopped instead anymore longer again new now since sold bought divorced married retired "
    "搬 搬家 搬到 搬去 搬进 换 换了 改 改成 改喝 改吃 戒 戒了 辞职 离职 跳槽 入职 退休 不再 现在 重新 结婚 离婚 卖了 定居"
)

#: Beginnings of something new, besides the cues of corrections.
_BEGINS = re.compile(
    r"\b(?:relocat\w+|settled|join(?:ed|ing)|hired|start\w*)\b|搬[到去进]|定居|跳槽|入职", re.IGNORECASE
)
#: Somebody else, of whom something new says nothing about oneself.
_OTHERS = re.compile(
    r"\b(?:my|our|his|her|their) (?!wife and I|husband and I|partner and I|family and I)"
    r"(?:\w+ )?(?:wife|husband|partner|\w+friend|son|daughter|mother|father|mom|mum|dad|parents|brother|sister|friend|aunt|uncle|cousin|boss|"
    r"colleague|neighbou?r)s?\b"
    rf"|(?<!和)我(?:的|们)?(?:{_TABLE['cues']['kin']})",
    re.IGNORECASE,
)


@cache
def change_terms() -> tuple[str, ...]:
    """The terms of turns that may say that something changed."""
    return tuple(dict.fromkeys(terms(_TELLING)))


def says_otherwise(old: str, new: str, answer: str = "") -> bool:
    """Whether a later statement (and what was answered to it) probably says that an earlier one no longer holds."""
    shared = [
        name
        for name in _TABLE["topics"]
        if topic_pattern(name).search(old) and topic_pattern(name).search(new)
    ]
    others = {match.group().lower() for match in _OTHERS.finditer(new)}
    if not shared or not _changes(new) or not all(one in old.lower() for one in others):
        return False
    if not set(shared).isdisjoint(_ONE_AT_A_TIME):
        return True
    return any(
        one.old == 0 and one.probability >= CERTAIN
        for one in successions([Statement(old, 0), Statement(new, 1, answer)])
    )


def _changes(text: str) -> bool:
    cues = (_BEGINS, *(cue_pattern(name) for name in ("change", "end", "negation")))
    return any(cue.search(text) for cue in cues)
