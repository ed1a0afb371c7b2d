"""Synopses of texts that programs exchange and that have a form of their own: calendars, contacts, certificates, papers, bibliographies, blame."""

import re
from collections import Counter
from collections.abc import Callable

from pagefile.text.synopsis.kinds import line_count
from pagefile.text.synopsis.wording import Voice, prose, squeeze

#: Where its form shows, and how much is read of a long text.
_BEGINNING, _MOST_READ = 5_000, 2_000_000
_CARD_FIELD = re.compile(r"(?m)^(SUMMARY|FN|X-WR-CALNAME|DTSTART)[^:\n]*:([^\r\n]+)")
_BLAMED = re.compile(
    r"(?m)^\^?[0-9a-f]{7,40} (?:[^\s(]+ +)?\((\S[^\n]{0,60}?) +(\d{4}-\d\d-\d\d) \d\d:\d\d:\d\d [+-]\d{4} +\d+\)([^\n]*)"
)
_ENTRY = re.compile(r"(?m)^@(\w+)\s*\{")
_ENTRY_TITLE = re.compile(r"(?mi)^[ \t]*title\s*=\s*[{\"]+([^}\"\n]+)")
_COMMAND = re.compile(r"\\[A-Za-z]+\*?|[{}~]|(?<!\\)%[^\n]*")


def describe_exchanged(text: str, say: Voice) -> list[str] | None:
    """What such a text has in it; None if it is none."""
    start = text[:_BEGINNING]
    fitting = (describe for begins, describe in _FORMS if begins.search(start))
    return next((parts for describe in fitting if (parts := describe(text[:_MOST_READ], say))), None)


def _calendar(text: str, say: Voice) -> list[str] | None:
    found: dict[str, list[str]] = {}
    for name, value in _CARD_FIELD.findall(text):
        found.setdefault(name, []).append(value.strip())
    events, contacts = text.count("BEGIN:VEVENT"), text.count("BEGIN:VCARD")
    if not events and not contacts:
        return None
    titles = Counter(found.get("SUMMARY" if events else "FN", ()))
    told = say.listed(titles, len(titles), most=150)
    days = sorted(found.get("DTSTART", ()))
    name = found.get("X-WR-CALNAME", [""])[0]
    if not events:
        return [say(f"通讯录，{contacts:,} 人：{told}", f"Contacts, {contacts:,}: {told}")]
    return [
        say(f"日历{name}，{events:,} 项日程", f"Calendar {name}, {events:,} events".replace(" ,", ","))
        + (say(f"，{days[0][:8]} 至 {days[-1][:8]}", f", {days[0][:8]} to {days[-1][:8]}") if days else ""),
        told,
    ]


def _certificate(text: str, say: Voice) -> list[str] | None:
    def field(pattern: str) -> str:
        found = re.search(pattern, text)
        return " ".join(found[1].split()) if found else ""

    subject, until = field(r"Subject: *([^\n]+)"), field(r"Not After *: *([^\n]+)")
    if not subject or not until:
        return None
    names, issuer = field(r"(DNS:[^\n]+)"), field(r"Issuer: *([^\n]+)")
    return [
        say(f"证书 {subject}，有效期至 {until}", f"Certificate of {subject}, valid until {until}"),
        squeeze(names, 120),
        say("签发者：", "Issued by ") + squeeze(issuer, 80) if issuer else "",
    ]


def _paper(text: str, say: Voice) -> list[str] | None:
    def argument(command: str) -> list[str]:
        found = re.findall(rf"\\{command}\*?(?:\[[^\[\]\n]*\])?\{{((?:[^{{}}]|\{{[^{{}}]*\}})*)\}}", text)
        return [" ".join(_COMMAND.sub(" ", one).split()) for one in found]

    sections = argument("(?:chapter|section)")
    titles = argument("title") or argument("frametitle")
    if not titles and not sections:
        return None
    abstract, end, _ = text.partition(r"\begin{abstract}")[2].partition(r"\end{abstract}")
    body = abstract if end else text.partition(r"\begin{document}")[2] or text
    title, authors = squeeze(titles[0], 110) if titles else "", " ".join(argument("author")[:1])
    by = say(f"，{authors}", f" by {authors}") if authors else ""
    return [
        say(f"LaTeX《{title}》{by}", f'LaTeX "{title}"{by}') if title else "LaTeX",
        prose(_COMMAND.sub(" ", body[:8000]), 160),
        say("章节：", "Sections: ") + say.listed(sections, len(sections), most=110) if sections else "",
    ]


def _bibliography(text: str, say: Voice) -> list[str] | None:
    kinds = Counter(kind.casefold() for kind in _ENTRY.findall(text))
    titles = [" ".join(title.split()) for title in _ENTRY_TITLE.findall(text)]
    if not titles:
        return None
    told = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common(4))
    count = sum(kinds.values())
    return [
        say(f"BibTeX 文献，{count:,} 条（{told}）", f"BibTeX, {count:,} entries ({told})"),
        say.listed(titles, len(titles), most=220),
    ]


def _blame(text: str, say: Voice) -> list[str] | None:
    found = _BLAMED.findall(text)
    if len(found) < 3 or len(found) < 0.8 * line_count(text.strip()):
        return None
    authors = Counter(author for author, _, _ in found)
    who = say.listed([f"{name} {count:,}" for name, count in authors.most_common()], len(authors), most=90)
    author, day, line = max(found, key=lambda one: one[1])
    return [
        say(f"git blame，{len(found):,} 行：{who}", f"git blame of {len(found):,} lines: {who}"),
        say("最新：", "Newest: ") + squeeze(f"{author} {day} {line.strip()}", 140),
    ]


#: How such a text begins, at the beginning of a line, and what describes it.
_FORMS: tuple[tuple[re.Pattern[str], Callable[[str, Voice], list[str] | None]], ...] = (
    (re.compile(r"(?m)^BEGIN:V(?:CALENDAR|CARD|EVENT)\s*$"), _calendar),
    (re.compile(r"(?m)^[ \t]*Not After *:"), _certificate),
    (re.compile(r"(?m)^[ \t]*\\(?:documentclass\b|begin\{document\}|title\{)"), _paper),
    (re.compile(r"(?m)^@(?:article|inproceedings|book|misc|phdthesis)\s*\{"), _bibliography),
    (_BLAMED, _blame),
)
