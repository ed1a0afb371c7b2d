"""What a model must not store as a fact: an instruction to a model that reads it later, in Chinese and English.

What people want from their assistant ("answer in French", "以后用中文回答") is a fact about them. An instruction is
one that overrides a model's instructions, extracts them, or gives it a different identity.
"""

import re
import unicodedata

_AHEAD = r"(?: [^\s.;!?]+){0,4}?"
_RULES = r"(?:instructions?|prompts?|rules|guidelines|directives|restrictions|safeguards)"
_ZH_AHEAD = r"[^。！？!?；;\n]{0,12}?"
_ZH_RULES = r"(?:指令|指示|提示词?|规则|设定|约束|限制)"
_ZH_OWN = r"(?:系统(?:提示词?|指令|消息)|(?:初始|隐藏|内部)(?:提示词?|指令)|你的(?:提示词?|指令))"

_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "to set aside its instructions",
        re.compile(
            r"\b(?:ignore|disregard|forget|override|overrule|bypass|(?:do not|don't|stop|never|no longer) (?:follow|obey)(?:ing)?)"
            rf"{_AHEAD} (?:previous|prior|above|earlier|preceding|foregoing|existing|original|initial|system|your|all){_AHEAD} {_RULES}\b"
            rf"|\b(?:ignore|disregard|forget) (?:everything|all|anything)(?: (?:that|which|was|said|written|stated))* (?:above|before)\b"
            rf"|(?:忽略|无视|忘记(?!了)|忘掉(?!了)|抛开|绕过|覆盖|(?:不要|不用|不必|不再|别|无需)(?:再)?(?:遵守|遵循|理会))"
            rf"{_ZH_AHEAD}(?:之前|以上|上述|上面|先前|此前|前面|所有|全部|一切|系统|原有|你的){_ZH_AHEAD}(?:{_ZH_RULES}|内容)",
            re.IGNORECASE,
        ),
    ),
    (
        "to give its instructions away",
        re.compile(
            r"\b(?:reveal|print|output|show|repeat|display|leak|disclose|recite|give|send|tell)"
            rf"{_AHEAD} (?:system|hidden|initial|developer|secret) (?:prompt|instructions?|message)"
            rf"|(?:输出|打印|显示|展示|泄露|透露|说出|复述|公开|告诉){_ZH_AHEAD}{_ZH_OWN}"
            rf"|{_ZH_OWN}{_ZH_AHEAD}(?:输出|打印|显示|展示|泄露|透露|说出|复述|公开|告诉|发给)",
            re.IGNORECASE,
        ),
    ),
    (
        "to be somebody else",
        re.compile(
            r"\byou are (?:now|no longer)\b|\bfrom now on,? you are\b|你(?:现在|已经)(?:就)?是|你不再是|从现在(?:起|开始)[，, ]*你(?:就)?是",
            re.IGNORECASE,
        ),
    ),
)


def order_in(text: str) -> str | None:
    """What a text instructs a model to do; None if it is not such an instruction."""
    plain = " ".join(_unhidden(text).split())
    return next((what for what, pattern in _PATTERNS if pattern.search(plain)), None)


def _unhidden(text: str) -> str:
    """The text as a reader sees it: without invisible characters."""
    folded = unicodedata.normalize("NFKC", text).replace("’", "'")
    return "".join(char for char in folded if unicodedata.category(char) != "Cf")
