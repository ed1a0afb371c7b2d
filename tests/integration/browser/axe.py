"""axe-core, the auditor of accessibility, as a package for another browser driver brings it."""

from importlib.util import find_spec
from pathlib import Path


def axe_path() -> Path | None:
    """Its script, None where it is not installed."""
    found = find_spec("axe_playwright_python")
    return None if found is None or found.origin is None else Path(found.origin).with_name("axe.min.js")
