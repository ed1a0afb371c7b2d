"""Facts without a model, in Chinese and English: what must never be stored as one, and what people state about themselves.

Few patterns, each anchored at the beginning of a clause: a missed statement costs little, a made-up one costs
trust. Questions, conditions, quotations, code and text written by our own memory are skipped. What contains a
secret is refused in `tiers/fact_book.py`.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from pagefile.text.cards import passes_luhn
from pagefile.text.fact_ranking import fact_key
from pagefile.text.sentences import HAN
from pagefile.text.tables import filled, table

_TABLE = table("pagefile.text", "facts")
_PARTS = {**_TABLE["parts"], "han": HAN}

# -- what must never be stored -----------------------------------------------------------------------------------------
#
# Passwords, keys, card and identity numbers, whoever states them; and, from a model, an instruction to a model that
# reads it later. What people want from their assistant ("answer in French", "以后用中文回答") is a fact about them. An
# instruction is one that overrides a model's instructions, extracts them, or gives it a different identity.

_DIGITS = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.])")
_IDENTITY = re.compile(r"(?<!\d)\d{17}[\dXx](?![\dXx])")
_IDENTITY_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_IDENTITY_CHECKS = "10X98765432"
_SECRETS, _ORDERS = (
    {what: re.compile(filled(pattern, _TABLE["parts"])) for what, pattern in _TABLE[kind].items()}
    for kind in ("secrets", "orders")
)


def secret_in(text: str) -> str | None:
    """What in a text must not be stored, in a word or two; None if it is safe."""
    plain = unicodedata.normalize("NFKC", text)
    if any(_is_identity(match[0]) for match in _IDENTITY.finditer(plain)):
        return "an identity number"
    if any(passes_luhn(match[0]) for match in _DIGITS.finditer(plain)):
        return "a card number"
    return next((what for what, pattern in _SECRETS.items() if pattern.search(plain)), None)


def order_in(text: str) -> str | None:
    """What a text instructs a model to do; None if it is not such an instruction."""
    folded = unicodedata.normalize("NFKC", text).replace("’", "'")
    # As a reader sees it: without invisible characters.
    plain = " ".join("".join(char for char in folded if unicodedata.category(char) != "Cf").split())
    return next((what for what, pattern in _ORDERS.items() if pattern.search(plain)), None)


def _is_identity(number: str) -> bool:
    """A Chinese identity number: it contains a date of birth, and ends with a check character."""
    year, month, day = number[6:10], number[10:12], number[12:14]
    if not ("1900" <= year <= "2100" and "01" <= month <= "12" and "01" <= day <= "31"):
        return False
    total = sum(int(digit) * weight for digit, weight in zip(number, _IDENTITY_WEIGHTS, strict=False))
    return _IDENTITY_CHECKS[total % 11] == number[17].upper()


# -- what people state about themselves --------------------------------------------------------------------------------

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
    #: What is over by it, if it only says that: it is kept where a fact names that.
    ends: str | None = None


#: The name in front of what a speaker says, at the beginning of a line; or the heading of a note ("Diet: I'm vegan.").
_SPEAKER = re.compile(
    rf"^[ \t]*(?P<name>[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?|[{HAN}]{{2,4}})[:：][ \t]*", re.MULTILINE
)
_THE_USER = re.compile(r"\bthe user(?P<of>'s)?\b|用户", re.IGNORECASE)


class _Rule:
    """A row of the table: a pattern in one of the languages, and what it states."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        tongue = "zh" if "zh" in row else "en"
        self.pattern = re.compile(filled(f"<<{tongue}_begins>>(?P<quote>{row[tongue]})", _PARTS))
        self.says: str = row["says"]
        self.category: str = row["category"]
        self.confidence: float = row["confidence"]
        self.attribute: str | None = row.get("attribute")
        self.unless = re.compile(filled(row["unless"], _PARTS)) if "unless" in row else None
        self.ends: bool = row.get("ends", False)

    def about(self, key: str, named: Mapping[str, str]) -> str | None:
        """What a statement with this value is about."""
        if self.attribute is None:
            return None
        whole = self.attribute.format_map({**named, "key": key})
        plain = self.attribute.format_map({**named, "key": _AROUND.sub("", key) or key})
        return next((name for name, same in _SAME.items() if same.fullmatch(whole)), plain)


