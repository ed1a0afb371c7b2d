"""The placeholder that stands in a window for an archived page, in the very words of document 000."""

from pagefile.records import Page

RULE = "━" * 37
SUMMARY_SHOWN = 200
SOURCES_SHOWN = 3


def placeholder(page: Page) -> str:
    """The long form: what it was, how long, what is in it, and how to bring it back."""
    lines = [
        f"📎 [工具结果存档: {page.uuid}]",
        RULE,
        f"工具: {page.tool}",
        f"查询: {page.query_summary}",
        f"时间: {page.created.isoformat(timespec='seconds')}",
        f"原始长度: {page.length}字",
        RULE,
        "内容摘要:",
        page.result_summary[:SUMMARY_SHOWN],
        "",
        "主要来源:",
        *([f"- {source}" for source in page.sources[:SOURCES_SHOWN]] or ["无"]),
        RULE,
        f'如需查看完整内容，请调用 load_tool_history(uuid="{page.uuid}")',
    ]
    return "\n".join(lines)
