"""The messages in the attributes of a span, by each convention, as those of Chat Completions.

OpenTelemetry's own (`gen_ai.input.messages`, as an attribute or in an event), OpenLLMetry's (`gen_ai.prompt.0.role` …) and OpenInference's
(`llm.input_messages.0.message.role` …). Instructions are the application's, and are not part of a conversation.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pagefile.gateway.exchanges import Json
from pagefile.shapes.skeleton import as_object, objects_in

_TOLD, _SAID = "gen_ai.input.messages", "gen_ai.output.messages"
_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "tool": "tool",
}
#: Of the flat conventions: the prefixes of what was told and said, and of a message's fields.
_FLAT = (
    ("gen_ai.prompt", "gen_ai.completion", ""),
    ("llm.input_messages", "llm.output_messages", "message."),
)


def messages_of(
    attributes: Mapping[str, Any], events: Sequence[Mapping[str, Any]]
) -> tuple[list[Json], list[Json]]:
    """What the model was told, and what it answered; of several answers the first."""
    for one in (attributes, *events):
        if _TOLD in one or _SAID in one:
            told = [made for message in _listed(one.get(_TOLD)) for made in _of_parts(message)]
            return told, [made for message in _listed(one.get(_SAID))[:1] for made in _of_parts(message)]
    for told, said, inside in _FLAT:
        if any(name.startswith((told, said)) for name in attributes):
            return _flat(attributes, told, inside), _flat(attributes, said, inside)[:1]
    return [], []


def _listed(value: Any) -> list[Json]:
    """The messages of an attribute, which may be structured or the JSON text of it."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    return objects_in(value)


# -- OpenTelemetry's own ------------------------------------------------------------------------------------------------


def _of_parts(message: Json) -> list[Json]:
    role = _ROLES.get(str(message.get("role")))
    parts = objects_in(message.get("parts")) or objects_in(message.get("content"))
    if not parts and isinstance(message.get("content"), str):
        parts = [{"type": "text", "content": message["content"]}]
    if role is None:
        return []
    results = [_result(part) for part in parts if part.get("type") == "tool_call_response"]
    blocks = [block for part in parts if (block := _block(part)) is not None]
    calls = [
        _call(part.get("id"), part.get("name"), part.get("arguments"))
        for part in parts
        if part.get("type") == "tool_call"
    ]
    thoughts = "\n".join(_text(part) for part in parts if part.get("type") in {"reasoning", "thinking"})
    if role == "tool" or not (blocks or calls or thoughts):
        return results
    return [*results, _message(role, blocks, calls, thoughts)]


def _text(part: Json) -> str:
    said = part.get("content", part.get("text"))
    return said if isinstance(said, str) else ""


def _block(part: Json) -> Json | None:
    """A part that is shown: a text, or a picture."""
    kind, media = part.get("type"), str(part.get("mime_type") or part.get("media_type") or "")
    if kind == "text" and _text(part):
        return {"type": "text", "text": _text(part)}
    if kind == "uri" and (part.get("modality") == "image" or media.startswith("image/")):
        return {"type": "image_url", "image_url": {"url": str(part.get("uri"))}}
    if kind == "blob" and media.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{media};base64,{_text(part)}"}}
    if kind in {"uri", "blob", "file"}:
        return {"type": "text", "text": f"[{part.get('modality') or media or kind}]"}
    return None


def _result(part: Json) -> Json:
    found = next((part[name] for name in ("response", "result", "content") if name in part), "")
    return {"role": "tool", "tool_call_id": str(part.get("id") or ""), "content": _plain(found)}


# -- flat attributes ----------------------------------------------------------------------------------------------------


def _flat(attributes: Mapping[str, Any], prefix: str, inside: str) -> list[Json]:
    made: list[Json] = []
    for fields in _numbered(attributes, prefix):
        mine = {name.removeprefix(inside): value for name, value in fields.items()}
        role = _ROLES.get(str(mine.get("role") or ("assistant" if prefix.endswith("completion") else "user")))
        if role == "tool":
            made.append(
                {
                    "role": "tool",
                    "tool_call_id": str(mine.get("tool_call_id") or ""),
                    "content": _plain(mine.get("content")),
                }
            )
        elif role is not None:
            calls = [_flat_call(call) for call in _numbered(mine, "tool_calls")]
            if (blocks := _flat_blocks(mine)) or calls:
                made.append(_message(role, blocks, calls, ""))
    return made


def _flat_blocks(fields: Mapping[str, Any]) -> list[Json]:
    found = fields.get("content")
    texts = [found] if isinstance(found, str) else []
    if isinstance(found, str) and found.startswith("["):
        # OpenLLMetry writes blocks as JSON.
        texts = [str(block.get("text") or f"[{block.get('type')}]") for block in _listed(found)] or texts
    texts += [
        str(part["message_content.text"])
        for part in _numbered(fields, "contents")
        if "message_content.text" in part
    ]
    return [{"type": "text", "text": text} for text in texts if text]


def _flat_call(fields: Mapping[str, Any]) -> Json:
    mine = {
        name.removeprefix("tool_call.").removeprefix("function."): value for name, value in fields.items()
    }
    return _call(mine.get("id"), mine.get("name"), mine.get("arguments"))


def _numbered(fields: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """`prefix.0.name`, `prefix.1.name` … as a list of fields."""
    found: dict[int, dict[str, Any]] = {}
    for name, value in fields.items():
        number, _, rest = name.removeprefix(f"{prefix}.").partition(".")
        if name.startswith(f"{prefix}.") and number.isdecimal() and len(number) < 6 and rest:
            found.setdefault(int(number), {})[rest] = value
    return [found[number] for number in sorted(found)]


# -- both -----------------------------------------------------------------------------------------------------------------


def _message(role: str, blocks: Sequence[Json], calls: Iterable[Json], thoughts: str) -> Json:
    alone = len(blocks) == 1 and blocks[0]["type"] == "text"
    content: Any = blocks[0]["text"] if alone else list(blocks) or ""
    made: Json = {"role": role, "content": content}
    if thoughts and role == "assistant":
        made["reasoning_content"] = thoughts
    if (listed := list(calls)) and role == "assistant":
        made["tool_calls"] = listed
    return made


def _call(call_id: object, name: object, arguments: object) -> Json:
    given = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return {
        "id": str(call_id or ""),
        "type": "function",
        "function": {"name": str(name or "tool"), "arguments": given},
    }


def _plain(value: object) -> str:
    if isinstance(value, str):
        return value
    said = as_object(value)
    if said is not None and isinstance(said.get("text"), str) and said.keys() <= {"type", "text"}:
        return said["text"]
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)
