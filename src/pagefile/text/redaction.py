"""Personal data and secrets in a text, found by rules and replaced by what kind they were.

Only patterns that say what they are by themselves: addresses, numbers with a checksum or a fixed form, keys with a known prefix. Names
and street addresses have no such form and stay. Each rule reads a text once, and a redacted text is not changed again.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from pagefile.text.cards import WRITTEN, card_length

#: Keys of a message whose values name things or hold bytes: a provider needs them as they are.
_EXACT = frozenset(
    {
        "id",
        "type",
        "role",
        "tool_call_id",
        "tool_use_id",
        "call_id",
        "data",
        "image_url",
        "file_data",
        "signature",
    }
    | {"encrypted_content", "media_type", "mime_type", "cache_control"}
)
#: Keys of a message whose objects are not the provider's business.
_ANY = frozenset({"input", "arguments", "args", "metadata"})
#: A file as a data URL: letters that happen to look like something.
_DATA_URL = re.compile(r"data:[\w.+-]{1,80}/[\w.+-]{1,80}(?:;[\w.+=-]{1,80}){0,4};base64,[A-Za-z0-9+/=_-]*")
#: Full-width forms, which Chinese keyboards give, and the letters that they are. One for one: places stay.
_WIDE = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}


#: How long an account's number is, by the country that it begins with (SWIFT's registry).
_IBAN_LENGTHS = {
    **dict.fromkeys(("NO",), 15),
    **dict.fromkeys(("BE", "BI"), 16),
    **dict.fromkeys(("DK", "FI", "FK", "FO", "GL", "NL", "SD"), 18),
    **dict.fromkeys(("MK", "SI"), 19),
    **dict.fromkeys(("AT", "BA", "EE", "KZ", "LT", "LU", "MN", "XK"), 20),
    **dict.fromkeys(("CH", "CR", "HR", "LI", "LV"), 21),
    **dict.fromkeys(("BG", "BH", "DE", "GB", "GE", "IE", "ME", "RS", "VA"), 22),
    **dict.fromkeys(("AE", "GI", "IL", "IQ", "OM", "SO", "TL"), 23),
    **dict.fromkeys(("AD", "CZ", "ES", "MD", "PK", "RO", "SA", "SE", "SK", "TN", "VG"), 24),
    **dict.fromkeys(("LY", "PT", "ST"), 25),
    **dict.fromkeys(("IS", "TR"), 26),
    **dict.fromkeys(
        ("BF", "BJ", "CI", "CM", "CG", "DJ", "FR", "GR", "IT", "MC", "MR", "SM", "MG", "ML", "MZ"), 27
    ),
    **dict.fromkeys(("AL", "AZ", "BY", "CY", "DO", "GT", "HU", "LB", "NI", "PL", "SN", "SV"), 28),
    **dict.fromkeys(("BR", "EG", "PS", "QA", "UA"), 29),
    **dict.fromkeys(("JO", "KW", "MU", "YE"), 30),
    **dict.fromkeys(("MT", "SC"), 31),
    "LC": 32,
    "RU": 33,
}

# -- what of a pattern's match is removed: where it begins and ends, the same if nothing is ---------------------------

_Found: TypeAlias = re.Match[str]
_Place: TypeAlias = tuple[int, int]


_NOTHING: _Place = (0, 0)


def _whole(found: _Found) -> _Place:
    return found.span()


def _value(found: _Found) -> _Place:
    """What stands after a name that says what it is; the whole of what says so by itself."""
    return found.span(found.lastgroup or 0)


def _card(found: _Found) -> _Place:
    return found.start(), found.start() + card_length(found[0])


def _iban(found: _Found) -> _Place:
    """As much as the country's numbers have: a word in capitals may follow."""
    length, start, end = _IBAN_LENGTHS.get(found[0][:2], 0), *found.span()
    plain = found[0].replace(" ", "")[:length]
    if not length or len(plain) < length:
        return _NOTHING
    if int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 != 1:
        return _NOTHING
    ends = (
        place for place in range(start, end + 1) if len(found.string[start:place].replace(" ", "")) == length
    )
    return start, next(ends, start)


def _chinese_id(found: _Found) -> _Place:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(digit) * weight for digit, weight in zip(found[0], weights, strict=False))
    return found.span() if "10X98765432"[total % 11] == found[0][-1].upper() else _NOTHING


