"""Tool results as a database can hold them: callers do not control them, so what cannot be stored is replaced visibly."""

from typing import Any, cast

#: Where results are: in messages of these roles, in items and blocks of these types, under this key.
_BY_ROLE = {"tool": "content", "function": "content"}
_BY_TYPE = {"function_call_output": "output", "custom_tool_call_output": "output", "tool_result": "content"}


def results_cleaned(value: Any) -> Any:
    """The message with NUL and lone surrogates replaced in its tool results."""
    if isinstance(value, list):
        return [results_cleaned(inner) for inner in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    given = cast("dict[str, Any]", value)
    key = _BY_TYPE.get(str(given.get("type"))) or _BY_ROLE.get(str(given.get("role")))
    return {name: cleaned(inner) if name == key else results_cleaned(inner) for name, inner in given.items()}


def cleaned(value: Any) -> Any:
    """The value with NUL and lone surrogates replaced in all its texts."""
    if isinstance(value, str):
        return value.replace("\0", "␀").encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [cleaned(inner) for inner in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {cleaned(key): cleaned(inner) for key, inner in cast("dict[str, Any]", value).items()}
    return value
