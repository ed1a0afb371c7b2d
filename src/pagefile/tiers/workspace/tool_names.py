"""What a tool does, told by the words of its name and the shape of its arguments.

An agent's tools are not known beforehand. A tool is taken to read only where its name says so and nothing
about the call says otherwise; whatever may have a side effect is never answered from an earlier result.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pagefile.text.tables import table
from pagefile.tiers.workspace.results import Plain

WORDS: Mapping[str, Sequence[str]] = table("pagefile.tiers.workspace", "tool_words")

#: What a tool does: a kind of read, a change to what it names, an arbitrary change, or none of these.
Effect = Literal["toc", "search", "page", "list", "changes", "runs", "apart"]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[\u3400-\u9fff]+")
_SEPARATORS = re.compile(r"[|&;\n]+")
#: What makes a reading command write, or run another one.
_NOT_ONLY_READING = re.compile(
    r">|`|\$\(|<\(|\s-(?:delete|exec|ok|fprint|fls)|--output|\b(?:sort|tree|git grep)\b[^|;&]*\s-\w*o|\bdate\b[^|;&]*\s-s"
    r"|\buniq\b(?:\s+[^-\s|;&]\S*){2}|\b(?:next|set)val\b"
    r"|\b(?:insert|update|delete|drop|alter|create|into|set|truncate|replace)\b"
)
#: How a statement or a mutation begins that writes, whatever the argument is called.
_WRITES = re.compile(
    r"\s*+(?:insert\s+into|delete\s+from|update\s+\S+\s+set|merge\s+into|truncate|(?:drop|alter|create)\s+(?:table|index|view|database|schema|user)"
    r"|mutation\b\s*+\w*+\s*+[({])",
    re.IGNORECASE,
)


def bare_name(tool: str) -> str:
    """A tool's own name: `get_toc` in `mcp__gridcode__get_toc`."""
    parts = tool.split("__", 2)
    return parts[2] if len(parts) == 3 and parts[0] == "mcp" and parts[2] else tool


def words_of(name: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(name)]


def has_word(words: Iterable[str], group: str) -> bool:
    return any(_is_one_of(word, group) for word in words)


def _is_one_of(word: str, group: str) -> bool:
    known = WORDS[group]
    # Chinese names are not written in separate words.
    return word in known or (not word.isascii() and any(one in word for one in known if not one.isascii()))


def effect(tool: str, arguments: Plain = None) -> Effect | None:
    """What a call does; None if nothing tells, so that it may do anything."""
    name = bare_name(tool)
    words = [*_telling(words_of(name)), name.casefold()]
    given = arguments if isinstance(arguments, dict) else {}
    about_something = named(arguments, "location") or named(arguments, "identity")
    if has_word(words, "apart") and not about_something:
        return "apart"
    if any(map(_WRITES.match, texts_in(arguments))):
        return "runs"
    codes = [str(value) for value in _under(given, "code")]
    if has_word(words, "runs") or codes:
        return "apart" if codes and all(map(only_reads, codes)) else "runs"
    methods = {str(value).upper() for value in _under(given, "method")}
    if has_word(words, "changes") or methods - {"GET", "HEAD"} or named(arguments, "written"):
        return "changes"
    if "and" in words:
        # It does something else, too.
        return None
    if not named(arguments, "location"):
        words = [word for word in words if word not in WORDS["from_somewhere"]]
    return next((kind for kind in ("toc", "search", "list", "page") if has_word(words, kind)), None)


def _telling(words: Sequence[str]) -> list[str]:
    """Drops nouns that look like verbs: "commit" in `get_commit`."""
    verbs = [at for at, word in enumerate(words) if word in WORDS["reading_verbs"]]
    first = verbs[0] if verbs else len(words)
    return [word for at, word in enumerate(words) if at < first or word not in WORDS["nouns"]]


def is_volatile(tool: str, arguments: Plain) -> bool:
    """Whether a repeated call may return something new without a change by the agent, as a call without arguments may."""
    words = words_of(bare_name(tool))
    singular = [word.removesuffix(ending) for word in words for ending in ("s", "es")]
    nameless = not arguments and not has_word(words, "list")
    return nameless or has_word([*words, *singular], "volatile")


def is_web(tool: str, arguments: Plain) -> bool:
    """Whether it reads the web: no program of the agent's own changes that."""
    urls = [value for value in texts_in(arguments) if value.startswith(("http://", "https://"))]
    local = any(re.match(r"https?://(?:localhost|127\.|0\.0\.0\.0|\[::1\])", url) for url in urls)
    return not local and (bool(urls) or has_word(words_of(bare_name(tool)), "web"))


def only_reads(command: str) -> bool:
    """Whether every part of a command line or SQL statement is known to read and nothing else."""
    if _NOT_ONLY_READING.search(command.casefold()):
        return False
    parts = [part.split() for part in _SEPARATORS.split(command) if part.strip()]
    return bool(parts) and all(
        part[0].casefold() in WORDS["reading_commands"]
        or (part[0] == "git" and len(part) > 1 and part[1] in WORDS["reading_git"])
        for part in parts
    )


def named(arguments: Plain, group: str) -> dict[str, Plain]:
    """The arguments whose names have a word of the group."""
    given = arguments if isinstance(arguments, dict) else {}
    return {name: value for name, value in given.items() if has_word(words_of(name), group)}


def texts_in(value: Plain, depth: int = 0) -> Iterator[str]:
    """The texts and whole numbers in it, as text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, dict | list) and depth < 4:
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts_in(inner, depth + 1)


def _under(given: Mapping[str, Plain], group: str) -> Iterator[Plain]:
    return (value for name, value in given.items() if name.casefold() in WORDS[group])
