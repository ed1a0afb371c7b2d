"""What a summary must not lose: exact details that a paraphrase cannot restore."""

import re

_UNITS = (
    "毫克|微克|千克|公斤|克|毫升|升|厘米|毫米|公里|千米|米|度|万元|亿元|美元|元|块|万|亿|岁|次|片|粒|颗|小时|分钟|秒|天|周|个月|人|页|章|"
    "mg|mcg|kg|g|ml|l|cm|mm|km|m|gb|mb|kb|tb|ms|px|usd|rmb|cny|eur|hours?|minutes?|days?|weeks?|months?|years?"
)
_MONTHS = "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?"

#: Where a Latin anchor may begin and end, including next to Chinese, where `\b` sees no boundary.
_START = r"(?<![A-Za-z0-9_])"
_END = r"(?![A-Za-z0-9_])"

#: In order of precedence: the first match takes the characters.
_KINDS = (
    # URLs and email addresses
    r"(?:https?|ftp)://[^\s<>\"'，。；！？）」】]*[^\s<>\"'，。；！？）」】.,;:!?)]",
    rf"{_START}[A-Za-z0-9][\w.+-]{{0,63}}@[A-Za-z0-9][A-Za-z0-9-]{{0,62}}(?:\.[A-Za-z0-9-]{{1,63}})+",
    # paths
    r"(?<![A-Za-z0-9_./\\])(?:~|\.{1,2}|[A-Za-z]:)?[/\\][A-Za-z0-9_.-]+(?:[/\\][A-Za-z0-9_.-]+)+",
    rf"(?<![A-Za-z0-9_/-])[A-Za-z0-9_-]++(?:/[A-Za-z0-9_.-]+)+\.[A-Za-z0-9]{{1,5}}{_END}",
    # dates and times
    r"\d{4}年(?:\d{1,2}月(?:\d{1,2}[日号])?)?|\d{1,2}月\d{1,2}[日号]|\d{4}([-/.])\d{1,2}\1\d{1,2}(?!\d)",
    rf"{_START}(?:\d{{1,2}} (?:{_MONTHS})|(?:{_MONTHS}) \d{{1,2}})(?:,? \d{{4}})?{_END}",
    r"(?<![\d:])\d{1,2}[:：]\d{2}(?:[:：]\d{2})?(?: ?[ap]m)?(?!\d)|\d{1,2}点(?:\d{1,2}分|半)?",
    # money, measures, ratios such as a blood pressure
    r"[$€£¥￥] ?\d[\d,]*(?:\.\d+)?",
    rf"{_START}\d[\d,]*(?:\.\d+)? ?(?:{_UNITS})(?![A-Za-z])|(?<!\d)\d++(?:\.\d++)? ?[%％°]C?|{_START}\d+/\d+{_END}",
    # ids: letters and digits combined
    rf"{_START}(?=[A-Za-z0-9_.-]{{0,63}}\d)(?=[A-Za-z0-9_.-]{{0,63}}[A-Za-z])[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+)*",
    # titles and quoted names
    r"《[^《》\n]{1,60}》",
    r"“[^“”\n]{1,40}”|「[^「」\n]{1,40}」|\"[^\"\n]{1,40}\"",
    # capitalised Latin names: Alice Smith, Dr. Li, FastAPI, BMW
    rf"{_START}[A-Z][A-Za-z0-9]*[A-Z][A-Za-z0-9]*",
    rf"{_START}[A-Z][a-z]+(?:[ -](?:[A-Z][a-z]+|[A-Z]{_END}\.?))+|{_START}(?:Dr|Mr|Mrs|Ms|Prof)\. [A-Z][a-z]+",
    # a capitalised word inside a sentence, where the capital is not due to its position
    rf"(?<=[a-z0-9,;] )[A-Z][a-z]+{_END}|(?<=[\u4e00-\u9fff])[A-Z][a-z]+{_END}",
    # bare numbers
    rf"(?<![A-Za-z0-9_.])\d[\d,]*(?:\.\d+)?{_END}",
)
_ANCHOR = re.compile("|".join(f"(?:{kind})" for kind in _KINDS))
#: Capitalised because they begin something, not because they name something.
_NO_NAMES = frozenset(
    ["I", "The", "A", "An", "OK", "Ok", "AI", "And", "But", "It", "This", "That", "You", "We"]
)


def anchors(text: str) -> list[str]:
    """Numbers with units, dates, times, money, names, ids, paths, addresses and titles, in order, once each."""
    found: dict[str, None] = {}
    for match in _ANCHOR.finditer(text):
        anchor = match.group().rstrip(" .,")
        if anchor not in _NO_NAMES:
            found.setdefault(anchor)
    return list(found)
