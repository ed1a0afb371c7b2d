"""Programming languages and configuration: which one a text is written in, what it says and what it defines."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from pagefile.text.tables import table

#: What is examined: the beginning, and a piece of the middle, where headers and licences are over.
_LOOK_CHARS = 5_000
_MOST_LINES = 160
#: How much is searched for definitions.
_READ_CHARS = 400_000
_MOST_DEFINITIONS = 2_000

_TABLE = table("pagefile.text", "code")
_OPENING = re.compile(_TABLE["comment"]["opening"])
#: How comments begin that tell what follows them, and what is not a comment.
_DOCUMENTS = ('"""', "'''", "/**", "///", "//!", 'r"""')
_CODE_BEFORE = re.compile(
    r"(?m)^(?![ \t]*(?:#|//|/?\*|--|;|%|\"\"\"|import\b|from\b|use\b|package\b|<\?php|[\"']use ))[ \t]*\S"
)
_DULL = re.compile(_TABLE["comment"]["dull"])
_SECTION, _PAIR, _OTHER = (re.compile(_TABLE["settings"][name]) for name in ("section", "pair", "other"))
_FENCED = re.compile(r"^ {0,3}```.*?(?:^ {0,3}```|\Z)", re.MULTILINE | re.DOTALL)
#: TypeScript is JavaScript with this share of lines that declare types.
_TYPED = 0.06
#: Lines that end like code, or begin like it.
_LIKE_CODE = re.compile(
    r".*(?:[;{}\[(),:\]\\]|=>|->|\"\"\"|'''|&&|\|\|)[ \t]*$|[ \t]*(?:[)}\]@#<]|//|/\*|\*|--|\w+\()|.*[\w\])\"'] ?[:+*|-]?=[ =]?\S|\t|[ \t]*\w+: (?:int|str|bool|float)\b"
)
#: A line of a document, not of a program.
_SENTENCE = re.compile(
    r"[ \t]{0,3}(?:[-*] )?[\"“(]?(?:[A-Z](?:[^\s{}=;$|\\]++ ){5}|[\u4e00-\u9fff][\u3000-\u9fff\uff00-\uffef\w]{12})[^\n{}=;$|\\]*+$"
)
_YAML_KEY = re.compile(
    r"\s*(?:- +)*(?:[\"'][^\"'\n]+[\"']|[A-Za-z_/$.{\u4e00-\u9fff][\w./{}$-]*):(?: (?!.*,$)|$)"
)
_HIT_KEY = re.compile(r"(?i)(?:title|url|link|source|标题|链接|来源)\b")
_YAML_LINE = re.compile(r"\s*(?:- |#|---|\.\.\.)")
#: Programs without line breaks.
_DENSE = re.compile(r"[{};()=,:]")
#: Python is documented at such length that most of it may be prose.
_PYTHON_OUTLINE = re.compile(
    r"^(?:(?:async )?def \w+\(|class \w+[(:]|from [\w.]+ import |import [\w.]+(?: as \w+)?$)", re.MULTILINE
)
_SHEBANG = re.compile(r"#![^\n]*?\b(\w*sh|python|node|perl|ruby|php|lua)\b")
_RUN_BY = {
    "python": "Python",
    "node": "JavaScript",
    "perl": "Perl",
    "ruby": "Ruby",
    "php": "PHP",
    "lua": "Lua",
}
#: What holds other definitions is named before what it holds.
_HOLDING = frozenset(
    {
        "def",
        "fn",
        "func",
        "fun",
        "function",
        "const",
        "sub",
        "rpc",
        "mod",
        "index",
        "it",
        "test",
        "# define",
        "#define",
    }
)


class Definition(NamedTuple):
    """A name that a program defines."""

    what: str
    name: str
    indent: int

    def __str__(self) -> str:
        return f"{self.what} {self.name}" if self.what else self.name


@cache
def _marks() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(told["marks"]) for name, told in _TABLE["languages"].items()}


@cache
def _defines(language: str) -> re.Pattern[str]:
    return re.compile(f"(?m)^{_TABLE['languages'][language]['defines']}")


def code_language(text: str) -> str:
    """The programming language of a text; "" if it is no program, or none that is known."""
    if shebang := _SHEBANG.match(text):
        return _RUN_BY.get(shebang[1], "Shell")
    if dense := _minified(text[:3000]):
        return dense
    if "```" not in text and len(list(islice(_PYTHON_OUTLINE.finditer(text[: 10 * _LOOK_CHARS]), 4))) > 3:
        return "Python"
    lines = _sample(text)
    like_code, like_prose = _share(lines, _LIKE_CODE), _share(lines, _SENTENCE)
    if like_code < 0.2 or like_prose > 0.5:
        return ""
    shares = {name: _share(lines, pattern) for name, pattern in _marks().items()}
    best = max(shares, key=lambda name: shares[name])
    if best == "JavaScript" and shares["TypeScript"] >= _TYPED:
        best = "TypeScript"
    # The less a text reads like prose, the fewer lines need to say which language it is.
    enough = (
        0.03
        if like_code > 0.75 and like_prose < 0.06
        else 0.1
        if like_code > 0.4 and like_prose < 0.2
        else 0.18
    )
    return best if shares[best] >= enough and shares[best] * len(lines) >= 2 else ""


def _minified(head: str) -> str:
    """The language of a program whose line breaks were taken out; "" for everything else."""
    longest = max(head.split("\n"), key=len)
    if len(longest) < 500 or longest[0] in "[<" or len(_DENSE.findall(longest)) < 0.08 * len(longest):
        return ""
    if re.search(r"\bfunction\b|=>|\bvar \w|\bconst \w|\breturn\b", longest):
        return "JavaScript"
    return "CSS" if re.search(r"[\w-]\{[\w-]+:[^{};]+[;}]", longest) else ""


def is_settings(text: str) -> bool:
    """Whether a text is configuration: nearly nothing but `key = value`, sections and comments."""
    lines = _sample(text)
    pairs, sections = _share(lines, _PAIR), _share(lines, _SECTION)
    known = sum(bool(_PAIR.match(line) or _SECTION.match(line) or _OTHER.match(line)) for line in lines)
    return len(lines) > 2 and pairs >= 0.25 and known >= 0.85 * len(lines) and (sections > 0 or pairs >= 0.8)


def is_yaml(text: str) -> bool:
    """Whether nearly every line is a key or an item, and they are not those of hit after hit."""
    lines = [line[:200] for line in text[: 2 * _LOOK_CHARS].splitlines() if line.strip()][:60]
    outer = [match[0] for line in lines if not line[0].isspace() and (match := _YAML_KEY.match(line))]
    keys, others = _share(lines, _YAML_KEY), _share(lines, _YAML_LINE)
    hits = Counter(key.casefold() for key in outer if _HIT_KEY.match(key))
    return len(lines) > 2 and keys >= 0.4 and keys + others >= 0.8 and max(hits.values(), default=0) < 2


def sections(text: str) -> list[str]:
    """The names of the sections of a configuration, each once."""
    lines = text[:_READ_CHARS].splitlines()
    found = (match[1].strip() for line in lines if (match := _SECTION.match(line[:300])))
    return list(dict.fromkeys(found))


def definitions(text: str, language: str) -> list[Definition]:
    """What a program defines: what holds the rest, such as classes, by size, then functions, from the outside in."""
    read = text[:_READ_CHARS]
    found = list(islice(_defines(language).finditer(read), _MOST_DEFINITIONS))
    ends = [*(match.start() for match in found[1:]), len(read)]
    sizes: dict[Definition, int] = {}
    outer: Definition | None = None
    for match, end in zip(found, ends, strict=False):
        *what, name = (group.strip() for group in match.groups() if group is not None)
        one = Definition(what[0] if what else "", name.strip('`"'), _indent(match[0]))
        # An indented constant is a local variable of a function.
        if one.name.startswith("__") or (one.what == "const" and one.indent):
            continue
        sizes[one] = sizes.get(one, 0) + end - match.start()
        if outer is None or one.indent <= outer.indent:
            outer = one
        else:
            sizes[outer] += end - match.start()
    return sorted(
        sizes,
        key=lambda one: (
            one.indent,
            one.what in _HOLDING,
            one.name.startswith("_"),
            0 if one.what in _HOLDING else -sizes[one],
        ),
    )


def opening_comment(text: str) -> str:
    """What a program says of itself: its first comment, else the first that documents; "" if there is none."""
    documenting = ""
    for match in islice(_OPENING.finditer(text[: 2 * _LOOK_CHARS]), 40):
        words = match[1].strip(" \t*#/;-\"'=!,")
        if len(words) < 6 or (words.isascii() and " " not in words) or _DULL.search(words):
            continue
        if not _CODE_BEFORE.search(text, 0, match.start()):
            return words
        if not documenting and match[0].lstrip().startswith(_DOCUMENTS):
            documenting = words
    return documenting


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _sample(text: str) -> Sequence[str]:
    """Lines of the beginning and the middle, without blocks of code in a document."""
    if "```" in text[: 4 * _LOOK_CHARS]:
        text = _FENCED.sub("", text[: 20 * _LOOK_CHARS])
    piece = text[: 2 * _LOOK_CHARS]
    if len(text) > 2 * _LOOK_CHARS:
        middle = text.find("\n", len(text) // 2) + 1
        piece = text[:_LOOK_CHARS] + "\n" + text[middle : middle + _LOOK_CHARS]
    lines = [line[:160] for line in piece.splitlines() if line.strip()]
    return lines if len(lines) <= _MOST_LINES else lines[: _MOST_LINES // 2] + lines[-_MOST_LINES // 2 :]


def _share(lines: Iterable[str], pattern: re.Pattern[str]) -> float:
    matched = [pattern.match(line) is not None for line in lines]
    return sum(matched) / len(matched) if matched else 0.0
