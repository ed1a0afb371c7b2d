"""Prompts, each in its own file, in Chinese and English."""

from functools import cache
from importlib.resources import files


@cache
def prompt(name: str, language: str) -> str:
    """The prompt of this name in this language."""
    return files(__name__).joinpath(f"{name}.{language}.md").read_text(encoding="utf-8").strip()