_AROUND = re.compile(_TABLE["keys"]["around"])
_SAME = {name: re.compile(f"trait:(?:{same})") for name, same in _TABLE["keys"]["same"].items()}
_RULES = tuple(map(_Rule, _TABLE["stated"]))
#: Those that read what is to be remembered.
_PLAIN = tuple(rule for rule in _RULES if rule.category not in {"correction", "explicit"})
_WE = re.compile("我们|咱")
_ME = re.compile("(?<!自)我(?!行我素)")
_I = re.compile(r"\b(?:I|my|we|our|me)\b", re.IGNORECASE)

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
#: What announces a text that was pasted ("Translate:", "Summarize this email:"): all that follows is that text.
_PASTED = re.compile(
    r"(?:(?:\b(?:translate|proofread|rephrase|paraphrase|(?:summari[sz]e|rewrite|shorten|edit|analy[sz]e) the following)\b|翻译|译成|翻成|润色|校对|改写)"
    r"|(?:\b(?:this|that|the|an?|his|her|their)\b|以下|下面|这|那)[^\n:：.,;!?。，；！？]{0,30}?"
    r"(?:\b(?:e?-?mails?|messages?|letters?|articles?|texts?|posts?|comments?|paragraphs?|passages?|essays?|stor(?:y|ies)|poems?"
    r"|songs?|lyrics|documents?|reports?|pages?|transcripts?|conversations?|chats?|dialogues?|sentences?|reviews?|answers?|repl(?:y|ies))\b"
    r"|邮件|文章|短文|文字|文本|段落|段话|句话|原文|内容|信件|封信|帖子|评论|网页|报道|报告|文档|对话|聊天记录|故事|诗|歌词|新闻))"
    r"[^\n:：.;!?。；！？]{0,40}[:：].*+",
    re.DOTALL | re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^。！？!?；;\n]+[。！？!?；;\n]*|[。！？!?；;\n]+")
