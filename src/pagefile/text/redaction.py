"""Personal data and secrets in a text, found by rules and replaced by what kind they were.

Only patterns that say what they are by themselves: addresses, numbers with a checksum or a fixed form, keys with a known prefix. Names
and street addresses have no such form and stay. Each rule reads a text once, and a redacted text is not changed again.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

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


def _luhn(digits: str) -> bool:
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


def _card(found: str) -> str:
    """The longest beginning that is a card's number: a date or an amount may follow it."""
    for end in range(len(found), 12, -1):
        digits = re.sub(r"\D", "", found[:end])
        whole = end == len(found) or not found[end].isdigit()
        if (
            whole
            and found[end - 1].isdigit()
            and 13 <= len(digits) <= 19
            and len(set(digits)) > 1
            and _luhn(digits)
        ):
            return found[:end]
    return ""


def _iban(found: str) -> str:
    """The longest beginning that is an account's number: a word in capitals may follow it."""
    for end in range(len(found), 14, -1):
        plain = found[:end].replace(" ", "")
        whole = end == len(found) or found[end] == " "
        if whole and 15 <= len(plain) <= 34:
            turned = plain[4:] + plain[:4]
            if int("".join(str(int(char, 36)) for char in turned)) % 97 == 1:
                return found[:end]
    return ""


def _chinese_id(found: str) -> str:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(digit) * weight for digit, weight in zip(found, weights, strict=False))
    return found if "10X98765432"[total % 11] == found[-1].upper() else ""


def _phone(found: str) -> str:
    return found if 7 <= len(re.sub(r"\D", "", found)) <= 15 else ""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    #: The beginning of what was found that is to be removed; empty for none of it.
    part: Callable[[str], str] = str


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
        )
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
    "card": _Rule(re.compile(r"(?<![0-9A-Za-z_.-])\d(?:[ -]?\d){12,18}(?!\d)"), _card),
    "phone": _Rule(
        re.compile(
            r"(?<![0-9A-Za-z_.+-])(?:"
            r"\+\d{1,3}(?:[ .-]?\(?\d{1,5}\)?){2,5}"
            r"|(?:\+?86[ -]?)?1[3-9]\d(?:[ -]?\d{4}){2}"
            r"|0\d{2,3}-\d{7,8}"
            r"|\([2-9]\d{2}\) ?[2-9]\d{2}-\d{4}|[2-9]\d{2}[-.][2-9]\d{2}[-.]\d{4}"
            r")(?![0-9A-Za-z_-])"
        ),
        _phone,
    ),
}
KINDS = tuple(_RULES)
#: Each removes what the one before could not see.
_MOST_PASSES = 8


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
        kept, end = list[str](), 0
        for found in rule.pattern.finditer(narrow):
            if part := rule.part(found[0]):
                self.counts[kind] += 1
                kept += text[end : found.start()], f"[{kind} removed]"
                end = found.start() + len(part)
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
