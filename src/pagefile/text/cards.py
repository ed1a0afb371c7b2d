"""Numbers of payment cards: those that issuers give out, written as people write them."""

import re

#: How a number begins, and how many digits it then has: ISO/IEC 7812, and what the networks publish.
_ISSUERS = {
    "American Express": (r"3[47]", {15}),
    "Diners Club": (r"30[0-5]|3095|3[689]", {14, 16}),
    "Discover": (r"6011|64[4-9]|65", {16}),
    "JCB": (r"35(?:2[89]|[3-8]\d)", {16}),
    "Maestro": (r"50(?:18|20|38)|5893|6304|67(?:59|6[1-3])", {16, 18, 19}),
    "Mastercard": (r"5[1-5]|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720", {16}),
    "Mir": (r"220[0-4]", {16}),
    "RuPay": (r"508|60[678]|8[12]", {16}),
    "UnionPay": (r"62|9558", {16, 17, 18, 19}),
    "Visa": (r"4", {16}),
}
_BEGINNINGS = [(re.compile(begins), lengths) for begins, lengths in _ISSUERS.values()]

#: Digits without a break, or in the groups that are printed on a card, between which one sign is used throughout.
#: What has letters or more digits around it is something else: a UUID, a digest, an amount.
WRITTEN = re.compile(
    r"(?<![0-9A-Za-z_.-])(?:\d{14,19}(?![0-9A-Za-z_]|[.-]\d|-[A-Za-z])"
    r"|(?:\d{4}(?P<four>[ -])\d{4}(?:(?P=four)\d{4}){2}(?:(?P=four)\d{1,3})?"
    r"|\d{4}(?P<six>[ -])\d{6}(?P=six)\d{4,5}"
    r"|\d{6}(?P<bank>[ -])\d{10,13})(?!\d))"
)


def passes_luhn(number: str) -> bool:
    """Whether a number ends with the check digit that payment cards have."""
    digits = [int(digit) for digit in number if digit.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    doubled = [2 * digit - (9 if digit > 4 else 0) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def card_length(written: str) -> int:
    """How many characters of what `WRITTEN` found are a card's number: a group may belong to a date that follows; 0 if none are."""
    for end in (len(written), 19):
        digits = re.sub(r"\D", "", written[:end])
        if _issued(digits) and passes_luhn(digits):
            return min(end, len(written))
    return 0


def _issued(digits: str) -> bool:
    return any(len(digits) in lengths and begins.match(digits) for begins, lengths in _BEGINNINGS)
