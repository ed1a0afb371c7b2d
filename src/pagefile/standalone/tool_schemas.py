"""The tools to offer to a model, with all their options, in Chinese or English.

`load_tool_history_schema` beside this file is document 000's own, with only `uuid`; here a model also learns how to request
passages and how to read on.
"""

from collections.abc import Mapping
from typing import Any

from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL
from pagefile.window.wording import Language

_TEXTS: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "load": "加载之前工具调用的完整结果。只在确实需要历史详情时调用；用 query 只取相关段落，用 offset 和 limit 分页阅读。",
        "uuid": "要加载的工具结果 UUID（从占位符中获取）",
        "query": "只返回与此问题相关的段落",
        "offset": "从第几个字符开始",
        "limit": "最多返回多少个字符",
        "search": "在已存档的工具结果中搜索，返回最相关的段落及其 UUID。",
        "sought": "要查找的内容",
    },
    "en": {
        "load": (
            "Bring back the full result of an earlier tool call. Call it only when its details are needed; "
            "use query for the passages that matter, offset and limit to read on in parts."
        ),
        "uuid": "The UUID of the tool result, taken from its placeholder",
        "query": "Return only the passages that answer this question",
        "offset": "The character to begin at",
        "limit": "The most characters to return",
        "search": "Search all archived tool results; returns the best passages and their UUIDs.",
        "sought": "What to look for",
    },
}


def tool_schemas(language: Language = "zh") -> list[dict[str, Any]]:
    """The JSON schemas of `load_tool_history` and `search_tool_history`; answer calls with `chat.call_tool`."""
    texts = _TEXTS[language]
    load = {
        "uuid": {"type": "string", "description": texts["uuid"]},
        "query": {"type": "string", "description": texts["query"]},
        "offset": {"type": "integer", "minimum": 0, "description": texts["offset"]},
        "limit": {"type": "integer", "minimum": 1, "description": texts["limit"]},
    }
    search = {"query": {"type": "string", "description": texts["sought"]}}
    return [
        _schema(LOAD_TOOL, texts["load"], load, "uuid"),
        _schema(SEARCH_TOOL, texts["search"], search, "query"),
    ]


def _schema(name: str, description: str, properties: dict[str, Any], required: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": [required]}
    return {"name": name, "description": description, "parameters": parameters}
