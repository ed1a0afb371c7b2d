"""The wording of prompts, in Chinese and in English.

Chinese is the default because its placeholders and prompts are part of a contract; `language = "en"` in the
settings is for agents that speak English throughout.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Language = Literal["zh", "en"]


@dataclass(frozen=True, slots=True)
class Wording:
    """One language."""

    archived: str
    tool: str
    query: str
    time: str
    length: str
    summary: str
    sources: str
    no_sources: str
    call: str
    note: str
    short: str
    loaded: str
    so_far: str
    anchors: str
    pages: str
    safety: Mapping[str, str]
    guide: str
    #: The workspace.
    toc_title: str
    toc_known: str
    toc_again: str
    toc_more: str
    toc_page: str
    chapters: str
    notes_title: str
    notes_page: str
    cached: str
    ages: tuple[str, str, str, str]


ZH = Wording(
    archived="📎 [工具结果存档: {uuid}]",
    tool="工具: ",
    query="查询: ",
    time="时间: ",
    length="原始长度: {chars}字",
    summary="内容摘要:",
    sources="主要来源:",
    no_sources="无",
    call='如需查看完整内容，请调用 load_tool_history(uuid="{uuid}")',
    note='📎 [存档:{uuid}] {tool}: {chars}字 load_tool_history(uuid="{uuid}")',
    short='📎 [存档:{uuid}] 已检索{chars}字，摘要：{about}… load_tool_history(uuid="{uuid}")',
    loaded='📎 [存档:{uuid}] 已加载{chars}字 load_tool_history(uuid="{uuid}")',
    so_far="历史摘要: ",
    anchors="关键信息: ",
    pages="存档: ",
    safety={"allergies": "过敏史", "history": "慢病史", "surgery_history": "手术史"},
    # Part of a contract: do not change a byte.
    guide="""## 历史工具结果管理

对话中可能包含已存档的工具结果（显示为占位符格式）。
当用户询问之前讨论过的细节时，你可以调用 `load_tool_history` 加载完整内容。

判断依据：
- 用户明确提到"之前"、"刚才说的"、"上次"
- 用户追问之前回答中的具体细节
- 占位符中的摘要不足以回答用户问题""",
    # Part of a contract up to `toc_again`, and `notes_title`: do not change a byte.
    toc_title="# 已缓存目录",
    toc_known="以下规程目录已获取: {names}",
    toc_again="无需再次调用 get_toc()",
    toc_more="- …（另有 {count} 项）",
    toc_page='完整目录 {name}: load_tool_history(uuid="{uuid}")',
    chapters="已知章节: {titles}",
    notes_title="# 已获取的相关信息",
    notes_page='📎 全文: load_tool_history(uuid="{uuid}")',
    cached="[缓存] {tool} 的结果于{age}获取，内容如下，无需再次调用。",
    ages=("刚刚", " {n} 分钟前", " {n} 小时前", " {n} 天前"),
)

EN = Wording(
    archived="📎 [archived tool result: {uuid}]",
    tool="Tool: ",
    query="Query: ",
    time="Time: ",
    length="Length: {chars} characters",
    summary="Synopsis:",
    sources="Sources:",
    no_sources="none",
    call='To read all of it, call load_tool_history(uuid="{uuid}")',
    note='📎 [archived:{uuid}] {tool}: {chars} characters load_tool_history(uuid="{uuid}")',
    short='📎 [archived:{uuid}] {chars} characters: {about}… load_tool_history(uuid="{uuid}")',
    loaded='📎 [archived:{uuid}] {chars} characters loaded load_tool_history(uuid="{uuid}")',
    so_far="Summary so far: ",
    anchors="Key details: ",
    pages="Archived: ",
    safety={"allergies": "Allergies", "history": "Chronic conditions", "surgery_history": "Surgery"},
    guide="""## Archived tool results

The conversation may hold tool results that were archived; a placeholder stands in their place.
When the user asks for details of something discussed before, call `load_tool_history` to bring the full text back.

Load when:
- the user speaks of "before", "earlier", "just now" or "last time"
- the user asks for a detail of an earlier answer
- the synopsis in the placeholder is not enough to answer""",
    toc_title="# Tables of contents at hand",
    toc_known="Fetched already: {names}",
    toc_again="There is no need to call get_toc() again",
    toc_more="- … ({count} more)",
    toc_page='All of {name}: load_tool_history(uuid="{uuid}")',
    chapters="Known chapters: {titles}",
    notes_title="# What was found so far",
    notes_page='📎 In full: load_tool_history(uuid="{uuid}")',
    cached="[cached] The result of {tool} was fetched {age}; it follows, there is no need to call again.",
    ages=("just now", "{n} min ago", "{n} h ago", "{n} d ago"),
)

WORDINGS: Mapping[Language, Wording] = {"zh": ZH, "en": EN}