#: How far before a number the word is that says what else it counts or names.
_NEAR = 64
#: It excuses the number directly behind it; one in the plural, a list of such numbers.
_SAYS_OTHER = re.compile(
    r"(?i)(?:(?:(?<![a-z])(?P<label>(?:row|line|id|order|ticket|invoice|case|issue|record|reference|page)(?P<several>s)?|no|nr|numbers?|ref|serial|seq|pid|offset|bytes|size|count|total|version|build)"
    r"|(?P<sign>#|[行第]|订单|单号|工单|编号|流水|序号|编码))[\s\"'\\#:：=号为是]{0,24})(?(several)(?:\d{11}[\s,，、;；]{1,3}){0,4})\Z"
)
#: What makes any of these the number of a person: "phone number", `contact_id`, 联系编号, "my number".
_OF_A_PERSON = re.compile(
    r"(?i)(?:phone|mobile|(?<![a-z])cell|(?<![a-z])tel|contact|whatsapp|wechat|手机|电话|联系|微信)[^\n\d,，;；。\]]{0,24}\Z"
    r"|(?<![a-z])(?:my|his|her|your|our|their)\s{1,3}(?:numbers?|no)\Z"
)
_COUNTS = re.compile(
    r"(?i)\s?(?:[mnµ]?s|rows|lines|bytes|[kmg]i?b|tokens|records|entries|items|users|行|条|字节|毫秒)(?![a-z])"
)


def _mobile(found: _Found) -> _Place:
    """Eleven digits are a Chinese mobile number, unless the words beside them say that they are another."""
    text, (start, end) = found.string, found.span()
    before = text[max(0, start - _NEAR) : start]
    label = _SAYS_OTHER.search(before)
    is_other = label is not None and not _OF_A_PERSON.search(
        before[: max(label.end("label"), label.end("sign"))]
    )
    return _NOTHING if is_other or _COUNTS.match(text, end) else (start, end)


def _phone(found: _Found) -> _Place:
    if found.lastgroup == "mobile":
        return _mobile(found)
    digits = len(re.sub(r"\D", "", found[0]))
    return found.span() if (8 if found[0][0] == "+" else 7) <= digits <= 15 else _NOTHING


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    place: Callable[[_Found], _Place] = _whole


