"""The tools to offer to a model: their JSON schemas in Chinese or English, for any framework, and the answers to `remember_fact`.

`load_tool_history_schema` is document 000's own, with only `uuid`; in `tool_schemas` a model also learns how to request
passages and how to read on.
"""

from collections.abc import Mapping
from typing import Any, Final

from pagefile.engine import Memory
from pagefile.errors import PagefileError
from pagefile.tiers.fact_book import refuse_orders
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL
from pagefile.window.wording import Language

REMEMBER_TOOL: Final = "remember_fact"

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
_FACT_TEXTS: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "tool": "记住关于用户的一条长期事实（身份、偏好、健康、工作习惯、纠正）。只记用户自己说过、以后仍然有用的内容；不要记密码、密钥或卡号。",
        "text": "一句话，第三人称，例如“用户对青霉素过敏”",
        "category": "preference、identity、health、work、correction 等",
        "attribute": "它说的是什么（如 residence、name）；同一属性的新事实会取代旧事实，可省略",
        "confidence": "把握，0 到 1",
        "stored": "已记住：{text}",
        "duplicate": "之前已经记过，现在更有把握：{text}",
        "superseded": "已记住，并取代了之前的说法：{text}",
        "rejected": "没有记住：{reason}",
    },
    "en": {
        "tool": (
            "Keep a lasting fact about the user (identity, preference, health, work, a correction). Only what the user said "
            "themselves and what will still matter later; never passwords, keys or card numbers."
        ),
        "text": "One sentence in the third person, such as “The user is allergic to penicillin”",
        "category": "preference, identity, health, work, correction …",
        "attribute": "What it speaks of (residence, name); a new fact with the same attribute takes the old one's place. Optional",
        "confidence": "How sure it is, 0 to 1",
        "stored": "Kept: {text}",
        "duplicate": "Known already, and surer now: {text}",
        "superseded": "Kept, in the place of what was held before: {text}",
        "rejected": "Not kept: {reason}",
    },
}


def _schema(name: str, description: str, properties: dict[str, Any]) -> dict[str, Any]:
    """A tool whose first argument is required."""
    parameters = {"type": "object", "properties": properties, "required": [next(iter(properties))]}
    return {"name": name, "description": description, "parameters": parameters}


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
    return [_schema(LOAD_TOOL, texts["load"], load), _schema(SEARCH_TOOL, texts["search"], search)]


load_tool_history_schema = _schema(
    LOAD_TOOL,
    """加载之前工具调用的完整结果。
    
使用场景：
- 用户询问之前讨论过的细节
- 需要回顾历史检索内容
- 用户说"之前"、"刚才"、"上次说的"等

注意：只在确实需要历史详情时调用，避免不必要的加载。""",  # noqa: W293 - the document's own text, byte for byte
    {"uuid": {"type": "string", "description": _TEXTS["zh"]["uuid"]}},
)

search_tool_history_schema = tool_schemas("zh")[1]


def remember_schema(language: Language = "zh") -> dict[str, Any]:
    """The JSON schema of `remember_fact`, with which a model saves a fact about its user; see `answer_remember`."""
    texts = _FACT_TEXTS[language]
    properties: dict[str, Any] = {
        name: {"type": "string", "description": texts[name]} for name in ("text", "category", "attribute")
    }
    properties["confidence"] = {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": texts["confidence"],
    }
    return _schema(REMEMBER_TOOL, texts["tool"], properties)


async def answer_remember(
    memory: Memory,
    arguments: Mapping[str, Any],
    *,
    user_id: str,
    tenant: str | None = None,
    source: str | None = None,
    language: Language = "zh",
) -> str:
    """Answer a model's call of `remember_fact` in words; a refusal is explained, not raised."""
    texts = _FACT_TEXTS[language]
    category, attribute = _text(arguments.get("category")), _text(arguments.get("attribute"))
    text = arguments.get("text", "")
    try:
        refuse_orders(str(text))
        fact = await memory.remember(
            text,
            user_id=user_id,
            tenant=tenant,
            category=category,
            attribute=attribute,
            confidence=arguments.get("confidence", 1.0),
            source=source,
        )
    except PagefileError as error:
        return texts["rejected"].format(reason=error)
    return texts[fact.outcome or "stored"].format(text=fact.text)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
