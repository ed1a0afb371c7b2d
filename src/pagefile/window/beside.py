"""What a request contains besides its messages, in tokens: the schemas of the tools, and room for the answer."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, cast

from pagefile.errors import SettingsError

#: "tokenizer": the share kept free because the model may make more tokens of the same text than our
#: tokenizer.
Beside = Literal["tools", "answer", "tokenizer"]
#: Estimated cost of a tool besides its JSON. Providers render schemas in their own ways, none of which takes
#: more than the JSON.
TOOL_OVERHEAD = 8


def tool_texts(tools: object) -> tuple[str, ...]:
    """Each schema as compact JSON, whatever its shape; raises `SettingsError` for anything but a list of objects."""
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
    """A vendor's object as its own JSON; a class is refused."""
    dump = getattr(value, "model_dump", None)
    if isinstance(value, type) or not callable(dump):
        kind = type(value).__name__
        raise SettingsError(
            f"A tool must be a schema as OpenAI, Anthropic or MCP have it, not {kind}: give the JSON object that the request "
            "holds, or the vendor's object for it."
        )
    return dump(mode="json", exclude_unset=True, by_alias=True)


def tools_tokens(texts: Iterable[str], count: Callable[[str], int]) -> int:
    """Tokens of the schemas: their JSON, plus an overhead for each."""
    return sum(TOOL_OVERHEAD + count(text) for text in texts)
