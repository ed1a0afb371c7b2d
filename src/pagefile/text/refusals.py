"""Whether a model's answer is a summary at all: a refusal, or words about something else, must not replace what was said."""

import re
from collections.abc import Iterable
from functools import cache

from pagefile.text.sentences import Language, language
from pagefile.text.words import terms

#: A model speaks of itself and says that it will not; only at the beginning, where a summary says something else.
_REFUSAL = re.compile(
    r"""(?ix) \A \W*
    (?:
        (?:(?:i['’]?m|i\ am|we['’]?re|my)\ (?:\w+\ )?(?:sorry|apologies)|sorry|apologies|i\ apologi[sz]e|unfortunately)
        \b [^.!?\n]{0,80}? \b (?:can(?:['’]?t|not|\ not)|unable|not\ able|won['’]?t|will\ not|not\ allowed|decline)
        \b [^.!?\n]{0,30}? \b (?:assist|help|compl\w+|provid\w+|fulfil\w*|summari[sz]\w+|answer|process|do\ (?:that|this)|request\w*)
      | (?:i|we)(?:['’]?m|['’]?re|\ am|\ are)?\ (?:can(?:['’]?t|not|\ not)|unable|not\ able|won['’]?t|must\ decline|will\ not|not\ comfortable)
        \b [^.!?\n]{0,30}? \b (?:assist|help|comply|provide|fulfil\w*|summari[sz]e|answer|process|do\ (?:that|this)|request\w*)
      | as\ an?\ (?:ai|artificial|large\ language|language\ model)
      | (?:很|非常|十分|真的)?(?:抱歉|对不起|不好意思|遗憾)[^。！？\n]{0,40}?(?:无法|不能|没办法|不便|不可以|拒绝|不会)
        [^。！？\n]{0,12}?(?:协助|帮|提供|完成|回答|满足|处理|总结|概括|生成|请求|继续|讨论)
      | 我(?:们)?(?:无法|不能|没办法|不便|拒绝)[^。！？\n]{0,12}?(?:协助|帮|提供|完成|回答|满足|处理|总结|概括|生成|请求|讨论)
      | 作为(?:一个|一名|一款)?\ ?(?:AI|人工智能|大?语言模型)
    )"""
)


@cache
def _genre() -> frozenset[str]:
    """Words that mark a text as a summary. Cached here instead of at import, which would load the dictionary."""
    return frozenset(terms("user assistant conversation summary 用户 助手 对话 摘要"))


def is_refusal(text: str) -> bool:
    return _REFUSAL.match(text) is not None


def rejection(answer: str, given: Iterable[str], asked: Language) -> str | None:
    """Why an answer cannot be the summary of what was `given`; None if it can. `asked` is the language it should have."""
    if is_refusal(answer):
        return f"the answer is a refusal: {answer.strip()[:80]!r}"
    given = list(given)
    words = frozenset(terms(answer))
    if not words.isdisjoint(_genre()) or any(not words.isdisjoint(terms(text)) for text in given):
        return None
    if language(answer) == asked != language("\n".join(given)[:4000]):
        # A translation need not share a word with what it translates.
        return None
    return f"the answer has nothing in common with the conversation: {answer.strip()[:80]!r}"
