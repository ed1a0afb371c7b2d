"""Whether a model's summary tells what a conversation needs told: beside the one that our rules make of it.

The sentences that the rules choose must not be lost. A model that says most of their numbers, dates, names and allergies in its own words wrote
a summary, and what it left out is added. One that does not, that leaves no room for it, or that writes in another language, is not believed: the
rules' summary takes its place.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pagefile.text.extract import anchors, says_anchors, summarize
from pagefile.text.sentences import Language, language, sentences
from pagefile.text.words import terms

#: How much of what the rules keep a model's summary has to say, and how much of the words of a sentence without anything exact:
#: a Chinese word is there in its parts and pairs, too.
_SAYS = 0.6
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
_SPEAKER = re.compile(r"(?P<who>(?:[^\s:：]{1,20}: )?)(?P<said>.*\S.*)")
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
    """A model's summary with what it left out; None if it says too little of what the rules keep."""
    by_rules = _extract(asked, asked.limit)
    # Without a limit: what is not in it was overruled, or says nothing.
    holds = _extract(asked, _ALL)
    plain = told(answer, asked)
    # Where nothing is left, the whole is judged by what it says.
    text = "".join(one for one in sentences(plain) if _still(one, holds, asked)).strip() or plain
    kept = list(_told(by_rules))
    missing = [(who, one) for who, one in kept if not _says(text, one)]
    lost = sum(_weight(one) for _, one in missing)
    if not text or lost > (1 - _SAYS) * sum(_weight(one) for _, one in kept):
        return None
    lines: dict[str, str] = {}
    for who, one in missing:
        lines[who] = lines.get(who, who) + one
    added = "\n".join(line.strip() for line in lines.values())
    # Nothing that the rules keep makes way for the model's words.
    fits = asked.measure(text) + asked.measure(added) + 1 <= asked.limit
    return "\n".join(part for part in (text, added) if part) if fits else None


def _extract(asked: Asked, limit: int) -> str:
    return summarize(
        asked.said, limit=limit, measure=asked.measure, previous=asked.previous, language=asked.language
    )


def _still(sentence: str, holds: str, asked: Asked) -> bool:
    """Whether what a sentence says exactly holds, and it copies nothing that does not."""
    if any(exact not in holds for exact in anchors(sentence)):
        return False
    copied = sentence.strip().rstrip("。.!！")
    return copied in holds or not any(copied in text for _, text in asked.said)


def _told(by_rules: str) -> Iterator[tuple[str, str]]:
    """The sentences of the rules' summary that tell something, and who said each."""
    for line in filter(None, map(_SPEAKER.match, by_rules.splitlines())):
        of_user = not line["who"].casefold().startswith(_ASSISTANTS)
        for one in sentences(line["said"]):
            if anchors(one) or (of_user and len(set(terms(one))) >= _FEW):
                yield line["who"], one


def _weight(sentence: str) -> int:
    """What is exact in a sentence counts, and what is vital; the rest may be said in a few words."""
    return 3 * len(anchors(sentence)) + (3 if _VITAL.search(sentence) else 0)


def told(answer: str, asked: Asked) -> str:
    """The sentences of an answer that tell of the conversation: in its language, and without those whose numbers nobody said."""
    plain = _FENCE.sub("", _AROUND.sub("", answer)).strip()
    given = "\n".join([asked.previous or "", *(text for _, text in asked.said)])
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
