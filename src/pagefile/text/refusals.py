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
      | (?:this|the|your)\ (?:request|content|conversation|prompt|input)\ [^.!?\n]{0,30}?\b(?:violat\w+|against|not\ allowed|inappropriate|blocked|flagged)
      | (?:there(?:['’]s|\ is|\ was)\ )?no\ (?:conversation|content|text|dialogue|transcript)\b
      | (?:please|could\ you|can\ you|kindly)\b [^.!?\n]{0,12}? \b(?:provide|share|paste|send)\b [^.!?\n]{0,12}? \b(?:conversation|text|transcript|content|messages)
      | (?:internal\ )?(?:server\ )?error\ ?:
      | (?:hello|hi|sure|certainly|of\ course)\b [^\w\n]{1,3} (?:how|what)\ can\ i\ (?:help|assist|do)
      | (?:该|此|这段|这个|您的)(?:内容|请求|对话|问题|话题)[^。！？\n]{0,12}?(?:违反|违规|不符合|敏感)
      | 请(?:您)?(?:先)?(?:提供|发送|粘贴|分享)[^。！？\n]{0,12}?(?:对话|内容|文本|记录)
      | [您你](?:还)?(?:没有|尚未|并未|未)(?:提供|发送|给出)
      | (?:抱歉|对不起|不好意思)[^。！？\n]{0,12}?帮不[了上]
      | (?:由于|因为|根据|基于)[^。！？\n]{0,10}?(?:政策|规定|安全|内容)(?:限制|原因|要求)?[^。！？\n]{0,4}?我[^。！？\n]{0,4}?(?:无法|不能|不便|不会)
      | 我很乐意(?:帮|为)
      | [您你]好[，,！!\ ]*我是[^。！？\n]{0,12}?(?:助手|AI|模型)
    )"""
)


#: Something was said if it has about this many different words.
_TELLING = 5


@cache
def _genre() -> frozenset[str]:
    """Words that mark a text as a summary. Cached here instead of at import, which would load the dictionary."""
    return frozenset(terms("user assistant conversation summary 用户 助手 对话 摘要"))


def _size(words: Iterable[str]) -> float:
    """About how many words these are; a Chinese one is also there in its parts and pairs."""
    return sum(1 if word.isascii() else 1 / 3 for word in words)


def is_refusal(text: str) -> bool:
    return _REFUSAL.match(text) is not None


def rejection(answer: str, given: Iterable[str], asked: Language) -> str | None:
    """Why an answer cannot be the summary of what was `given`; None if it can. `asked` is the language it should have."""
    if is_refusal(answer):
        return f"the answer is a refusal: {answer.strip()[:80]!r}"
    given = list(given)
    words, said = frozenset(terms(answer)), frozenset(word for text in given for word in terms(text))
    about = words - _genre()
    # "The user greeted the assistant" shares no word with a greeting.
    brief = _size(about) < _TELLING or _size(said) < _TELLING
    if not about.isdisjoint(said) or (about != words and brief):
        return None
    if language(answer) == asked != language("\n".join(given)[:4000]):
        # A translation need not share a word with what it translates.
        return None
    return f"the answer has nothing in common with the conversation: {answer.strip()[:80]!r}"
