"""The words that stand in a prompt: the design documents' own Chinese, and the same in English.

Chinese is the default because placeholders and prompts are part of the documents' contract; `language = "en"` in the
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
    # Document 000, section 4.2, byte for byte.
    guide="""## 历史工具结果管理

对话中可能包含已存档的工具结果（显示为占位符格式）。
当用户询问之前讨论过的细节时，你可以调用 `load_tool_history` 加载完整内容。

判断依据：
- 用户明确提到"之前"、"刚才说的"、"上次"
- 用户追问之前回答中的具体细节
- 占位符中的摘要不足以回答用户问题""",
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
)

WORDINGS: Mapping[Language, Wording] = {"zh": ZH, "en": EN}
