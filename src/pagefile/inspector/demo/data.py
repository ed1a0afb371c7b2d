"""The texts of the demo, as they lie beside the code."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any


def read(name: str) -> Mapping[str, Any]:
    """A file of texts."""
    return tomllib.loads(
        files("pagefile.inspector.demo").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    )
