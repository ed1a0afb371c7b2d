"""What a text means as the value of a setting: from the environment, a form, or the command line."""

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
    """What a string in the environment means; as it is when it means nothing, for `problem` to complain about."""
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
    """What a text means as the value of the setting of this name."""
    return parsed_as(known_settings()[name], text)
