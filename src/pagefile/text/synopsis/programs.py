"""Synopses of source code and configuration."""

import re
from itertools import islice

from pagefile.text.code import code_language, definitions, is_settings, opening_comment, sections
from pagefile.text.synopsis.kinds import line_count
from pagefile.text.synopsis.records import BAD, STATES
from pagefile.text.synopsis.wording import Voice, squeeze

#: What comments of C# are written between.
_DOC_TAG = re.compile(r"</?(?:summary|remarks|para|see|c)\b[^<>]*>")
_YAML_TOP = re.compile(
    r"^[\"']?([A-Za-z_\u4e00-\u9fff][\w./-]*)[\"']?:(?: +([^\s#{\[&|>][^\n#]*))?", re.MULTILINE
)
_YAML_NAMES = re.compile(
    r"^ *(?:- )?(?:name|title|kind|image|host): +[\"']?([^\s\"'][^\n\"']*)", re.MULTILINE
)
_YAML_VALUE = re.compile(r"^ *([A-Za-z][\w ]{2,30}?) ?: +([^\n]{2,60})$", re.MULTILINE)
_PAIR = re.compile(r"^[ \t]*([\w.\"'-]+)[ \t]*=[ \t]*([^\n]+)", re.MULTILINE)


def describe_code(text: str, say: Voice) -> list[str]:
    if is_settings(text):
        return _settings(text, say)
    language, lines = code_language(text), line_count(text)
    found = [str(one) for one in definitions(text, language)]
    comment = _DOC_TAG.sub("", opening_comment(text))
    parts = [say(f"代码（{language}），{lines:,} 行", f"Code ({language}), {lines:,} lines")]
    if comment:
        parts.append(say("注释：", "Says: ") + squeeze(comment, 90 if found else 200))
    if found:
        parts.append(say("定义：", "Defines: ") + say.listed(found, len(found), most=300))
    else:
        parts.append(_first_lines(text, say))
    return parts


def _first_lines(text: str, say: Voice) -> str:
    """Code without definitions is described by its first lines."""
    lines = [line.strip() for line in text[:3000].splitlines() if len(line.strip()) > 3]
    telling = [
        line
        for line in lines
        if not re.match(r"(?:import|from|use|using|#include|//|/?\*|#|package)\b", line)
    ]
    return say("开头：", "Begins: ") + squeeze(" ".join(telling or lines), 200)


def _settings(text: str, say: Voice) -> list[str]:
    names, lines = sections(text), line_count(text)
    comment = opening_comment(text)
    pairs = [f"{match[1]}={squeeze(match[2], 40)}" for match in islice(_PAIR.finditer(text), 40)]
    told = say.listed(names, len(names), most=110, name_chars=40)
    parts = [say(f"配置，{lines:,} 行", f"Configuration, {lines:,} lines")]
    if names:
        parts[0] += say(f"，{len(names):,} 节：{told}", f", {len(names):,} sections: {told}")
    if comment:
        parts.append(say("注释：", "Says: ") + squeeze(comment, 90))
    return [*parts, say.listed(pairs, 0, most=200)]


def describe_yaml(text: str, say: Voice) -> list[str]:
    found = list(islice(_YAML_TOP.finditer(text), 1000))
    keys = [f"{match[1]}={squeeze(match[2], 50)}" if match[2] else match[1] for match in found]
    if len(keys) <= 2:
        # All of it is below one name.
        keys += [f"{key.strip()}={squeeze(value, 50)}" for key, value in _YAML_VALUE.findall(text)]
    keys = list(dict.fromkeys(keys))
    lines, comment = line_count(text), opening_comment(text)
    names = list(dict.fromkeys(match[1] for match in islice(_YAML_NAMES.finditer(text), 60)))
    bad = [
        f"{key}: {value}"
        for key, value in _YAML_VALUE.findall(text)
        if STATES.search(key) and BAD.search(value)
    ]
    told = ", ".join(dict.fromkeys(bad))
    shown = say.listed(keys, len(keys), most=80 if bad else 150)
    return [
        say(
            f"YAML，{lines:,} 行，{len(keys)} 个顶层键：{shown}",
            f"YAML, {lines:,} lines, {len(keys)} keys at the top: {shown}",
        ),
        say("异常：", "Notable: ") + squeeze(told, 90) if bad else "",
        say("注释：", "Says: ") + squeeze(comment, 100) if comment else "",
        say("名称：", "Names: ") + say.listed(names, len(names), most=160) if len(names) > 1 else "",
    ]
