"""Synopses of documents: title, headings, contents, and the most important sentences."""

import html
import re
from collections import Counter
from itertools import islice

from pagefile.text.synopsis.wording import Voice, prose

#: How much of a page is read for its sentences.
_READ_CHARS = 60_000
_MOST_HEADINGS = 2000

_HEADING = re.compile(r"\n(#{1,6}) +([^\n]+)")
_FENCED = re.compile(r"\n {0,3}```[^\n]*\n.*?\n {0,3}```", re.DOTALL)
#: What is said of a page above it, and how it is called there.
_FRONT = re.compile(r"\A---\n(.{1,4000}?)\n---\n", re.DOTALL)
_FIELD = re.compile(r"^(title|name|description): *[\"']?([^\n\"']+)", re.MULTILINE)
_TABLE_RULE = re.compile(r"\n[ \t]*+\|?+[ \t]*+:?+-++:?+[ \t]*+\|")
_TITLE = re.compile(r"<title\b[^<>]*>([^<]*)", re.IGNORECASE)
_HTML_HEADING = re.compile(r"<h([1-6])\b[^<>]*+>((?:[^<]++|<(?!/?h[1-6])){0,60}+)</h", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*+>")
#: Invisible parts of a page begin with one of these and end where it is closed.
_SILENT = re.compile(r"<(script|style|head|noscript|svg)\b|<!--", re.IGNORECASE)
_BLOCK_END = re.compile(r"</(?:p|div|li|tr|h[1-6]|section|article|td|th)\s*>|<br\b[^<>]*>", re.IGNORECASE)
_ELEMENT = re.compile(r"<([A-Za-z_][\w:.-]*)")
#: An element with nothing but text in it.
_LEAF = re.compile(r"<([A-Za-z_][\w:.-]*)[^<>]*>(?:<!\[CDATA\[)?([^<>]+)(?:\]\]>)?</")
_FEED_NAMES = frozenset({"title", "name", "loc"})
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_OPENING_TAG = re.compile(r"<[A-Za-z_][\w:.-]*([^<>]*)>")
_ATTRIBUTE = re.compile(r"([\w:.-]+)\s*=\s*[\"']([^\"']*)[\"']")
_FAILED_CASE = re.compile(r"<testcase\b[^<>]*?\bname=\"([^\"<>]*)\"[^<>]*>\s*<(?:failure|error)\b")
_FAULT = re.compile(r"(?i)fault|err|message|reason|detail|status")


def describe_markdown(text: str, say: Voice) -> list[str]:
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
    fields = dict(_FIELD.findall(front[1])) if (front := _FRONT.match(text)) else {}
    body = text[front.end() :] if front else text
    title = fields.get("title") or fields.get("name") or ""
    return [
        *_outline("Markdown", found, title, say),
        fields.get("description", ""),
        _counted(counts, say),
        prose(body, 240),
    ]


def describe_html(text: str, say: Voice) -> list[str]:
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
    said = prose(visible(_HTML_HEADING.sub("<br h", read)), 240)
    # What a page says is worth more than all of its headings.
    return [*_outline("HTML", found, named, say, 70 if said else 220), said, _counted(counts, say)]


def describe_xml(text: str, say: Voice) -> list[str]:
    names = Counter(islice((match[1] for match in _ELEMENT.finditer(text)), 100_000))
    root = next(iter(names), "")
    read = text[:_READ_CHARS]
    quoted = read.rfind("]]>") + 3
    read = (
        _CDATA.sub(lambda match: html.escape(visible(match[1])), read[:quoted]) + read[quoted:]
        if quoted > 2
        else read
    )
    leaves = [(match[1], _seen(match[2])) for match in islice(_LEAF.finditer(read), 2000)]
    told = list(dict.fromkeys((name, said) for name, said in leaves if said))
    entries = next((name for name in ("entry", "item", "url", "record") if names[name] > 1), "")
    if entries and any(name.rpartition(":")[2] in _FEED_NAMES for name, _ in told):
        return _feed(entries, names[entries], told, text, say)
    repeated = [f"{name} ×{count:,}" for name, count in names.most_common(6) if name != root and count > 2]
    told.sort(key=lambda leaf: not _FAULT.search(leaf[0]))
    shown = [f"{name.rpartition(':')[2]}={said}" for name, said in told[:60]]
    failing = _FAILED_CASE.findall(text)
    return [
        say(f"XML（{root}{_attributes(text)}）", f"XML ({root}{_attributes(text)})"),
        say("失败：", "Failing: ") + say.listed(failing, len(failing), most=100) if failing else "",
        say.listed(shown, len(told), most=170, name_chars=100),
        say("元素：", "Elements: ") + say("、", ", ").join(repeated) if repeated else "",
    ]


def _attributes(text: str) -> str:
    """The attributes of the outermost element that has any, without namespaces."""
    for opening in islice(_OPENING_TAG.finditer(text[:4000]), 3):
        found = [
            (name, value)
            for name, value in _ATTRIBUTE.findall(opening[1])
            if "xmlns" not in name and ":" not in name
        ]
        if told := "".join(f" {name}={value}" for name, value in found if len(value) < 60):
            return told
    return ""


def _feed(entry: str, count: int, told: list[tuple[str, str]], text: str, say: Voice) -> list[str]:
    names = [(name.rpartition(":")[2], said) for name, said in told]
    # Where entries have titles, names are those of their authors.
    titled = sum(name == "title" for name, _ in names) >= min(count, 2)
    titles = [said for name, said in names if name in ({"title"} if titled else _FEED_NAMES)]
    totals = [said for name, said in told if "total" in name.casefold()]
    before = _TITLE.search(text[: text.find(f"<{entry}")])
    title = titles.pop(0) if before and titles else ""
    named = say(f"《{title}》", f' "{title}"') if title else ""
    total = say(f"（共 {totals[0]}）", f" of {totals[0]}") if totals else ""
    longest = max((said for _, said in told), key=len, default="")
    return [
        say(f"XML{named}，{count:,} 条{total}：", f"XML{named}, {count:,} entries{total}: ")
        + say.listed(titles, count, most=190, name_chars=80),
        prose(longest, 160) if len(longest) > 60 else "",
    ]


def visible(markup: str) -> str:
    """The visible text of a page, one line per block."""
    return _seen(_BLOCK_END.sub("\n", _without_silent(markup)))


def _outline(name: str, found: list[tuple[int, str]], title: str, say: Voice, most: int = 220) -> list[str]:
    """The title, by default the first heading, then the headings below it."""
    if not title and found:
        title, found = found[0][1], found[1:]
    found = [heading for heading in found if heading[1] not in title]
    opening = say(f"{name} 文档", f"{name} document")
    parts = [opening + (say(f"《{title}》", f' "{title}"') if title else "")]
    if found:
        # Deep headings come last: chapters say more about a long page than details of its first section.
        ranked = sorted(range(len(found)), key=lambda at: (found[at][0], at))[:12]
        names = list(dict.fromkeys(found[at][1] for at in sorted(ranked)))
        parts.append(say("标题：", "Headings: ") + say.listed(names, len(found), most=most, name_chars=40))
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
