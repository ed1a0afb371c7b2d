"""The demo's texts, from data files beside the code."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any


def read(name: str) -> Mapping[str, Any]:
    """A data file."""
    return tomllib.loads(
        files("pagefile.inspector.demo").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    )