_EN_END = re.compile(r"(?<=[.!?])\s+")
_QUESTION = re.compile(
    r"[?？]|[吗呢么]\s*+(?:[。.]++\s*+)?$|^(?:谁|什么|哪|怎么|为什么|do|does|did|is|are|can|could|would|should|what|who|why|how|where)\b",
    re.IGNORECASE,
)
#: A word that asks anywhere in a clause.
_ASKS = re.compile(
    r"[吗呢]|什么|怎么|哪|谁|几|多少|是不是|有没有|能不能|\b(?:what|who|why|how|where|which|whether|if|wonder\w*|should|could|would)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"^\s*(?:如果|假如|假设|要是|倘若|比如|例如|万一|除非|一旦|每当|当(?=[我你他她])|等(?=[我你他她])|if|suppose|imagine|unless|when|in case|for example|let's say|pretend|say that|assume)",
    re.IGNORECASE,
)
#: What somebody else says, or what is to be written: "She said: I live in Paris".
_REPORTED = re.compile(
    r"\b(?:said|says|say|saying|told|asked|wrote|writes?|translate|sentence|title|quote|means?)\b[^:：]{0,20}[:：]"
    r"|(?:说|问|写|翻译|造句|句话|例句|标题|台词)[^:：]{0,12}[:：]",
    re.IGNORECASE,
)
#: Reported speech goes on to the end of its line.
_SPEECH = re.compile(rf"({_REPORTED.pattern}).*+", re.IGNORECASE)
_CORRECTS = re.compile(r"^(?:不对|不是的?|错了|更正|纠正|no|nope|wrong)[。.！!]\s*$", re.IGNORECASE)
_TAIL = re.compile(
    r"[\s了啦哦吧呀啊呢的…~～.]+$|(?:\s+(?:now|too|as well|by the way|thanks|thank you|please|any ?more|any longer|nowadays|these days|recently|yesterday"
    r"|(?:last|this) (?:week|month|year|spring|summer|autumn|fall|winter)|(?:an?|one|two|three|four|five|six|a few|several|\d{1,2}) (?:days?|weeks?|months?|years?) ago))+$",
    re.IGNORECASE,
)
#: A clause about another time than now, or about none: "我住在杭州的时候", "我在阿里工作过".
_ELSEWHEN = re.compile(
    r"时候|那会儿?|那阵|那段|那[几些]?年|期间|的话|就好了|以前|之前|以后|之后|(?:工作|上班|任职|住|待|当|做)过|时(?![代尚间装光空钟])"
)
_CLAUSE_END = re.compile(r"[，。！？!?；;,\n]|$")
#: What a clause of another time says of what does not last for ever.
_TIMED = frozenset({"identity", "work", "health"})
#: Where the next clause of a sentence begins: it is not part of the value before it.
_NEXT_CLAUSE = re.compile(
    r"\s+(?:and|but|so|because|since|while|although|though)\s+(?:I|we|my|our|it|he|she|they|you|please)\b.*"
    r"|\s+(?:and|but)\s+(?:am|work|study|live|love|like|hate|have|need|want|prefer|use|play|moved|drive)\b.*"
    r"|(?:而且|并且|但是|但|不过|因为|所以|然后)(?=我|他|她|老婆|老公|孩子|也|不|请).*",
    re.IGNORECASE,
)
#: A clause without a subject that follows a statement of the user's, …
_KIN = re.compile(
    filled("(?:^|[，,。；;])\\s*(?P<subject>我(?:们|家|的)?)(?:有[一两二三]?个)?<<zh_kin>>", _PARTS)
)
_KIN_GOES_ON = re.compile(filled("[，,]\\s*(?P<clause><<zh_kin_goes_on>>)", _PARTS))
#: "我换工作了": what changed is in the clause that follows.
_CHANGES = re.compile(
    filled(
        "<<zh_begins>><<zh_when>>我们?(?:[全一]?家)?<<zh_when>>(?:搬家|搬走|换了?[新个份]*(?:工作|公司|单位|岗位|职业)|跳槽|离职|辞职|转行|转岗|毕业|回国|以前|之前|过去|曾经|原来|从[^，。！？!?；;,\\n]{1,16}(?:离职|辞职|毕业|搬))"
        "|[喝吃]腻了",
        _PARTS,
    )
)
_GOES_ON = {tongue: re.compile(filled(f"<<{tongue}_goes_on>>", _PARTS)) for tongue in ("zh", "en")}
#: … unless somebody else came between, …
_OTHERS = {
    "zh": re.compile(
        "他|她|它|你|您|我(?:们|家)?的?(?:<<zh_kin>>|朋友|同学|邻居|客户|学生)".replace(
            "<<zh_kin>>", _PARTS["zh_kin"]
        )
    ),
    "en": re.compile(r"\b(?:he|she|they|it|you|who|people|friends?|my \w+)\b", re.IGNORECASE),
}
#: … or it is about others, or asks for something.
_NOT_OWN = {
    "zh": re.compile("的(?:人|朋友|同学|话|都|可以|应该)|可以|都会|大家"),
    "en": re.compile(r"\b(?:people who|those who|you|please)\b", re.IGNORECASE),
}
#: Categories whose value is a whole statement, however many clauses it has.
_WHOLE = frozenset({"correction", "explicit", "howto"})


def own_words(text: str) -> str:
    """A user's message without text that others wrote into it; each removed piece leaves a line break."""
    return _PASTED.sub("\n", _FOREIGN.sub("\n", text))


def stated(text: str, author: str | None = None, known: Collection[str | None] = ()) -> list[Stated]:
    """The lasting statements a message makes about its author, each with its exact quote, in the order of the text.

    `author` is the name of somebody else than the user, `known` are the names of those who take part.
    """
    found = (
        _spoken(one, speaker or author)
        for speaker, said in _speeches(_own_speech(text), known)
        for sentence in _sentences(said)
        if (read := list(_in_sentence(sentence))) and secret_in(sentence) is None
        for one in read
    )
    return list({(fact_key(one.text), one.attribute): one for one in found}.values())


def stating_sentences(text: str) -> list[str]:
    """The sentences of a message in which its author states something: no questions, suppositions or quotations."""
    return list(_sentences(_own_speech(text)))


def _own_speech(text: str) -> str:
    return _SPEECH.sub(r"\1", own_words(text))


def _speeches(text: str, known: Collection[str | None]) -> Iterator[tuple[str | None, str]]:
    """What each speaker says, in a message that several wrote ("Ada: …"); one author has no name.

    Several wrote it if one of two names recurs, or is known: otherwise they may be the headings of a note.
    """
    marks = list(_SPEAKER.finditer(text))
    names = {mark["name"] for mark in marks}
    if len(names) < 2 or (len(names) == len(marks) and names.isdisjoint(known)):
        yield None, text
        return
    yield None, text[: marks[0].start()]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        yield mark["name"], text[mark.end() : None if following is None else following.start()]


def _spoken(one: Stated, speaker: str | None) -> Stated:
    """A statement with its speaker as the subject."""
    if speaker is None:
        return one
    text, subject = said_by(speaker, one.text, one.subject)
    return replace(one, text=text, subject=subject)


def said_by(speaker: str, text: str, subject: str | None) -> tuple[str, str]:
    """What somebody says of themselves, and whom it is about: "The user lives …" becomes "Bob lives …"."""
    about = speaker if subject in {None, USER} else f"{speaker}'s {subject}"
    return _THE_USER.sub(lambda found: speaker + (found["of"] or ""), text), about


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
            if _CONDITION.match(sentence) or _REPORTED.search(sentence):
                continue
            if stating := _stating(sentence.strip()):
                yield stating


def _stating(sentence: str) -> str:
    """A sentence, or what it states before it asks: "I'm vegan, what can I cook?"."""
    if not _QUESTION.search(sentence):
        return sentence
    head, comma, _ = sentence.rpartition("，") if "，" in sentence else sentence.rpartition(",")
    return head if comma and not _QUESTION.search(head) and not _ASKS.search(head) else ""


def _filling(value: str, quote: str) -> dict[str, str]:
    article = "an" if value[:1].lower() in "aeiou" else "a"
    return {"value": value, "quote": quote.rstrip("。.！! "), "article": article}


def _in_sentence(sentence: str) -> Iterator[Stated]:
    """What a sentence states, in its order, and what it goes on to state of a subject that later clauses leave out."""
    found = list(_in_clauses(sentence))
    if not any(one.category in _WHOLE for one in found):
        found += chain(_of_user(sentence, found), _of_kin(sentence))
    yield from _distinct(sorted(found, key=lambda one: sentence.find(one.quote)))


def _of_user(sentence: str, found: Sequence[Stated]) -> Iterator[Stated]:
    own = [sentence.find(one.quote) for one in found if one.subject == USER]
    own += [changes.start() for changes in _CHANGES.finditer(sentence)]
    if not own:
        return
    start = max(min(own), 0)
    for tongue, subject in (("zh", "我"), ("en", "I ")):
        for match in _GOES_ON[tongue].finditer(sentence, start):
            clause = match["clause"]
            if _OTHERS[tongue].search(sentence, start, match.start()) or _NOT_OWN[tongue].search(clause):
                break
            yield from _continued(subject, clause)


def _of_kin(sentence: str) -> Iterator[Stated]:
    """ "我女儿三岁了，叫朵朵": of somebody close, as long as nobody else comes between."""
    for kin in _KIN.finditer(sentence):
        end = _CLAUSE_END.search(sentence, kin.end())
        while end is not None and (match := _KIN_GOES_ON.match(sentence, end.start())) is not None:
            yield from _continued(f"我{kin['who']}", match["clause"])
            end = _CLAUSE_END.search(sentence, match.end())


def _continued(subject: str, clause: str) -> Iterator[Stated]:
    for one in _in_clauses(subject + clause):
        if one.quote.startswith(subject):
            yield replace(one, quote=one.quote.removeprefix(subject))


def _distinct(found: Sequence[Stated]) -> Iterator[Stated]:
    """One statement of what two rules read out of the same words."""
    seen = set[tuple[str, str, str]]()
    for one in found:
        read = (one.quote, one.subject, one.category)
        if one.attribute is not None or read not in seen:
            yield one
        seen.add(read)


def _in_clauses(sentence: str, rules: Sequence[_Rule] = _RULES) -> Iterator[Stated]:
    taken = 0
    plain = sentence.replace("’", "'")
    for rule in rules:
        for match in rule.pattern.finditer(plain):
            said = match["value"] if rule.category in _WHOLE else _NEXT_CLAUSE.sub("", match["value"])
            value = _TAIL.sub("", said).strip(" :：、")
            if not value or match.start("quote") < taken or (rule.unless and rule.unless.match(value)):
                continue
            if rule.category in _TIMED and _ELSEWHEN.search(_clause(plain, match)):
                continue
            # A correction takes the whole sentence, and nothing else is read from it.
            correction = rule.category == "correction"
            end = None if correction else match.end("quote")
            quote = sentence[match.start("quote") : end].strip()
            if rule.category == "explicit":
                taken = match.end("quote")
                if inner := list(_in_clauses(value, _PLAIN)):
                    # What is to be remembered is a statement of its own.
                    yield from inner
                    continue
            yield _made(rule, match, sentence, value, quote)
            if correction:
                return


def _clause(sentence: str, match: re.Match[str]) -> str:
    end = _CLAUSE_END.search(sentence, match.end("quote"))
    return sentence[match.start("quote") : end.start() if end else None]


def _made(rule: _Rule, match: re.Match[str], sentence: str, value: str, quote: str) -> Stated:
    named = {name: found.casefold() for name, found in match.groupdict().items() if found}
    # The name of a relative keeps its capital.
    given = f"{sentence[slice(*match.span('named'))]} " if "named" in named else ""
    text = rule.says.format_map({**named, **_filling(value, quote), "given": given})
    if rule.category == "explicit":
        text = _of_the_user(text)
    attribute = rule.about(fact_key(value), named)
    ends = value if rule.ends else None
    return Stated(text[:300], quote, rule.category, rule.confidence, attribute, named.get("who", USER), ends)


def _of_the_user(text: str) -> str:
    """What somebody wants remembered, told of them: no fact says "I"."""
    if _WE.search(text):
        return f"用户说：{text}"
    if _I.search(text):
        return f"The user says: {text}"
    return _ME.sub("用户", text)
