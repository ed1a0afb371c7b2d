"""Statements by name, out of the `.sql` files beside this module.

A statement begins with `-- name: …` and may hold `{fragment}`, which stands for the text of a `-- fragment: …`; a
fragment may hold those before it. Files are read once, when the first statement is asked for.
"""

import re
from functools import cache
from importlib.resources import files

_PART = re.compile(r"^-- (name|fragment): (\w+)$", re.MULTILINE)


@cache
def sql(name: str) -> str:
    """The statement of this name."""
    return statements()[name]


@cache
def statements() -> dict[str, str]:
    """Every statement of this store."""
    fragments: dict[str, str] = {}
    named: dict[str, str] = {}
    for file in sorted(files("pagefile.stores.sqlite").joinpath("sql").iterdir(), key=lambda file: file.name):
        pieces = _PART.split(file.read_text(encoding="utf-8"))[1:]
        for kind, name, text in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
            (fragments if kind == "fragment" else named)[name] = text.strip()
    return {name: _filled(text, fragments) for name, text in named.items()}


def _filled(text: str, fragments: dict[str, str]) -> str:
    for name, fragment in reversed(fragments.items()):
        text = text.replace("{" + name + "}", fragment)
    return text
