"""Whether what a model reads out of a message was stated there: a small model makes facts of questions, of chatter and of other people's lives.

A statement has to be in the user's words, say what they say, and speak of the same person. What is dropped wrongly costs little:
our own rules read the same messages, and what they find is always kept.
"""

import re

from pagefile.text.fact_rules import secret_in, stating_sentences
from pagefile.text.sentences import language
from pagefile.text.tables import filled, table
from pagefile.text.words import terms

_PARTS = table("pagefile.text", "facts")["parts"]
#: What tells of the conversation and not of the user.
_CHATTER = re.compile(
    r"""(?ix) \A \W* (?:
        (?:the\ )?user(?:'s\ (?:question|request|message)\b | \ (?:(?:is|was|has\ been|just)\ )?(?:currently\ )?
        (?: (?:ask|inquir|wonder|request|thank|greet)(?:s|ed|ing|es|e)?\b | say(?:s|ing)\ (?:hello|hi|thanks)\b
          | (?:want(?:s|ed)?|wish(?:es)?|would\ like)\ to\ (?:know|ask|understand)\b
          | (?:need(?:s|ed)?|seek(?:s|ing)?|look(?:s|ing)\ for|want(?:s|ed)?)\ (?:some\ |more\ )?(?:help|assistance|advice|information|an?\ (?:answer|explanation|example))\b ))
      | the\ (?:assistant|conversation|message|question|text)\b | no\ (?:lasting\ )?facts?\b
      | (?:该|这位)?用户(?:正在|想要?|希望|刚刚|曾)?(?:询问|咨询|提问|问|请求|想知道|想了解|感谢|打招呼|寻求|需要(?:帮助|建议|解释|信息))
      | (?:助手|AI|对话|这条消息|没有(?:可|需要)) )"""
)
#: What a small model copies instead of saying who it is about.
_COPIED = re.compile(r"\A\W*(?:(?:I|my|we|our)\b|[我咱])", re.IGNORECASE)
#: What is over in an hour or a day.
_PASSING = re.compile(
    r"(?i)\b(?:right now|at the moment|today|tonight|just now|in a (?:minute|moment|second)|(?:this|tomorrow) (?:morning|afternoon|evening))\b"
    r"|今天|今晚|刚刚|刚才|马上|待会|等会|一会|正在|先去|还没|还有[^，。]{0,4}(?:小时|分钟)"
)
_FIRST_PERSON = re.compile(r"\b(?:I|me|we|us|mine|myself)\b|\bI['’]|(?<![我你他她它])(?:我|咱)们?(?!的)")
#: A person whom the user speaks of, and how a sentence that is about them begins.
_KIN_EN = re.compile(filled(r"(?i)\b(?:my|our|his|her|their)\s+(?:\w+\s+){0,2}?<<en_kin>>\b", _PARTS))
_KIN_ZH = re.compile(filled(r"(?:我|咱|他|她)们?(?:家)?的?<<zh_kin>>", _PARTS))
_OTHERS = re.compile(r"(?i)\A\W*(?:he|she|they|他们?|她们?)\b")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]\w+")
#: Words that are in no message because the form of a fact asks for them.
_FORM = "the user users is are has have was use uses used prefer prefers like likes want wants work works live lives 用户 喜欢 偏好 使用 想要 需要"


def doubt(text: str, quote: str, message: str) -> str | None:
    """Why a model's statement with this quote is not believed; None if it is."""
    said = [sentence for sentence in stating_sentences(message) if quote in sentence or sentence in quote]
    if not said:
        return "its quote states nothing: it asks, supposes or repeats somebody"
    if _CHATTER.match(text) or _COPIED.match(text):
        return "it tells of the conversation, or repeats it"
    if all(_PASSING.search(sentence) for sentence in said):
        return "it will be over soon"
    if any(secret_in(sentence) for sentence in (quote, *said)):
        return "it was said beside a secret"
    if not _supported(text, message):
        return "the message does not say it"
    if any(_of_another(sentence, text) for sentence in said):
        return "it was said of somebody else"
    return None


def _supported(text: str, message: str) -> bool:
    """Whether it has no number and no name that the message has not, and some word of it."""
    plain = message.casefold()
    own = [*_NUMBER.findall(text), *_NAME.findall(text)]
    if any(piece.casefold() not in plain for piece in own):
        return False
    if language(text) != language(message):
        return bool(own)
    return not content(text).isdisjoint(content(message))


def content(text: str) -> frozenset[str]:
    """The words of a statement that say what it is about."""
    return frozenset(terms(text)) - frozenset(terms(_FORM))


def _of_another(sentence: str, text: str) -> bool:
    # "My sister and I": whoever speaks is there beside the other person.
    if _FIRST_PERSON.search(_KIN_ZH.sub("", sentence)):
        return False
    if kin := _KIN_EN.search(sentence) or _KIN_ZH.search(sentence):
        return kin["who"].casefold() not in text.casefold()
    return _OTHERS.match(sentence) is not None and re.match(r"(?i)\W*(?:the )?user\b|用户", text) is not None


def verbatim(quote: str, message: str) -> str | None:
    """A quote as the message has it: a small model changes the case, the spaces and the last sign of what it copies."""
    if quote in message:
        return quote
    pattern = r"\s+".join(map(re.escape, quote.strip(" \t\n.。…,，!！\"'“”").split()))
    found = re.search(pattern, message, re.IGNORECASE) if pattern else None
    return None if found is None else found[0]