#: Between a name and its value; in JSON inside JSON, quotes are escaped.
_IS = r"\\{0,7}[\"']?\s{0,3}[:：=]\s{0,3}\\{0,7}[\"']?"
#: By kind, in the order in which they are applied: a card's digits are not a phone number any more.
_RULES: Mapping[str, _Rule] = {
    "secret": _Rule(
        re.compile(
            r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[A-Za-z0-9+/=\s]{1,20000}-----END [A-Z ]{0,20}PRIVATE KEY-----"
            r"|\beyJ[\w-]{8,2000}\.[\w-]{8,4000}\.[\w-]{8,2000}"
            r"|\b(?:sk|pk|rk)[-_](?:[a-z]{2,10}[-_]){0,2}[\w-]{16,200}"
            r"|\bgh[pousr]_\w{30,255}|\bgithub_pat_\w{30,255}|\bglpat-[\w-]{20,100}|\bxox[abprs]-[\w-]{10,200}"
            r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{35}|\bhf_[A-Za-z0-9]{30,60}|\bpf_[\w-]{20,100}|\bya29\.[\w-]{20,300}"
            r"|\bLTAI[A-Za-z0-9]{12,24}\b"
            # The password of an address, and the value after a name: with a digit or a sign in it, or it may be a word.
            r"|://[^\s/:@]{0,64}:(?P<password>[^\s/@]{1,2000}(?:@[^\s/@\"'<>,;]{1,200}){0,8})@"
            r"|(?:(?i:(?:password|passwd|passphrase|(?<![a-z0-9])pwd|(?:api|access|secret|private)[ _-]?key|(?:access|auth|client)[ _-]?(?:token|secret))\b)"
            rf"|密码|口令|密钥){_IS}(?=[^\s\"',;，；]{{0,63}}[\d!@#$%^&*])(?P<value>(?:[^\s\"',;，；\\]|\\(?!\\{{0,7}}[\"'])){{6,20000}})"
            rf"|(?:(?i:authorization){_IS}(?i:bearer|basic|token)|\bBearer)\s{{1,3}}(?=[\w.~+/=-]{{0,63}}\d|[\w.~+/=-]{{16}})(?P<token>[\w.~+/=-]{{6,20000}})"
        ),
        _value,
    ),
    "email": _Rule(
        re.compile(r"(?<![\w.+-])[\w+-](?:[\w.+-]{0,62}[\w+-])?@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}\b")
    ),
    "iban": _Rule(re.compile(r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?\b"), _iban),
    "chinese_id": _Rule(
        re.compile(
            r"(?<![0-9A-Za-z])[1-9]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx](?![0-9A-Za-z])"
        ),
        _chinese_id,
    ),
    "card": _Rule(WRITTEN, _card),
    "phone": _Rule(
        re.compile(
            r"(?<![0-9A-Za-z_.+-])(?:"
            r"\+\d{1,3}(?:[ .-]?\(?\d{1,5}\)?){2,5}"
            r"|(?P<mobile>1[3-9]\d{9})"
            r"|86[ -]?1[3-9]\d(?:[ -]?\d{4}){2}|1[3-9]\d(?P<sign>[ -])\d{4}(?P=sign)\d{4}"
            r"|0\d{2,3}-\d{7,8}"
            r"|\(\d{3}\) ?\d{3}-\d{4}|[2-9]\d{2}-\d{3}-\d{4}|[2-9]\d{2}\.[2-9]\d{2}\.\d{4}"
            r")(?![0-9A-Za-z_-])"
        ),
        _phone,
    ),
}
KINDS = tuple(_RULES)
#: A text is searched in parts of this many characters, so that other threads get their turn.
_PART = 50_000
#: More than any pattern reads.
_LONGEST = 25_000
#: Each removes what the one before could not see.
_MOST_PASSES = 8


def _next(pattern: re.Pattern[str], text: str, after: int) -> _Found | None:
    while after < len(text):
        found = pattern.search(text, after, after + _PART + _LONGEST)
        if found is not None and found.start() < after + _PART:
            return found
        after += _PART
    return None


@dataclass(slots=True)
class Redaction:
    """Replaces some kinds, and counts what it replaced."""

    kinds: Collection[str]
    counts: Counter[str] = field(default_factory=Counter[str])

    def text(self, text: str) -> str:
        # What is removed may have hidden the beginning of the next one.
        for _ in range(_MOST_PASSES):
            if (made := self._pass(text)) == text:
                break
            text = made
        return text

    def _pass(self, text: str) -> str:
        for kind, rule in _RULES.items():
            if kind in self.kinds:
                text = self._without(kind, rule, text)
        return text

    def _without(self, kind: str, rule: _Rule, text: str) -> str:
        narrow = text if text.isascii() else text.translate(_WIDE)
        kept, end, after = list[str](), 0, 0
        while found := _next(rule.pattern, narrow, after):
            start, stop = rule.place(found)
            if start == stop:
                # Another may begin within what this one would have taken.
                after = found.start() + 1
                continue
            self.counts[kind] += 1
            kept += text[end:start], f"[{kind} removed]"
            end = after = stop
        return "".join((*kept, text[end:])) if kept else text

    def value(self, value: Any, *, exact: bool = False) -> Any:
        """The same for every text in a JSON value, its keys among them; of an `exact` one, a provider's message, ids and bytes stay."""
        if isinstance(value, str):
            return value if _DATA_URL.fullmatch(value) else self.text(value)
        if isinstance(value, list):
            return [self.value(inner, exact=exact) for inner in cast("list[Any]", value)]
        if isinstance(value, dict):
            given = cast("dict[Any, Any]", value)
            return self._message(given) if exact else self._object(given)
        return value

    def _message(self, given: dict[Any, Any]) -> dict[Any, Any]:
        return {
            name: inner
            if name in _EXACT and not isinstance(inner, dict | list)
            else self.value(inner, exact=name not in _ANY or not isinstance(inner, dict))
            for name, inner in given.items()
        }

    def _object(self, given: dict[Any, Any]) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for name, inner in given.items():
            plain = shown = self.text(name) if isinstance(name, str) else name
            number = 1
            while shown in made:
                shown, number = f"{plain} {number + 1}", number + 1
            made[shown] = self.value(inner)
        return made
