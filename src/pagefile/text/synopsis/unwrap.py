"""What a tool's answer is wrapped in: colours, an exit code, line numbers, a fence, JSON around one long text."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from typing import NamedTuple

from pagefile.records import JsonValue
from pagefile.text.synopsis.binary import is_base64
from pagefile.text.synopsis.wording import Voice, squeeze
from pagefile.text.tables import table

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9])")
_CODE_WORDS = r"(?:process |(?:the )?command (?:completed|failed|finished) with )?(?:exit(?:ed with)?(?:[ _]?(?:code|status))?|return[ _]?code|退出码|返回码)"
_EXIT = re.compile(
    rf"[\[(<]?{_CODE_WORDS}[>]?[ \t]*[:=：]?[ \t]*(-?\d{{1,6}})(?:</\w+>)?\.?[\])]?[ \t]*(?:\n|\Z)",
    re.IGNORECASE,
)
#: Lines of a shell tool's own, around what the command printed.
_FRAME = re.compile(
    r"(?:\[?(?:stdout|stderr|output|标准输出|标准错误)\]?[:：]?|</?(?:output|stdout|stderr|result|file_content|tool_result)>|(?:chunk id|wall time|original token count|total output lines)[:：].*|\(\d+ more lines above\))[ \t]*\n",
    re.IGNORECASE,
)
_LAST = re.compile(
    r"\[(?:current working directory|python interpreter|jupyter current).*\]|\(\d+ more lines below\)",
    re.IGNORECASE,
)
_FRAME_END = re.compile(r"\s*</(?:output|stdout|stderr|result|file_content|tool_result)>\s*\Z")
#: A file's name above its numbered lines.
_NAMED = re.compile(
    r"(?:here's the result of running `cat -n` on (?:a snippet of )?|\[?file: ?|文件[:：] ?)([^\s:：\]]{1,200})[^\n]{0,60}\n",
    re.IGNORECASE,
)
#: The step of a build, and its seconds, before each line of `docker build`.
_STEP = re.compile(r"^#\d+ (?:\d+\.\d+ )?", re.MULTILINE)
#: What readers of web pages put above them.
_READER = re.compile(
    r"Title: ([^\n]+)\s+URL Source: (\S+)\s+(?:(?:Published Time|Number of Pages|Warning): [^\n]*\s+)*Markdown Content:\s*"
)
_NUMBERED = re.compile(r"[ \t]{0,10}(\d{1,7})(?:\t|→|[ ]?\|[ ]?|:[ ]?|-)")
_FENCE = re.compile(r"\s*```[\w+-]*\n(.*?)\n?```\s*\Z", re.DOTALL)

#: A shorter text is a value.
_TEXT_CHARS = 200
#: Keys whose value says what a text is, best first.
_LEADS: list[str] = table("pagefile.text.synopsis", "fields")["leads"]
_FILE_TYPES = frozenset({"mimetype", "mediatype", "contenttype", "format"})
_CAPTIONS = frozenset({"caption", "alt", "alttext", "description", "说明"})
_MOST_NODES = 3_000
_FEW_STRINGS = 8


#: The objects around a value, the innermost last.
_Above = tuple[Mapping[str, JsonValue], ...]


class Content(NamedTuple):
    """What is inside, and what its wrapping says about it, most important first, in Chinese and English."""

    text: str
    notes: tuple[tuple[str, str], ...] = ()
    #: The numbers of its first and last line, if it was numbered.
    lines: tuple[int, int] | None = None


def unwrapped(text: str) -> Content:
    """A text without colours, the frame of a shell tool, line numbers and a fence around all of it."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if text.count("\\n", 0, 20_000) > 5 and text.count("\n", 0, 20_000) < 3 and text[:1] not in "[{":
        text = text.replace("\\n", "\n").replace("\\t", "\t")  # a text as a program would write it
    if _STEP.match(text):
        text = _STEP.sub("", text)
    notes: list[tuple[str, str]] = []
    if named := _NAMED.match(text[:400].lstrip()):
        notes.append((named[1], named[1]))
        text = text.lstrip()[named.end() :]
    if page := _READER.match(text):
        notes.append(_both(page[1], 90))
        text = text[page.end() :]
    text = _without_frame(text, notes)
    if fenced := _FENCE.match(text) if text.lstrip()[:3] == "```" and text.count("```") == 2 else None:
        text = fenced[1]
    return _without_numbers(Content(text, tuple(notes)))


def _without_frame(text: str, notes: list[tuple[str, str]]) -> str:
    for _ in range(6):
        start = len(text) - len(text.lstrip())
        if found := _EXIT.match(text, start):
            _note_exit(found[1], notes)
        elif not (found := _FRAME.match(text, start)):
            break
        text = text[found.end() :]
    if "</" in text[-40:]:
        text = text[:-60] + _FRAME_END.sub("", text[-60:])
    for _ in range(3):
        last = text[-300:].rstrip().rpartition("\n")[2].strip()
        found = _EXIT.fullmatch(last)
        if not found and not _LAST.fullmatch(last):
            break
        if found:
            _note_exit(found[1], notes)
        text = text[: text.rindex(last)]
    return text


def _note_exit(code: str, notes: list[tuple[str, str]]) -> None:
    if code != "0":
        notes.insert(0, (f"退出码 {code}", f"exit code {code}"))


def _without_numbers(content: Content) -> Content:
    """Line numbers are those of a listing if nearly all lines have one, most the next of the one before."""
    lines = content.text.split("\n")
    first = [_NUMBERED.match(line) for line in lines[:60] if line.strip()]
    found = [int(match[1]) for match in first if match]
    steps = sum(after - before == 1 for before, after in pairwise(found))
    if len(found) < 3 or first[0] is None or len(found) < 0.85 * len(first) or steps < 0.7 * (len(found) - 1):
        return content
    matched = [(match, line) for line in lines if (match := _NUMBERED.match(line))]
    bare = "\n".join(line[match.end() :] for match, line in matched)
    return Content(bare, content.notes, (int(matched[0][0][1]), int(matched[-1][0][1])))


def text_inside(value: JsonValue, chars: int) -> Content | None:
    """The text that JSON is wrapped around: one long string, or the blocks of an answer."""
    if blocks := _blocks(value):
        return Content("\n".join(blocks))
    found = max(islice(_strings(value), _MOST_NODES), key=lambda one: len(one[0]), default=None)
    if found is None or len(found[0]) < max(_TEXT_CHARS, 0.55 * chars) or not _is_text(found[0]):
        return None
    # If an encoded file comes with many other fields, those say more than its size.
    if is_base64(found[0]) and sum(1 for _ in islice(_strings(value), _FEW_STRINGS)) == _FEW_STRINGS:
        return None
    text, key, around = found
    notes = (*_notes(key, around), *(_about_file(around) if is_base64(text) else ()))
    return Content(text, tuple(dict.fromkeys(notes)))


def _is_text(value: str) -> bool:
    head = value[:400].strip()
    return " " in head or "\n" in head or not head.isascii() or is_base64(value)


def _blocks(value: JsonValue) -> list[str]:
    """The texts of content blocks, `[{"type": "text", "text": …}]`, also below `content`."""
    if isinstance(value, dict) and isinstance(value.get("content"), list):
        value = value["content"]
    if not isinstance(value, list) or not value:
        return []
    objects = [item for item in value if isinstance(item, dict)]
    texts = [
        text for item in objects if item.get("type") == "text" and isinstance(text := item.get("text"), str)
    ]
    typed = all(isinstance(item.get("type"), str) for item in objects)
    return texts if typed and len(objects) == len(value) and 2 * len(texts) >= len(value) else []


def _strings(
    value: JsonValue, key: str = "", above: _Above = (), depth: int = 9
) -> Iterator[tuple[str, str, _Above]]:
    """Every string with its key and the objects around it, the innermost last."""
    if isinstance(value, str):
        yield value, key, above
    elif isinstance(value, dict) and depth:
        for name, inner in value.items():
            yield from _strings(inner, name, (*above, value), depth - 1)
    elif isinstance(value, list) and depth:
        for inner in value[:200]:
            yield from _strings(inner, key, above, depth - 1)


def _notes(key: str, around: _Above) -> Iterator[tuple[str, str]]:
    """A failure, a title or a name given beside a text."""
    for name, value in (field for item in reversed(around) for field in item.items()):
        folded = name.casefold().replace("_", "")
        if folded in ("exitcode", "returncode", "exitstatus") and value not in (0, None, "0"):
            yield f"退出码 {value}", f"exit code {value}"
        elif folded in ("stderr", "error") and name != key and isinstance(value, str) and value.strip():
            yield _both(value.strip().splitlines()[-1], 120)
    beside = [*around, *(inner for item in around for inner in item.values() if isinstance(inner, dict))]
    leads = (value for name in _LEADS for item in beside if (value := item.get(name)))
    lead = next((value for value in leads if isinstance(value, str)), "")
    if lead:
        yield _both(lead, 90)


def _about_file(around: _Above) -> Iterator[tuple[str, str]]:
    """What is said beside an encoded file: its type, then its caption."""
    for named in (_FILE_TYPES, _CAPTIONS):
        for item in reversed(around):
            values = (value for name, value in item.items() if name.casefold().replace("_", "") in named)
            yield from (_both(value, 90) for value in values if isinstance(value, str) and value.strip())


def _both(words: str, max_chars: int) -> tuple[str, str]:
    """A quotation, which is the same in both languages."""
    quoted = squeeze(words, max_chars)
    return quoted, quoted


def said(content: Content, say: Voice) -> list[str]:
    """What the wrapping says, and which lines of a file these are."""
    told = [say(*note) for note in content.notes]
    if content.lines and content.lines[0] > 1:
        first, last = content.lines
        told.append(say(f"第 {first:,}–{last:,} 行", f"lines {first:,}–{last:,}"))
    return told
