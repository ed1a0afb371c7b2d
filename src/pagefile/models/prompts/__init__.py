"""Prompts, each in its own file, in Chinese and English. docs/benchmarks/model.md has their versions and what was measured with each."""

from functools import cache
from importlib.resources import files

from pagefile.records import JsonValue


@cache
def prompt(name: str, language: str) -> str:
    return files(__name__).joinpath(f"{name}.{language}.md").read_text(encoding="utf-8").strip()


def asking(name: str, language: str, text: str, **values: object) -> list[dict[str, JsonValue]]:
    """The messages that put a text to a model under a prompt, whose `{names}` are replaced by the values."""
    system = prompt(name, language)
    for key, value in values.items():
        system = system.replace(f"{{{key}}}", str(value))
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]
