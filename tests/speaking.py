"""The same conversation in Chinese and in English: what was said, fetched, remembered and recalled."""

import re
from dataclasses import dataclass

from pagefile.window.wording import Language

#: Chinese characters, and the punctuation that goes with them.
CHINESE = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")
_ENGLISH = re.compile("[A-Za-z]{2,}")
#: Not words of a language: tools, tags, keys of JSON and calls, ids, and what is called so in Chinese too.
_NAMES = re.compile(
    r"</?[a-z]+>|[a-z]+(?:_[a-z]+)+|\bturn:|\b(?:recall|remember|uuid|UUID|query|offset|limit|text|category|JSON|AI|UTC)\b"
    r"|\b[0-9a-f]{8}(?:(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?\b|\bpreference|profile|correction\b"
)


@dataclass(frozen=True)
class Talk:
    """What a person and their agent say, and what the tools return, in one language."""

    language: Language
    instructions: str
    first: str
    reply: str
    query: str
    sentence: str
    chapter: str
    fact: str
    allergy: str
    earlier: tuple[str, str]
    asking: str
    other: str

    @property
    def other_language(self) -> Language:
        return "zh" if self.language == "en" else "en"

    def document(self, chars: int, *mark: str) -> str:
        lines = [self.sentence.format(number=number) for number in range(1 + chars // 20)]
        return "\n\n".join([*mark, *lines])[:chars]

    def foreign(self, text: str) -> list[str]:
        """The words of the other language."""
        if self.language == "en":
            return CHINESE.findall(text)
        return _ENGLISH.findall(_NAMES.sub(" ", text))


ZH = Talk(
    language="zh",
    instructions="你是一位耐心的助手。",
    first="帮我查一下阀门的检修步骤",
    reply="好的，阀门每 30 天检修一次，编号 8-15。",
    query="阀门检修",
    sentence="第 {number} 步：打开阀门，等待 {number} 分钟，再记录压力。",
    chapter="第一章 总则",
    fact="用户喜欢简短的回答",
    allergy="青霉素",
    earlier=("上次说的压力表放在哪里？", "压力表放在二号柜。"),
    asking="压力表和阀门的检修步骤再说一遍",
    other="你好，请继续往下说",
)
EN = Talk(
    language="en",
    instructions="You are a patient assistant.",
    first="Please look up the steps for checking the valve",
    reply="The valve is checked every 30 days, number 8-15.",
    query="valve inspection",
    sentence="Step {number}: open the valve, wait {number} minutes, then note the pressure.",
    chapter="Chapter one, general rules",
    fact="The user likes short answers",
    allergy="penicillin",
    earlier=("Where did we put the pressure gauge?", "The pressure gauge is in cabinet two."),
    asking="Tell me again about the pressure gauge and the steps for the valve",
    other="Go on with the next part, please",
)
