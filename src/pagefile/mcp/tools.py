"""The tools of the MCP server: rows of the table of verbs, with the arguments and the part of the answer that a model needs.

Types and limits come from the verb's request and answer, the words from `standalone/tools.toml`. Whose memory it is never is an
argument: the server, or the caller's key, says so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from mcp_types import Tool, ToolAnnotations

from pagefile import verbs
from pagefile.errors import InvalidArgumentError
from pagefile.standalone.tools import CORRECT_TOOL, RECALL_TOOL, RETRACT_TOOL, SAVE_TOOL, tool_schema
from pagefile.verbs import Verb
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL
from pagefile.window.wording import Language

FACTS_TOOL, RECORD_TOOL, CONTEXT_TOOL = "facts", "record", "context"
#: The characters of a page that are loaded at a time, unless the model says otherwise: clients cut longer results off.
LOADED_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A verb as a tool."""

    verb: Verb[..., Any]
    #: What clients show to people.
    title: str
    #: By the name that the model uses, the field of the request.
    arguments: Mapping[str, str]
    #: By the name in the answer, where its value is in the verb's answer, or in each item of it.
    shown: Mapping[str, str]
    #: Fields of the request that differ from the verb's defaults.
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    #: Whether it takes something away, as far as a client should ask its user first.
    destructive: bool = False

    def request(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the request. Others of its fields are not for the model to choose: whose memory it is, above all."""
        if unknown := [name for name in arguments if name not in self.arguments]:
            known = ", ".join(self.arguments)
            raise InvalidArgumentError(f"unknown argument {unknown[0]!r}: the arguments are {known}")
        given = {self.arguments[name]: value for name, value in arguments.items() if value is not None}
        return {**self.defaults, **given}

    def structured(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The part of an answer that a client gets as JSON."""
        if "items" not in answer:
            return _picked(answer, self.shown)
        return {"items": [_picked(item, self.shown) for item in answer["items"]], "next": answer["next"]}


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_FACT = _same("id", "text", "category", "confidence", "valid_from", "valid_to", "retracted")
_HIT = _same("id", "conversation_id", "at", "text", "score")
_PAGE_HIT = {"uuid": "page.uuid", "tool": "page.tool", "created": "page.created"} | _same(
    "passage", "start", "score"
)

#: In the order in which they are listed: what a model needs most often comes first.
ROWS: Mapping[str, ToolRow] = {
    RECALL_TOOL: ToolRow(
        verbs.RECALL,
        "Recall past conversations",
        _same("query"),
        _HIT,
        defaults={"limit": 5},
    ),
    SAVE_TOOL: ToolRow(
        verbs.REMEMBER, "Remember a fact", _same("text", "category"), {**_FACT, "outcome": "outcome"}
    ),
    FACTS_TOOL: ToolRow(verbs.FACTS, "List the facts", _same("history", "after", "limit"), _FACT),
    CORRECT_TOOL: ToolRow(
        verbs.CORRECT, "Correct a fact", {"fact": "fact_id", "text": "text"}, _FACT, destructive=True
    ),
    RETRACT_TOOL: ToolRow(verbs.RETRACT, "Retract a fact", {"fact": "fact_id"}, _FACT, destructive=True),
    SEARCH_TOOL: ToolRow(
        verbs.SEARCH,
        "Search archived tool results",
        _same("query", "limit"),
        _PAGE_HIT,
    ),
    LOAD_TOOL: ToolRow(
        verbs.LOAD,
        "Load an archived tool result",
        _same("uuid", "query", "offset", "limit"),
        _same("uuid", "text", "offset", "length", "next"),
        defaults={"limit": LOADED_CHARS},
    ),
    RECORD_TOOL: ToolRow(
        verbs.RECORD,
        "Record an exchange",
        _same("user", "assistant", "conversation_id", "id"),
        _same("id", "conversation_id", "seq", "at"),
    ),
    CONTEXT_TOOL: ToolRow(
        verbs.CONTEXT,
        "Context for a question",
        _same("query", "conversation_id", "window_tokens"),
        _same("text", "tokens", "mode"),
        defaults={"format": "text"},
    ),
}


@cache
def listed(language: Language) -> tuple[Tool, ...]:
    """The tools as a client lists them."""
    return tuple(_tool(name, row, language) for name, row in ROWS.items())


def _tool(name: str, row: ToolRow, language: Language) -> Tool:
    words = tool_schema(name, language)
    return Tool(
        name=name,
        title=row.title,
        description=words["description"],
        input_schema=_input_schema(row, words["parameters"]),
        output_schema=_output_schema(row),
        annotations=ToolAnnotations(
            title=row.title,
            read_only_hint=not row.verb.changes,
            destructive_hint=row.destructive,
            idempotent_hint=not row.verb.changes,
            open_world_hint=False,
        ),
    )


def _input_schema(row: ToolRow, words: Mapping[str, Any]) -> dict[str, Any]:
    """The verb's own types and limits, with the words for models."""
    schema = row.verb.request.model_json_schema()
    properties: dict[str, Any] = {}
    for name, about in words["properties"].items():
        wire = row.arguments[name]
        # Under a name of its own it may be more than the field takes: a fact by its words.
        limits = _plain(schema["properties"][wire]) if wire == name else {"type": "string"}
        properties[name] = {**limits, "description": about["description"]}
        if wire in row.defaults:
            properties[name]["default"] = row.defaults[wire]
    required = list(words["required"])
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _output_schema(row: ToolRow) -> dict[str, Any]:
    schema = row.verb.answer.model_json_schema(mode="serialization")
    kinds = schema.get("$defs", {})
    whole = schema["properties"]
    if "items" not in whole:
        return _object(whole, row.shown, kinds)
    item = kinds[whole["items"]["items"]["$ref"].rpartition("/")[2]]
    following = {**_plain(whole["next"]), "type": ["string", "null"]}
    properties = {
        "items": {"type": "array", "items": _object(item["properties"], row.shown, kinds)},
        "next": following,
    }
    return {"type": "object", "properties": properties, "required": ["items", "next"]}


def _object(
    properties: Mapping[str, Any], shown: Mapping[str, str], kinds: Mapping[str, Any]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, place in shown.items():
        *outer, last = place.split(".")
        inside = properties
        for step in outer:
            inside = kinds[inside[step]["$ref"].rpartition("/")[2]]["properties"]
        found[name] = _plain(inside[last], optional=True)
    return {"type": "object", "properties": found, "required": list(found)}


#: What is kept of a field's schema: some clients understand no more, and models need no more.
_KEPT = ("type", "enum", "description", "minimum", "maximum", "minLength", "maxLength", "format", "items")


def _plain(schema: Mapping[str, Any], *, optional: bool = False) -> dict[str, Any]:
    """A field's schema without titles and examples; "or null" is a list of types, and left out of arguments."""
    choices = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    only: Mapping[str, Any] = choices[0] if len(choices) == 1 else {}
    plain: dict[str, Any] = {name: value for name, value in {**only, **schema}.items() if name in _KEPT}
    if optional and only and "type" in plain:
        plain["type"] = [plain["type"], "null"]
        plain |= {"enum": [*plain["enum"], None]} if "enum" in plain else {}
    return plain


def _picked(answer: Mapping[str, Any], shown: Mapping[str, str]) -> dict[str, Any]:
    return {name: _at(answer, place.split(".")) for name, place in shown.items()}


def _at(answer: Any, place: Iterable[str]) -> Any:
    for name in place:
        answer = answer[name]
    return answer
