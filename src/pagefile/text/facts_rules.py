"""Lasting statements that people make explicitly about themselves, found without a model.

Few patterns, each anchored at the beginning of a clause: a missed statement costs little, a made-up one costs
trust. Questions, conditions, quotations, code and text written by our own memory are skipped.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pagefile.text.facts import fact_key
from pagefile.text.scripts import HAN

#: The subject of statements that people make about themselves.
USER = "user"


@dataclass(frozen=True, slots=True)
class Stated:
    """A statement, and the words that express it."""

    text: str
    quote: str
    category: str
    confidence: float
    #: What it is about: a later statement with the same attribute replaces it.
    attribute: str | None = None
    subject: str = USER


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    #: The statement to store, as a template.
    says: str
    category: str
    confidence: float
    #: `{key}` is the value: people have several of such an attribute.
    attribute: str | None = None
    #: Values to reject, by how they begin.
    unless: re.Pattern[str] | None = None


_ZH_VALUE = r"(?P<value>[^，。！？!?；;,\n]{1,80})"
_ZH_HOW = r"(?:最|很|非常|特别|一直|比较|更|真的|还是?|也|超级?|挺)*"
_EN_VALUE = r"(?P<value>[^,.;!?\n]{1,80}(?:\.\w[^,.;!?\n]{0,40})?)"
_EN_HOW = r"(?:really |strongly |always |usually |generally |absolutely |also |personally |definitely )*"
_NAME = r"(?P<value>[A-Z][\w'’-]*(?: [A-Z][\w'’-]*){0,2})"
_JOBS = (
    "engineer|developer|programmer|doctor|physician|surgeon|nurse|teacher|professor|student|designer|scientist|writer|journalist|"
    "manager|lawyer|accountant|architect|researcher|analyst|pilot|chef|translator|consultant|photographer|musician|dentist|pharmacist"
)
_ZH_PERSON = re.compile(r"[你您他她它这那吗什哪谁啥]|(?:上|到)?了")
_EN_PERSON = re.compile(
    r"(?:it|that|this|those|these|them|you|your|what|how|where|him|her|the (?:idea|way|look|sound))\b",
    re.IGNORECASE,
)


_ZH_BEGINS = r"(?:^|(?<=[，,：:]))\s*"
_EN_BEGINS = r"(?:^|(?<=[,;:])|(?<=\band )|(?<=\bbut )|(?<=\bso )|(?<=\bbecause ))\s*"


def _zh(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"{_ZH_BEGINS}(?P<quote>{pattern})")


def _en(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"{_EN_BEGINS}(?P<quote>{pattern})")


_ORDERED_OR_BROUGHT = re.compile(r"外卖|快递|代驾|滴滴|救护车|网约车|出租车|什么|啥|[你您他她它人了]")
_RULES: tuple[_Rule, ...] = (
    # Corrections come first: what they correct may look like any other statement.
    _Rule(
        _zh(
            rf"(?:不对|不是的?|错了|你[说记搞弄]错了|更正(?:一下)?|纠正(?:一下)?)[，,。：:！! ]*(?:其实|正确的)?(?:应该|应当|其实|准确地说)?(?:是|为|叫){_ZH_VALUE}"
        ),
        "用户更正：{quote}",
        "correction",
        0.95,
    ),
    _Rule(
        _en(
            rf"(?i:no|nope|wrong|that's wrong|that's not right|that is wrong|incorrect)[,.!:—-]+ ?(?i:actually )?(?i:it's|it is|it should be|i meant|it was){' '}{_EN_VALUE}"
        ),
        "The user corrected: {quote}",
        "correction",
        0.95,
        unless=re.compile(
            r"(?:fine|ok|okay|good|not|all right|alright|great|just|a|the same)\b", re.IGNORECASE
        ),
    ),
    _Rule(
        _zh(rf"(?:请|帮我)?(?:记住|记一下|牢记)[：:，, ]*{_ZH_VALUE}"),
        "{value}",
        "explicit",
        1.0,
        unless=_ZH_PERSON,
    ),
    _Rule(_en(rf"(?i:please )?(?i:remember|note)(?i: that)[:,]? {_EN_VALUE}"), "{value}", "explicit", 1.0),
    _Rule(
        _zh(
            rf"(?:我(?:的名字)?叫(?:做)?|我的名字是|我名叫|请?叫我)(?P<value>[{HAN}·]{{2,4}}?|[A-Za-z][\w'-]*(?: [A-Z][\w'-]*){{0,2}})(?=就(?:行|好|可以)|[，。！!,；;]|$)"
        ),
        "用户的名字是{value}",
        "identity",
        0.95,
        attribute="name",
        unless=_ORDERED_OR_BROUGHT,
    ),
    _Rule(
        _en(rf"(?i:my name is|my name's|i'm called|i am called|please call me|you can call me) {_NAME}"),
        "The user's name is {value}",
        "identity",
        0.95,
        attribute="name",
    ),
    _Rule(
        _zh(rf"我(?:现在|目前|家|如今)?(?:就?住在|搬到了?|搬去了?|定居在?){_ZH_VALUE}"),
        "用户住在{value}",
        "identity",
        0.9,
        attribute="residence",
        unless=_ZH_PERSON,
    ),
    _Rule(
        _en(
            rf"(?:I (?i:now |currently )?(?i:live|am living|am based) in|I(?i:'m| am) (?i:now |currently )?(?i:living|based) in|I(?i:'ve| have)? (?i:just |recently )?moved to) {_EN_VALUE}"
        ),
        "The user lives in {value}",
        "identity",
        0.9,
        attribute="residence",
        unless=_EN_PERSON,
    ),
    _Rule(
        _zh(r"我对(?P<value>[^，。！？!?；;,\n]{1,40}?)过敏"),
        "用户对{value}过敏",
        "health",
        1.0,
        attribute="allergy:{key}",
    ),
    _Rule(
        _en(rf"I(?i:'m| am) (?i:severely |very )?allergic to {_EN_VALUE}"),
        "The user is allergic to {value}",
        "health",
        1.0,
        attribute="allergy:{key}",
        unless=_EN_PERSON,
    ),
    _Rule(
        _zh(r"我(?:现在|目前)?在(?P<value>[^，。！？!?；;,\n]{1,40}?)(?:工作|上班|任职)"),
        "用户在{value}工作",
        "work",
        0.9,
        attribute="employer",
        unless=_ZH_PERSON,
    ),
    _Rule(
        _en(rf"I (?i:now |currently )?(?i:work|am working) (?i:at|for) {_EN_VALUE}"),
        "The user works for {value}",
        "work",
        0.9,
        attribute="employer",
        unless=_EN_PERSON,
    ),
    _Rule(
        _zh(r"我是(?:一名|一个|一位|名|位)(?P<value>[^，。！？!?；;,\n]{2,20})"),
        "用户是{value}",
        "work",
        0.85,
        attribute="occupation",
        unless=re.compile("人|普通|爱|喜欢|想"),
    ),
    _Rule(
        _en(rf"I(?i:'m| am) (?:a|an) (?P<value>(?:[\w-]+ ){{0,3}}(?:{_JOBS}))\b"),
        "The user is {article} {value}",
        "work",
        0.9,
        attribute="occupation",
    ),
    _Rule(_zh(rf"我(?:的)?生日是{_ZH_VALUE}"), "用户的生日是{value}", "identity", 0.95, attribute="birthday"),
    _Rule(
        _en(rf"(?i:my birthday is) {_EN_VALUE}"),
        "The user's birthday is {value}",
        "identity",
        0.95,
        attribute="birthday",
    ),
    _Rule(
        _zh(rf"我{_ZH_HOW}(?:不喜欢|不爱|讨厌|受不了|不吃|不喝){_ZH_VALUE}"),
        "用户不喜欢{value}",
        "preference",
        0.9,
        attribute="taste:{key}",
        unless=_ZH_PERSON,
    ),
    _Rule(
        _en(
            rf"I {_EN_HOW}(?i:don't like|do not like|dislike|hate|can't stand|cannot stand|never eat|never drink|don't eat|don't drink) {_EN_VALUE}"
        ),
        "The user does not like {value}",
        "preference",
        0.9,
        attribute="taste:{key}",
        unless=_EN_PERSON,
    ),
    _Rule(
        _zh(rf"我{_ZH_HOW}(?:喜欢|爱|偏爱|偏好|热爱|习惯用){_ZH_VALUE}"),
        "用户喜欢{value}",
        "preference",
        0.9,
        attribute="taste:{key}",
        unless=_ZH_PERSON,
    ),
    _Rule(
        _en(rf"I {_EN_HOW}(?i:prefer|like|love|enjoy) {_EN_VALUE}"),
        "The user likes {value}",
        "preference",
        0.9,
        attribute="taste:{key}",
        unless=_EN_PERSON,
    ),
    _Rule(
        _zh(
            r"(?:以后|今后|从现在起)(?:请|都|一律|统一|你|您)*(?P<value>(?:不要|别|勿|用|给|先|只)[^，。！？!?；;,\n]{1,60})"
        ),
        "用户要求：{quote}",
        "preference",
        0.9,
    ),
    _Rule(
        _zh(r"请(?:你|您)?(?:以后|今后)?(?:不要|别|勿)(?P<value>[^，。！？!?；;,\n]{1,60})"),
        "用户要求：{quote}",
        "preference",
        0.75,
    ),
    _Rule(
        _en(rf"(?i:from now on,? |in the future,? |in future,? )(?i:please )?{_EN_VALUE}"),
        "The user asked: {quote}",
        "preference",
        0.9,
        unless=re.compile(r"i\b|we\b|it\b|there\b", re.IGNORECASE),
    ),
    _Rule(
        _en(rf"(?i:please (?:don't|do not|never|stop)) {_EN_VALUE}"),
        "The user asked: {quote}",
        "preference",
        0.75,
    ),
)

#: What is not the user's own text: our memory and our placeholders, framework blocks, code, quotations.
# What is opened but never closed extends to the end of its line, a placeholder to the end of the text: searching for
# an end again from each of many openings would take hours.
_FOREIGN = re.compile(
    r"<(memory|system-reminder|uploaded_files|current_uploads|tool_result)\b.*?(?:</\1>|\Z)|```.*?(?:```|\Z)|`[^`\n]*`"
    r"|^[ \t]*>.*?$|📎 \[[^\[\]\n]*\][^\n]*"
    r"(?:\n━++(?:(?:[^━]++|━++(?!\n|\Z))*+(?:━++|\Z)){1,2}(?:\n[^\n]*load_tool_history\([^\n]*)?)?"
    r"|“[^”\n]*+”?|「[^」\n]*+」?|\"[^\"\n]*\"|^[^\S\n]*(?:AI|Assistant|助手)[:：].*?$",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^。！？!?；;\n]+[。！？!?；;\n]*|[。！？!?；;\n]+")
_EN_END = re.compile(r"(?<=[.!?])\s+")
_QUESTION = re.compile(
    r"[?？]|[吗呢么]\s*+(?:[。.]++\s*+)?$|^(?:谁|什么|哪|怎么|为什么|do|does|did|is|are|can|could|would|should|what|who|why|how|where)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"^\s*(?:如果|假如|假设|要是|倘若|比如|例如|万一|if|suppose|imagine|unless|when|in case|for example|let's say)",
    re.IGNORECASE,
)
_CORRECTS = re.compile(r"^(?:不对|不是的?|错了|更正|纠正|no|nope|wrong)[。.！!]\s*$", re.IGNORECASE)
_TAIL = re.compile(
    r"[\s了啦哦吧呀啊呢的…~～.]+$|\s+(?:now|too|as well|by the way|thanks|thank you|please)$", re.IGNORECASE
)


def own_words(text: str) -> str:
    """A user's message without text that others wrote into it; each removed piece leaves a line break."""
    return _FOREIGN.sub("\n", text)


