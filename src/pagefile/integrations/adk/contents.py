"""ADK's contents as messages, and messages as contents."""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.genai import types

from pagefile.engine.arguments import result_text
from pagefile.gateway.exchanges import Json
from pagefile.gateway.sse import object_of
from pagefile.integrations.door import Shown, assistant, calls_of, image, plain, result, user

#: How ADK shows an agent what another one did: as a message of the user's, which it is not. Each further part names the other agent.
_OF_ANOTHER_AGENT, _NAMED = "For context:", "["
#: Calls with which ADK asks its client for something.
_OF_ADK = frozenset({"adk_request_confirmation", "adk_request_credential", "adk_request_input"})


@dataclass(slots=True)
class Reading:
    """Contents as messages. ADK removes the ids of calls from requests, so calls get ids by their order."""

    told: list[list[Json]] = field(default_factory=list[list[Json]])
    #: The ids of the results in each content.
    ids: list[list[str]] = field(default_factory=list[list[str]])
    _count: int = 0
    _by_id: dict[str, str] = field(default_factory=dict[str, str])
    _waiting: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @classmethod
    def of(cls, contents: Iterable[types.Content]) -> "Reading":
        reading = cls()
        for content in contents:
            reading.add(content)
        return reading

    def add(self, content: types.Content) -> None:
        parts = [part for part in content.parts or [] if not _is_adks(part)]
        results = [part.function_response for part in parts if part.function_response is not None]
        ids = [self._answered(one) for one in results]
        self.ids.append(ids)
        if content.role == "model":
            self.told.append([self._said(parts)] if parts else [])
            return
        told = [
            result(call_id, _response_text(one.response)) for call_id, one in zip(ids, results, strict=True)
        ]
        blocks = [block for part in parts if (block := _block(part)) is not None]
        if blocks:
            told.append(_asked(blocks))
        self.told.append(told)

    def _said(self, parts: Sequence[types.Part]) -> Json:
        calls = [part.function_call for part in parts if part.function_call is not None]
        text = "".join(part.text or "" for part in parts if not part.thought)
        thoughts = "".join(part.text or "" for part in parts if part.thought)
        message = assistant(text, [(self._called(call), call.name or "", call.args or {}) for call in calls])
        return {**message, "reasoning_content": thoughts} if thoughts else message

    def _called(self, call: types.FunctionCall) -> str:
        self._count += 1
        name = f"call_{self._count}"
        if call.id:
            self._by_id[call.id] = name
        self._waiting.setdefault(call.name or "", []).append(name)
        return name

    def _answered(self, response: types.FunctionResponse) -> str:
        waiting = self._waiting.get(response.name or "", [])
        name = self._by_id.get(response.id or "") or (waiting[0] if waiting else f"call_of_{response.name}")
        if name in waiting:
            waiting.remove(name)
        return name


def written(
    shown: Shown, own: Sequence[types.Content], ids: Sequence[Sequence[str]], names: dict[str, str]
) -> types.Content:
    """A content as memory shows it; the framework's own ones are never changed, only copied."""
    if shown.at is None:
        return _of_log(shown.message, names)
    content = own[shown.at]
    if shown.memory:
        return types.Content(role="user", parts=[types.Part(text=shown.memory), *(content.parts or [])])
    if not shown.results:
        return content
    left, parts = iter(ids[shown.at]), list[types.Part]()
    for part in content.parts or []:
        response = part.function_response
        text = None if response is None else shown.results.get(next(left))
        if response is None or text is None:
            parts.append(part)
        else:
            changed = response.model_copy(update={"response": {"result": text}})
            parts.append(part.model_copy(update={"function_response": changed}))
    return types.Content(role=content.role, parts=parts)


def _of_log(message: Json, names: dict[str, str]) -> types.Content:
    if message["role"] == "tool":
        call_id = str(message["tool_call_id"])
        response = types.FunctionResponse(
            name=names.get(call_id, "tool"), response={"result": plain(message)}
        )
        return types.Content(role="user", parts=[types.Part(function_response=response)])
    text = plain(message)
    parts = [types.Part(text=text)] if text else []
    for call_id, name, given in calls_of(message):
        names[call_id] = name
        parts.append(types.Part(function_call=types.FunctionCall(name=name, args=object_of(given) or {})))
    return types.Content(role="model" if message["role"] == "assistant" else "user", parts=parts)


def _asked(blocks: Sequence[str | Json]) -> Json:
    texts = [block for block in blocks if isinstance(block, str)]
    if texts[:1] and texts[0].startswith(_OF_ANOTHER_AGENT) and "".join(texts[1:2]).startswith(_NAMED):
        return {"role": "system", "content": "\n".join(texts)}
    if len(texts) == len(blocks):
        return user("\n".join(texts))
    return user([{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks])


def _block(part: types.Part) -> str | Json | None:
    if part.text:
        return part.text
    data = part.inline_data
    if data is not None and data.data is not None:
        return image(data.mime_type or "application/octet-stream", base64.b64encode(data.data).decode())
    if part.file_data is not None:
        return {"type": "image_url", "image_url": {"url": part.file_data.file_uri}}
    return None


def _is_adks(part: types.Part) -> bool:
    call = part.function_call or part.function_response
    return call is not None and call.name in _OF_ADK


def _response_text(response: dict[str, Any] | None) -> str:
    """A result as the tool returned it: ADK wraps whatever is no object."""
    given: Any = response or {}
    return result_text(given["result"] if list(given) == ["result"] else given)
