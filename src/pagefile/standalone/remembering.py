"""A tool with which a model saves a fact about its user: a schema for any framework, and the function that answers its calls."""

from collections.abc import Mapping
from typing import Any, Final

from pagefile.engine import Memory
from pagefile.errors import PagefileError
from pagefile.tiers.facts_book import refuse_orders
from pagefile.window.wording import Language

REMEMBER_TOOL: Final = "remember_fact"

_TEXTS: Mapping[Language, Mapping[str, str]] = {
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


def remember_schema(language: Language = "zh") -> dict[str, Any]:
    """The JSON schema of `remember_fact`; answer its calls with `answer_remember`."""
    texts = _TEXTS[language]
    properties = {
        "text": {"type": "string", "description": texts["text"]},
        "category": {"type": "string", "description": texts["category"]},
        "attribute": {"type": "string", "description": texts["attribute"]},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1, "description": texts["confidence"]},
    }
    parameters = {"type": "object", "properties": properties, "required": ["text"]}
    return {"name": REMEMBER_TOOL, "description": texts["tool"], "parameters": parameters}


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
    texts = _TEXTS[language]
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
