"""Words, patterns and wordings that are data: TOML files beside the code, each read once."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def table(package: str, name: str) -> Mapping[str, Any]:
    return tomllib.loads(files(package).joinpath(f"{name}.toml").read_text("utf-8"))


def filled(pattern: str, parts: Mapping[str, str]) -> str:
    """A pattern with its named parts: `<<value>>` becomes the part of that name."""
    return re.sub(r"<<(\w+)>>", lambda part: filled(parts[part[1]], parts), pattern)
