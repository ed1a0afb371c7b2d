"""Whether a model's summary tells what a conversation needs told: beside the one that our rules make of it.

The sentences that the rules choose must not be lost. A model that tells a good part of their numbers, dates, names and allergies in words of its own
wrote a summary, and what it left out is added as far as there is room. One that tells less, that mostly copies, or that writes in another language, is not
believed: the rules' summary takes its place.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pagefile.text.extract import anchors, says_anchors, summarize
from pagefile.text.sentences import Language, language, sentences
from pagefile.text.speakers import UNANSWERED, says_unanswered
from pagefile.text.words import terms

#: How much of what the rules keep a model's summary has to say; it puts dates and amounts in other forms, too, which are not recognised.
_SAYS = 0.25
#: How much of the words of a sentence without anything exact: a Chinese word is there in its parts and pairs, too.
_ALIKE = {"en": 0.5, "zh": 0.3}
_ALL = 1_000_000
_ASSISTANTS = ("assistant", "ai:", "助手")
#: With fewer words somebody greets, or agrees.
_FEW = 3
_VITAL = re.compile(r"(?i)\ballerg|intoleran|\b(?:must|never)\b|过敏|禁忌|不耐受|必须|不能吃|千万")
#: Lines about the summary: "Sure, here is a summary:", "**Summary:**", "以下是对话摘要：", and the offer at the end.
_AROUND = re.compile(
    r"""(?imx) ^[\s#*>_-]* (?:
        (?:sure|certainly|of\ course|okay|ok|absolutely)\b [^\n]{0,80}? [:!.]? \s*$
      | (?:(?:sure|certainly|of\ course)[,!.]?\ )? (?:here(?:\ is|['’]s)|below\ is|this\ is)\ [^\n:]{0,40}? \bsummary\b [^\n:]{0,40} :
      | (?:brief\ |updated\ )?(?:conversation\ )?summary (?:\ of\ [^\n:]{0,30})? [*_]* : [*_]*
      | (?:let\ me\ know|feel\ free|i\ hope|if\ you\ (?:need|have|want|would)) \b [^\n]* $
      | (?:好的[，,。！!]?\s*)? (?:以下|下面|这)是 [^\n：:]{0,20} (?:摘要|总结|概述|概括) [^\n：:]{0,10} [：:]
      | (?:对话)?(?:摘要|总结) [*_]* [：:] [*_]*
      | (?:希望|如果|如有|需要)[^\n]{0,30}(?:帮助|问题|告诉我|随时)[^\n]* $ )"""
)
#: Who said a line of the rules' summary.
_SPEAKER = re.compile(rf"(?P<who>(?:(?:[^\s:：]{{1,20}}|{re.escape(UNANSWERED['en'])}): )?)(?P<said>.*\S.*)")
#: What stands before a copied sentence: a bullet, a number, who said it, or "Summary so far:".
_BEFORE = re.compile(
    r"^[\s#*>•-]*(?:\d+[.)、]\s*)?(?:\*{0,2}\w+(?: \w+){0,2}(?:\*{0,2}:\*{0,2}\s|\*{0,2}：\*{0,2})\s*)?"
)
_FENCE = re.compile(r"^[ \t]*```\w*[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Asked:
    """What was summarised, and how long the summary may be."""

    said: Sequence[tuple[str, str]]
    previous: str | None
    language: Language
    limit: int
    measure: Callable[[str], int]


def completed(answer: str, asked: Asked) -> str | None:
    """A model's summary with what it left out; None if it says too little of what the rules keep, or copies: they choose sentences better."""
    by_rules = _extract(asked, asked.limit)
    # Without a limit: what is not in it was overruled, or says nothing.
    holds, given = _extract(asked, _ALL), _given(asked)
    plain = told(answer, asked)
    # Where nothing is left, the whole is judged by what it says.
    text = "".join(one for one in sentences(plain) if _still(one, holds, given)).strip() or plain
    kept = list(_told(by_rules))
    if not text or _is_copied(plain, given) or not _says_enough(text, kept):
        return None
    unmarked = set[str]() if says_unanswered(text) else {f"{label}: " for label in UNANSWERED.values()}
    missing = [(who, one) for who, one in kept if who in unmarked or not _says(text, one)]
    added = _fitting(missing, asked.limit - asked.measure(text) - 1, asked.measure)
    return "\n".join(part for part in (text, _lines(added)) if part)


def _says_enough(text: str, kept: Sequence[tuple[str, str]]) -> bool:
    words = text.casefold()
    exact = [re.findall(r"\w+", anchor.casefold()) for _, one in kept for anchor in anchors(one)]
    return sum(all(part in words for part in parts) for parts in exact) >= _SAYS * len(exact)


def _fitting(
    missing: Sequence[tuple[str, str]], room: int, measure: Callable[[str], int]
) -> list[tuple[str, str]]:
    """As many of them as there is room for, what is vital first, in their own order."""
    by_weight = sorted(range(len(missing)), key=lambda at: -_weight(missing[at][1]))
    chosen: set[int] = set()
    for at in by_weight:
        if measure(_lines([missing[n] for n in sorted({*chosen, at})])) <= room:
            chosen.add(at)
    return [missing[at] for at in sorted(chosen)]


def _lines(told: Sequence[tuple[str, str]]) -> str:
    """A line for each speaker."""
    lines: dict[str, str] = {}
    for who, one in told:
        lines[who] = lines.get(who, who) + one
    return "\n".join(line.strip() for line in lines.values())


def _is_copied(text: str, given: str) -> bool:
    """Whether at least half of it is in the conversation word for word."""
    every = [_bare(one) for one in sentences(text)]
    return 2 * sum(len(one) for one in every if one in given) >= sum(map(len, every))


def _bare(sentence: str) -> str:
    return _BEFORE.sub("", sentence).strip().rstrip("。.!！")


def _given(asked: Asked) -> str:
    return "\n".join([asked.previous or "", *(text for _, text in asked.said)])


def _extract(asked: Asked, limit: int) -> str:
    return summarize(
        asked.said, limit=limit, measure=asked.measure, previous=asked.previous, language=asked.language
    )


def _still(sentence: str, holds: str, given: str) -> bool:
    """Whether nothing exact in a sentence, and no sentence that it copies, was said and no longer holds."""
    if any(exact in given and exact not in holds for exact in anchors(sentence)):
        return False
    return _bare(sentence) in holds or _bare(sentence) not in given


def _told(by_rules: str) -> Iterator[tuple[str, str]]:
    """The sentences of the rules' summary that tell something, and who said each."""
    for line in filter(None, map(_SPEAKER.match, by_rules.splitlines())):
        of_user = not line["who"].casefold().startswith(_ASSISTANTS)
        for one in sentences(line["said"]):
            if anchors(one) or (of_user and (_VITAL.search(one) or len(set(terms(one))) >= _FEW)):
                yield line["who"], one


def _weight(sentence: str) -> int:
    """What is exact in a sentence counts, and what is vital; the rest may be said in a few words."""
    return 3 * len(anchors(sentence)) + (3 if _VITAL.search(sentence) else 0)


def told(answer: str, asked: Asked) -> str:
    """The sentences of an answer that tell of the conversation: in its language, and without those whose numbers nobody said."""
    plain = _FENCE.sub("", _AROUND.sub("", answer)).strip()
    given = _given(asked)
    if language(plain) != asked.language:
        return ""
    return "".join(one for one in sentences(plain) if not _invents(one, given)).strip() or plain


def _invents(sentence: str, given: str) -> bool:
    numbers = re.findall(r"\d+(?:[.,:/-]\d+)*", re.sub(r"^\s*\d+[.)、]\s", "", sentence))
    return any(number not in given for number in numbers)


def _says(text: str, sentence: str) -> bool:
    """Whether a text says what a sentence says: everything exact in it, else half of its words."""
    if anchors(sentence):
        return says_anchors(text, sentence)
    words = set(terms(sentence))
    return not words or len(words & set(terms(text))) >= _ALIKE[language(sentence)] * len(words)