def stated(text: str) -> list[Stated]:
    """The lasting statements a message makes about its author, each with its exact quote, in the order of the text."""
    found: list[Stated] = []
    for sentence in _sentences(own_words(text)):
        found += _in_sentence(sentence)
    return list({(fact_key(one.text), one.attribute): one for one in found}.values())


def _sentences(text: str) -> Iterator[str]:
    """Sentences that state something; a bare "不对。" belongs to what follows it."""
    before = ""
    for match in _SENTENCE.finditer(text):
        for piece in _EN_END.split(match[0]):
            if _CORRECTS.match(piece.strip()) and piece in text:
                before = piece
                continue
            whole = before + piece
            sentence = whole if before and whole in text else piece
            before = ""
            if not _QUESTION.search(sentence.strip()) and not _CONDITION.match(sentence):
                yield sentence.strip()


def _in_sentence(sentence: str) -> Iterator[Stated]:
    taken = 0
    plain = sentence.replace("’", "'")
    for rule in _RULES:
        for match in rule.pattern.finditer(plain):
            value = _TAIL.sub("", match["value"]).strip(" :：、")
            if not value or match.start("quote") < taken or (rule.unless and rule.unless.match(value)):
                continue
            if rule.category == "correction":
                # A correction takes the whole sentence, and nothing else is read from it.
                quote = sentence[match.start("quote") :].strip()
                yield _made(rule, value, quote)
                return
            yield _made(rule, value, sentence[slice(*match.span("quote"))].strip())
            if rule.category == "explicit":
                taken = len(sentence)


def _made(rule: _Rule, value: str, quote: str) -> Stated:
    article = "an" if value[:1].lower() in "aeiou" else "a"
    said = rule.says.format(value=value, quote=quote.rstrip("。.！! "), article=article)
    attribute = rule.attribute and rule.attribute.format(key=fact_key(value))
    return Stated(said[:300], quote, rule.category, rule.confidence, attribute)
