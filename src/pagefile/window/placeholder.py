"""What stands in a window for an archived page, in the very words of document 000, and how to recognise it again."""

import re
from collections.abc import Callable

from pagefile.records import Page, Step

RULE = "━" * 37
SUMMARY_SHOWN = 200
SOURCES_SHOWN = 3
#: A placeholder takes at most this many tokens.
MAX_TOKENS = 350

#: Characters shown of query, each source and summary, from generous to tight.
_FITS: tuple[tuple[int, int, int], ...] = (
    (500, 200, SUMMARY_SHOWN),
    (160, 80, 160),
    (80, 60, 100),
    (40, 40, 60),
    (20, 20, 30),
)

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_LONG = re.compile(rf"^📎 \[工具结果存档: ({_UUID})\]\n{RULE}\n")
_SHORT = re.compile(rf"^📎 \[存档:({_UUID})\]")

#: Document 000, section 4.2: tells the model when to load.
GUIDE = """## 历史工具结果管理

对话中可能包含已存档的工具结果（显示为占位符格式）。
当用户询问之前讨论过的细节时，你可以调用 `load_tool_history` 加载完整内容。

判断依据：
- 用户明确提到"之前"、"刚才说的"、"上次"
- 用户追问之前回答中的具体细节
- 占位符中的摘要不足以回答用户问题"""

LOAD_TOOL = "load_tool_history"
SEARCH_TOOL = "search_tool_history"


def placeholder(page: Page, count: Callable[[str], int] | None = None) -> str:
    """The long form: what it was, how long, what is in it, and how to bring it back; at most 350 tokens when counted."""
    for query, source, summary in _FITS:
        text = _long(page, query, source, summary)
        if count is None or count(text) <= MAX_TOKENS:
            return text
    return short_placeholder(page)


def short_placeholder(page: Page) -> str:
    """The one-line form for tight budgets; it keeps the call that brings the page back."""
    about = " ".join(page.result_summary.split())[:40]
    return (
        f'📎 [存档:{page.uuid}] 已检索{page.length}字，摘要：{about}… load_tool_history(uuid="{page.uuid}")'
    )


def _long(page: Page, query_shown: int, source_shown: int, summary_shown: int) -> str:
    sources = [f"- {source[:source_shown]}" for source in page.sources[:SOURCES_SHOWN]]
    lines = [
        f"📎 [工具结果存档: {page.uuid}]",
        RULE,
        f"工具: {page.tool}",
        f"查询: {page.query_summary[:query_shown]}",
        f"时间: {page.created.isoformat(timespec='seconds')}",
        f"原始长度: {page.length}字",
        RULE,
        "内容摘要:",
        page.result_summary[:summary_shown],
        "",
        "主要来源:",
        *(sources or ["无"]),
        RULE,
        f'如需查看完整内容，请调用 load_tool_history(uuid="{page.uuid}")',
    ]
    return "\n".join(lines)


def step_note(step: Step) -> str:
    """The one-line form made from what a turn knows of its page."""
    chars = step.page_chars or len(step.result)
    return f'📎 [存档:{step.page}] {step.tool}: {chars}字 load_tool_history(uuid="{step.page}")'


def gist(text: str) -> str:
    """What a placeholder says of its page: tool, query and summary, without the words that all placeholders share."""
    if _LONG.match(text) is None:
        return text
    head, _, rest = text.partition("内容摘要:\n")
    told = [line.partition(": ")[2] for line in head.splitlines() if line.startswith(("工具: ", "查询: "))]
    return " ".join([*told, rest.partition("\n\n主要来源:")[0]])


def placeholder_uuid(text: str) -> str | None:
    """The uuid of a text that is a placeholder; None for any other text, such as one that merely quotes one."""
    found = _LONG.match(text) or _SHORT.match(text)
    return found.group(1) if found else None
