"""What must never be stored as a fact: passwords, keys, card and identity numbers, in Chinese and English."""

import re
import unicodedata

_DIGITS = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.])")
_IDENTITY = re.compile(r"(?<!\d)\d{17}[\dXx](?![\dXx])")
_IDENTITY_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_IDENTITY_CHECKS = "10X98765432"

#: Words that introduce a value.
_SURELY = r"""['"”’]?\s*(?:is|are|was|=|:|：|是|为|改成了?|设(?:置)?[为成])\s*"""
_STATES = rf"(?:{_SURELY}|\s+(?=\S*\d))"
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY")),
    (
        "an access key",
        re.compile(
            r"\b(?:sk-[\w-]{16,}|(?:ghp|gho|ghu|ghs|ghr)_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}"
            r"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30,}|hf_\w{20,}|npm_\w{20,}|pypi-[\w-]{20,}"
            r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|(?:sk|pk|rk)_(?:live|test)_\w{10,}|LTAI[0-9A-Za-z]{12,})"
        ),
    ),
    ("a password in an address", re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@]+:[^\s/@]+@")),
    (
        "a password",
        re.compile(
            rf"(?i)(?:\b(?:password|passwd|pwd|passphrase|passcode)\b|密码|口令){_SURELY}(?=\S*[\w!@#$%^&*])\S{{3,}}"
        ),
    ),
    (
        "a secret",
        re.compile(
            r"(?i)(?:\b(?:(?:api|access|secret|private|auth|encryption|signing)[ _-]?(?:key|token|secret)|bearer(?: token)?"
            rf"|client[ _-]?secret)\b|密钥|私钥|令牌|访问凭证|助记词|(?i:api\s*key)){_STATES}(?=\S*[\w])[\w+/=.~-]{{6,}}"
        ),
    ),
    (
        "a code",
        re.compile(
            rf"(?i)(?:\b(?:pin(?: code)?|cvv2?|cvc|otp|verification code)\b|验证码|校验码|安全码){_STATES}\d{{3,8}}(?!\d)"
        ),
    ),
)
#: Long, mixed and without a word in it: not something people say about themselves.
_RANDOM = re.compile(
    r"(?<![\w+/.-])(?=[\w+/-]*[a-z])(?=[\w+/-]*[A-Z])(?=[\w+/-]*\d)[A-Za-z0-9+/_-]{32,}={0,2}(?![\w/.-])"
)


def secret_in(text: str) -> str | None:
    """What in a text must not be stored, in a word or two; None if it is safe."""
    plain = unicodedata.normalize("NFKC", text)
    if any(_is_identity(match[0]) for match in _IDENTITY.finditer(plain)):
        return "an identity number"
    if any(passes_luhn(match[0]) for match in _DIGITS.finditer(plain)):
        return "a card number"
    for name, pattern in _PATTERNS:
        if pattern.search(plain):
            return name
    return "a key" if _RANDOM.search(plain) else None


def passes_luhn(number: str) -> bool:
    """Whether a number ends with the check digit that payment cards have."""
    digits = [int(digit) for digit in number if digit.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    doubled = [2 * digit - (9 if digit > 4 else 0) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_identity(number: str) -> bool:
    """A Chinese identity number: it contains a date of birth, and ends with a check character."""
    if not (
        "1900" <= number[6:10] <= "2100" and "01" <= number[10:12] <= "12" and "01" <= number[12:14] <= "31"
    ):
        return False
    total = sum(int(digit) * weight for digit, weight in zip(number, _IDENTITY_WEIGHTS, strict=False))
    return _IDENTITY_CHECKS[total % 11] == number[17].upper()
