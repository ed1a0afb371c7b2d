"""What must never be stored as a fact, in Chinese and English.

Passwords, keys, card and identity numbers, whoever states them; and, from a model, an instruction to a model that
reads it later. What people want from their assistant ("answer in French", "以后用中文回答") is a fact about them. An
instruction is one that overrides a model's instructions, extracts them, or gives it a different identity.
"""

import re
import unicodedata

from pagefile.text.tables import filled, table

_DIGITS = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.])")
_IDENTITY = re.compile(r"(?<!\d)\d{17}[\dXx](?![\dXx])")
_IDENTITY_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_IDENTITY_CHECKS = "10X98765432"

_TABLE = table("pagefile.text", "facts")
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
    plain = " ".join(_unhidden(text).split())
    return next((what for what, pattern in _ORDERS.items() if pattern.search(plain)), None)


def passes_luhn(number: str) -> bool:
    """Whether a number ends with the check digit that payment cards have."""
    digits = [int(digit) for digit in number if digit.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    doubled = [2 * digit - (9 if digit > 4 else 0) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_identity(number: str) -> bool:
    """A Chinese identity number: it contains a date of birth, and ends with a check character."""
    year, month, day = number[6:10], number[10:12], number[12:14]
    if not ("1900" <= year <= "2100" and "01" <= month <= "12" and "01" <= day <= "31"):
        return False
    total = sum(int(digit) * weight for digit, weight in zip(number, _IDENTITY_WEIGHTS, strict=False))
    return _IDENTITY_CHECKS[total % 11] == number[17].upper()


def _unhidden(text: str) -> str:
    """The text as a reader sees it: without invisible characters."""
    folded = unicodedata.normalize("NFKC", text).replace("’", "'")
    return "".join(char for char in folded if unicodedata.category(char) != "Cf")
