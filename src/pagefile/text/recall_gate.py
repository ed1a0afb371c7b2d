"""Which past turns may enter a window unasked: those that answer the question, and nothing as mere filler."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Literal

from pagefile.text.sentences import HAN
from pagefile.text.times import periods
from pagefile.text.words import GENERAL_WORDS, STOP_WORDS, terms

#: "auto": what passes the thresholds; "always": the best few that have anything in common with the question;
#: "never": nothing.
Gate = Literal["auto", "always", "never"]

#: What a question is about: anything, the person asking ("where do I live?"), something said before, or nothing
#: but a time ("what did I do on Monday?").
Asking = Literal["anything", "self", "back", "time"]

# The thresholds are those of the bundled encoder, for memories of 2, 20 and about 35 turns: of everyday messages and questions
# about facts that need a turn, .64 have it pass, of quiet messages .99, .92 and .88 have none pass.
#: A turn passes if it means nearly the same as the question.
MIN_SIMILARITY = 0.38
#: A turn passes if it covers this share of the question's weight and is at least this similar.
MIN_COVERAGE = 0.5
COVERED_SIMILARITY = 0.2
#: A turn passes if it contains nearly everything the question names, unless its meaning is entirely
#: different.
WHOLE_COVERAGE = 0.9
NOT_APART = 0.1
#: A turn passes if it covers a little of the question and is more similar than chance.
SOME_COVERAGE = 0.1
NEARER = 0.35
#: The coverage required for a question about oneself if there are only words to go by.
SELF_COVERAGE = 0.25
#: The threshold for a question that refers back: someone asking for "that one from before" names little of
#: it.
BACK_SIMILARITY = 0.36
#: Below this, all that two texts have in common is that both are texts. Across languages similarities are lower.
SOME_SIMILARITY = 0.2
#: What a window considers, where a turn's worth decides, may have less in common: of few turns none may be as similar as that.
LITTLE_SIMILARITY = 0.05
SOME_FOREIGN_SIMILARITY = 0.1

_BACK = re.compile(
    r"之前|以前|刚才|刚刚|上次|上回|上一次|前面|先前|早些时候|那时|当时|那次|那个|那部|那位|那家|那件|你说过|我说过|说过的|提到过?的|提过|聊过|"
    r"讨论过|讨论的|还记得|记不记得|记得吗|回到|继续聊|接着说"
    r"|\b(?:earlier|previously|before|last time|the other day|a while ago|back then|just now|remember|recall|"
    r"(?:you|i|we)(?:'ve|\s+have)?\s+(?:said|told|mentioned|talked|discussed|suggested|recommended)|go(?:ing)? back to|"
    r"as (?:i|you|we) (?:said|mentioned)|that (?:one|film|movie|book|place|restaurant|person|guy|thing))\b",
    re.IGNORECASE,
)

#: The pattern below scans ahead from every possible beginning of a question, so long texts are truncated to
#: this.
_READ_CHARS = 500

#: Questions about oneself, but not requests for advice: "what should I wear", "how do I", 帮我…, 我该….
_SELF = re.compile(
    r"(?<![帮给教让请替诉])我(?!想|要|应该|该|可以|能|怎么|需要)[^。！]*?(?:什么|哪|谁|几|多少|多大|吗|是不是|有没有)"
    r"|(?:什么|哪|谁|几|多少)[^。！]*?(?:是|属于)我的"
    r"|\b(?:what|where|who|whom|when|which|whose|how (?:many|much|often|long|old))\b(?![^?]*\bshould\b)[^?]*"
    r"\b(?:(?:did|am|was|have|had|do) i|my|mine)\b"
    r"|^(?:did|am|was|have|had) i\b|\b(?:is|are|was|were) my\b",
    re.IGNORECASE,
)


#: What may be left of a question that asks for nothing but a time.
_GENERAL = re.compile(
    "|".join(sorted((w for w in STOP_WORDS | GENERAL_WORDS if not w.isascii()), key=len, reverse=True))
)
#: Whether words are a time does not depend on the day they are read.
_ANY_DAY = date(2001, 6, 15)


def names_only_a_time(question: str) -> bool:
    """Whether a question asks what was said or done at a time, and for nothing in particular."""
    if len(question) > _READ_CHARS:
        return False
    found, rest = periods(question, _ANY_DAY)
    words = terms(_GENERAL.sub(" ", rest), keep_stop_words_if_empty=False)
    return bool(found) and re.search(r"[\w?？]", rest) is not None and GENERAL_WORDS.issuperset(words)


def names_another_day(question: str) -> bool:
    """Whether a question is about a time that is not the present: what was said then may be what it asks for."""
    found, _ = periods(question[:_READ_CHARS], _ANY_DAY)
    return any(not one.first <= _ANY_DAY <= one.last for one in found)


_CHINESE = re.compile(f"[{HAN}]")
#: A message of fewer different terms may be the name of what is wanted.
_TELLING_TERMS, _TELLING_CHINESE = 5, 11

#: What only makes sense behind something that was just said: "and the other one?", 换一个, 那第三步呢.
_GOES_ON = re.compile(
    r"^\W*(?:and|so|but|or|ok(?:ay)?,? and|which (?:one|of)|the (?:other|first|second|third|last|latter|former)|again|say that|换|再|那|"
    r"第[一二三四]|前者|后者|它|后面那|哪个|哪种|哪一|能再)"
    r"|\b(?:did you (?:say|mean)|the (?:first|second|third|other|latter|former) (?:one|of)|of (?:them|those|the two)|spell (?:that|it)|"
    r"(?:make|put|say) (?:it|that)|does it take|one of those)\b",
    re.IGNORECASE,
)


def goes_on(message: str) -> bool:
    """Whether a message leans on what was said right before it."""
    return len(message) <= _READ_CHARS // 5 and _GOES_ON.search(message) is not None


#: What asks for something that was known before: "which host was it again?", 那个尺寸是多少来着.
_AGAIN = re.compile(
    r"\b(?:what|which|who|whose|where|when|how)(?:'s)?\b[^?!.]*\bagain\W*$|来着\W*$|\b(?:do you remember|remind me)\b|还记得|记不记得",
    re.IGNORECASE,
)


def asks_again(message: str) -> bool:
    """Whether a message asks for what it takes for granted to be known."""
    return len(message) <= _READ_CHARS and _AGAIN.search(message) is not None


#: Questions with or without their mark, and requests.
_REQUEST = re.compile(
    r"[?？]|(?:^|[.!,;:]\s+|\b(?:and|but|or|so|ask|asks|know|forgotten|forgot|remember)\s+)(?:what|who|whom|whose|where|when|which|why|how)\b"
    r"|^\W*(?:can|could|would|will|should|do|does|did|is|are|was|were|am|have|has|any)\b"
    r"|(?:^|[.!;:]\s+|\b(?:please|let(?:'s| me| us)|you)\s+)(?:tell|remind|show|write|give|draft|draw|plan|suggest|recommend|find|list|make|help|put|send|add|say|look|"
    r"check|explain|describe|summari[sz]e|compare|prepare|pick|choose|name|repeat|get|set|call|book|order|translate)\b"
    r"|什么|怎么|怎样|如何|哪|谁|多少|几[个点号天年月岁时]|[吗呢](?:\W|$)|来着|是不是|有没有|能不能|(?:帮|告诉|提醒|给|跟)我|推荐|建议|忘了|^[写列算查找画]",
    re.IGNORECASE,
)


def tells(message: str) -> bool:
    """Whether a message only says something, and asks for nothing: what is known about it helps less than what is known of a question."""
    if len(message) > _READ_CHARS or _REQUEST.search(message) is not None:
        return False
    # Chinese has about one term for each character; a message may have words of both.
    said = set(terms(message))
    chinese = sum(_CHINESE.search(term) is not None for term in said)
    return chinese / _TELLING_CHINESE + (len(said) - chinese) / _TELLING_TERMS >= 1


def points_back(question: str) -> bool:
    return _BACK.search(question) is not None


def asking(question: str) -> Asking:
    """What a question is about; for a long message, judged by its beginning and end."""
    if names_only_a_time(question):
        return "time"
    if points_back(question):
        return "back"
    long = len(question) > 2 * _READ_CHARS
    ends = (question[:_READ_CHARS], question[-_READ_CHARS:]) if long else (question,)
    return "self" if any(_SELF.search(end) for end in ends) else "anything"


def answers(parts: Mapping[str, float], *, foreign: bool = False, least: float = SOME_SIMILARITY) -> bool:
    """Whether a turn has anything in common with the question: a word, the time it names, or its meaning.

    A turn found only through its neighbours' words counts as well: it is part of what was said about them. A question
    in a `foreign` language has only its meaning.
    """
    # This is asked of hundreds of turns for each question.
    of = parts.get
    if of("words", 0.0) > 0 or of("neighbours", 0.0) > 0 or of("session", 0.0) > 0 or of("time", 0.0) > 0:
        return True
    return of("similarity", 0.0) >= (SOME_FOREIGN_SIMILARITY if foreign else least)


def passes(parts: Mapping[str, float], gate: Gate, how: Asking = "anything") -> bool:
    """Whether a turn that was found may enter a window."""
    coverage, similarity = parts.get("coverage", 0.0), parts.get("similarity", 0.0)
    if gate == "never":
        return False
    if parts.get("inside") and (how != "anything" or coverage >= SELF_COVERAGE or similarity >= NEARER):
        return True
    if gate == "always":
        return coverage > 0 or similarity >= SOME_SIMILARITY
    if how == "back" and (coverage >= SOME_COVERAGE or similarity >= BACK_SIMILARITY):
        return True
    if how == "self" and (coverage >= SOME_COVERAGE and similarity >= COVERED_SIMILARITY):
        return True
    if not similarity:
        # It has no vector yet, or there are none: the words decide.
        return coverage >= (SELF_COVERAGE if how == "self" else MIN_COVERAGE)
    covered = coverage >= MIN_COVERAGE and similarity >= COVERED_SIMILARITY
    whole = coverage >= WHOLE_COVERAGE and similarity >= NOT_APART
    near = coverage >= SOME_COVERAGE and similarity >= NEARER
    return covered or whole or near or similarity >= MIN_SIMILARITY
