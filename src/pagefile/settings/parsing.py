"""Parses text as the value of a setting: from the environment, a form, or the command line."""

from typing import Annotated, Any, get_args, get_origin

from pagefile.settings.model import known_settings

_BOOLEANS = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}


def parsed_as(kind: Any, text: object) -> object:
    """The value of a string from the environment; unchanged if it cannot be parsed, for `problem` to report."""
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    text = str(text).strip()
    if kind is bool:
        return _BOOLEANS.get(text.lower(), text)
    if kind in {int, float}:
        try:
            return kind(text)
        except ValueError:
            return text
    return text


def parsed(name: str, text: str) -> object:
    """The value of a text for the setting of this name."""
    return parsed_as(known_settings()[name], text)
