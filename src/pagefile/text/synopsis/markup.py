"""Synopses of documents: title, headings, contents, and the most important sentences."""

import html
import re
from collections import Counter
from itertools import islice

from pagefile.records import JsonValue
from pagefile.text.synopsis.wording import Voice, prose

#: How much of a page is read for its sentences.
_READ_CHARS = 60_000
_MOST_HEADINGS = 2000

_HEADING = re.compile(r"\n(#{1,6}) +([^\n]+)")
_FENCED = re.compile(r"\n {0,3}```[^\n]*\n.*?\n {0,3}```", re.DOTALL)
_TABLE_RULE = re.compile(r"\n[ \t]*+\|?+[ \t]*+:?+-++:?+[ \t]*+\|")
_TITLE = re.compile(r"<title\b[^<>]*>([^<]*)", re.IGNORECASE)
_HTML_HEADING = re.compile(r"<h([1-6])\b[^<>]*+>((?:[^<]++|<(?!/?h[1-6])){0,60}+)</h", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*+>")
#: Invisible parts of a page begin with one of these and end where it is closed.
_SILENT = re.compile(r"<(script|style|head|noscript|svg)\b|<!--", re.IGNORECASE)
_BLOCK_END = re.compile(r"</(?:p|div|li|tr|h[1-6]|section|article|td|th)\s*>|<br\b[^<>]*>", re.IGNORECASE)
_ELEMENT = re.compile(r"<([A-Za-z_][\w:.-]*)")


def describe_markdown(text: str, value: JsonValue, say: Voice) -> list[str]:
    bare = "\n" + (text if "```" not in text else _FENCED.sub("\n", "\n" + text[:1_000_000]))
    headings = islice(_HEADING.finditer(bare), _MOST_HEADINGS)
    found = [(len(match[1]), match[2].strip(" #*")) for match in headings]
    images = text.count("![")
    counts = {
        "heading": len(found),
        "link": max(0, text.count("](") - images),
        "image": images,
        "table": len(_TABLE_RULE.findall(text)),
        "code": text.count("\n```") // 2,
    }
    return [*_outline("Markdown", found, "", say), _counted(counts, say), prose(text, 240)]


def describe_html(text: str, value: JsonValue, say: Voice) -> list[str]:
    title = _TITLE.search(text[:_READ_CHARS])
    headings = islice(_HTML_HEADING.finditer(text), _MOST_HEADINGS)
    found = [(int(match[1]), _seen(match[2])) for match in headings]
    folded = text.casefold()
    counts = {
        "heading": len(found),
        "link": folded.count("<a "),
        "image": folded.count("<img"),
        "table": folded.count("<table"),
    }
    read = text[:_READ_CHARS]
    read = read[: read.rfind("<")] if len(text) > _READ_CHARS else read
    named = _seen(title[1]) if title else ""
    return [*_outline("HTML", found, named, say), _counted(counts, say), prose(visible(read), 240)]


def describe_xml(text: str, value: JsonValue, say: Voice) -> list[str]:
    names = Counter(islice((match[1] for match in _ELEMENT.finditer(text)), 100_000))
    root = next(iter(names), "")
    inner = [f"{name} ×{count:,}" for name, count in names.most_common() if name != root]
    shown = say.listed(inner, len(inner), most=220)
    return [
        say(f"XML，根元素 {root}，元素：{shown}", f"XML, root {root}, elements: {shown}"),
        prose(_seen(text[:_READ_CHARS]), 200),
    ]


def visible(markup: str) -> str:
    """The visible text of a page, one line per block."""
    return _seen(_BLOCK_END.sub("\n", _without_silent(markup)))


def _outline(name: str, found: list[tuple[int, str]], title: str, say: Voice) -> list[str]:
    """The title, by default the first heading, then the headings below it."""
    if not title and found:
        title, found = found[0][1], found[1:]
    opening = say(f"{name} 文档", f"{name} document")
    parts = [opening + (say(f"《{title}》", f' "{title}"') if title else "")]
    if found:
        # Deep headings come last: chapters say more about a long page than details of its first section.
        ranked = sorted(range(len(found)), key=lambda at: (found[at][0], at))[:12]
        names = list(dict.fromkeys(found[at][1] for at in sorted(ranked)))
        parts.append(say("标题：", "Headings: ") + say.listed(names, len(found), most=220, name_chars=40))
    return parts


_COUNTED = {
    "heading": ("个标题", "heading"),
    "link": ("个链接", "link"),
    "image": ("张图片", "image"),
    "table": ("个表格", "table"),
    "code": ("个代码块", "code block"),
}


def _counted(counts: dict[str, int], say: Voice) -> str:
    named = [(count, *_COUNTED[what]) for what, count in counts.items() if count]
    shown = [say(f"{n:,} {chinese}", f"{n:,} {english}{'s' * (n > 1)}") for n, chinese, english in named]
    return say("含 ", "Holds ") + say("、", ", ").join(shown) if shown else ""


def _without_silent(markup: str) -> str:
    kept: list[str] = []
    place = 0
    folded = markup.casefold() if markup.isascii() else markup
    while (opening := _SILENT.search(markup, place)) is not None:
        closing = f"</{opening[1].casefold()}" if opening[1] else "-->"
        end = folded.find(closing, opening.end())
        kept.append(markup[place : opening.start()])
        place = end + len(closing) if end >= 0 else len(markup)
    return "".join([*kept, markup[place:]])


def _seen(markup: str) -> str:
    return html.unescape(_TAG.sub(" ", markup)).strip()
