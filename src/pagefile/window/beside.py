"""What a request holds beside its messages, in tokens: the schemas of the tools, and room for the answer."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, cast

from pagefile.errors import SettingsError

#: "tokenizer": how much less of ours fits, because the model may make more tokens of the same text.
Beside = Literal["tools", "answer", "tokenizer"]
#: What a tool is taken to cost beside its JSON. Providers render schemas in ways of their own, none of which takes more than the JSON.
TOOL_OVERHEAD = 8


def tool_texts(tools: object) -> tuple[str, ...]:
    """Each schema as compact JSON, whichever shape it has; `SettingsError` for what is not a list of objects."""
    single = isinstance(tools, (str, bytes, Mapping))
    if single or not isinstance(tools, Iterable):
        kind = type(cast("object", tools)).__name__
        raise SettingsError(f"tools must be a list of schemas, not {kind}: write tools=[schema].")
    return tuple(_text(tool) for tool in cast("Iterable[object]", tools))


def _text(tool: object) -> str:
    try:
        given = cast("object", tool) if isinstance(tool, Mapping) else _dumped(tool)
        return json.dumps(given, ensure_ascii=False, separators=(",", ":"), default=_dumped)
    except (TypeError, ValueError, RecursionError) as error:
        raise SettingsError(f"A tool is not JSON: {error}") from error


def _dumped(value: object) -> object:
    """A vendor's object as its own JSON; a class is none."""
    dump = getattr(value, "model_dump", None)
    if isinstance(value, type) or not callable(dump):
        kind = type(value).__name__
        raise SettingsError(
            f"A tool must be a schema as OpenAI, Anthropic or MCP have it, not {kind}: give the JSON object that the request "
            "holds, or the vendor's object for it."
        )
    return dump(mode="json", exclude_unset=True, by_alias=True)


def tools_tokens(texts: Iterable[str], count: Callable[[str], int]) -> int:
    """What the schemas cost: their JSON, and a little for each."""
    return sum(TOOL_OVERHEAD + count(text) for text in texts)
