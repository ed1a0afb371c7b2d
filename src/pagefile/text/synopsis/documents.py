"""Synopses of plain text: its title and headings, mail, subtitles, what was said over HTTP, output of commands."""

import json
import re
from collections import Counter
from email.header import decode_header, make_header
from itertools import islice

from pagefile.text.sentences import sentences
from pagefile.text.synopsis.failures import failure_in
from pagefile.text.synopsis.kinds import line_count
from pagefile.text.synopsis.records import BAD
from pagefile.text.synopsis.wording import Voice, prose, squeeze

_HEADER = re.compile(r"(From|To|Cc|Date|Subject|发件人|收件人|抄送|日期|时间|主题)[:：][ \t]*(.+)")
_CUE = re.compile(r"(?:\d+\n)?\d{1,2}:\d\d(?::\d\d)?[.,]\d{1,3} --> [^\n]+\n")
_SPEAKER = re.compile(
    r"(?:\[?\(?\d{1,2}:\d\d(?::\d\d)?\)?\]?[ \t]*)?([A-Z][\w.'-]*(?: [A-Z][\w.'-]*){0,3}|[\u4e00-\u9fff]{2,6})(?:[ \t]*[\[(（]\d{1,2}:\d\d(?::\d\d)?[\])）])?[:：][ \t]*\S"
)
_CHAPTER = re.compile(
    r"(?m)^[ \t]*(第[一二三四五六七八九十百零〇\d]{1,6}[章编部分节][ \t\u3000]*[^\n]{0,40}|\d{1,2}(?:\.\d{1,2}){0,2}\.?[ \t]+[A-Z\u4e00-\u9fff][^\n.。;；]{2,60}|[一二三四五六七八九十]{1,3}、[^\n。]{2,40}|(?:Chapter|Section|Part|Article) [\dIVX]+\b[^\n]{0,50})$"
)
_ARTICLE = re.compile(r"(?m)^[ \t]*第[一二三四五六七八九十百零〇\d]{1,6}条[ \t\u3000]")
_STATUS_LINE = re.compile(r"^(?:< )?HTTP/[\d.]+ (\d{3})[ \t]*([^\n\r]*)", re.MULTILINE)
_REQUEST_LINE = re.compile(r"^(?:> )?([A-Z]{3,7} \S+) HTTP/", re.MULTILINE)
_ERROR_LINE = re.compile(r"[\s│|>*]*(?:\w+ )?(?:Error|ERROR|error|FATAL|fatal|错误)[:：] ?(\S.+)")
#: `名称：值` below a title, and `name:value` of which a whole text consists.
_FIELD = re.compile(r"[^：:，。]{2,12}[：:]\s*\S.{0,60}")
_NAMED_VALUE = re.compile(r"([A-Za-z_][\w.-]{2,40}):(\S[^\n]{0,200})")
#: A line above a mail, and how far there are such lines.
_HEADER_LINE = re.compile(r"[A-Za-z][\w-]*:")
_HEAD_CHARS = 30_000
#: A line near the end that sums up what is above it.
_TOTAL = re.compile(r"(?i)[\W_]*(?:(?:grand |net )?total|amount due|balance due|合计|总计|共计|应付).*\d")
_END_CHARS = 3000
#: A line that divides.
_DRAWN = re.compile(r"[-=*_#~+.]{5,}")
_LEAD_CHARS = 240
_SENTENCE_END = re.compile(r"[.!?。！？；;]\s|[。！？]")


#: Chapters and articles are counted this far.
_MOST_READ = 2_000_000


def describe_form(text: str, say: Voice) -> list[str] | None:
    """Text of a fixed form, which may look like Markdown or configuration; None if it has none."""
    forms = (_mail, _subtitles, _exchange, describe_dialogue, _metrics, _plan, _fields)
    return next((parts for describe in forms if (parts := describe(text, say))), None)


def describe_text(text: str, say: Voice) -> list[str]:
    """Plain text by its title and its most important sentences, output of a command by its first and last lines."""
    lines = [line.strip() for line in text[:3000].splitlines() if line.strip()]
    title = _title(lines)
    read = text[:_MOST_READ]
    chapters = list(dict.fromkeys(" ".join(match.split()) for match in islice(_CHAPTER.findall(read), 200)))
    articles = len(_ARTICLE.findall(read))
    if not chapters and _is_output(text):
        return _output(text, say)
    parts = [say(f"《{title}》", f'"{title}"')] if title else []
    if (error := _error(text)) is not None:
        parts.append(say("错误：", "Error: ") + _both_ends(error))
    if title and (fields := [line for line in lines[1:8] if _FIELD.fullmatch(line)]):
        parts.append(squeeze(say("；", "; ").join(fields[:4]), 110))
    if articles > 4:
        parts.append(say(f"共 {articles:,} 条", f"{articles:,} articles"))
    if len(chapters) > 1:
        parts.append(
            say("章节：", "Sections: ") + say.listed(chapters, len(chapters), most=110, name_chars=36)
        )
    # A text without a title begins with what it is about.
    first = next((one.strip() for one in sentences(text[:400]) if one.strip()), "")
    lead = squeeze(first, 110) if not parts and len(first) <= _LEAD_CHARS else ""
    told = prose(text, 300)
    return [*parts, lead if lead.rstrip("…") not in told else "", told]


def _both_ends(error: str) -> str:
    """A long error with its end, where the cause is."""
    return squeeze(error, 170) if len(error) <= 170 else f"{squeeze(error, 80)} {error[-85:].strip()}"


def _title(lines: list[str]) -> str:
    """The first line if it is a heading rather than a sentence; with the second if that goes on with it."""
    if len(lines) < 3:
        return ""
    first = " ".join(lines[0].split())
    if (
        not 3 < len(first) <= 90
        or first[-1] in ".。,，;；:：!！?？…"
        or re.search(r"[{}<>=|]|https?:", first)
    ):
        return ""
    # A Chinese character says about as much as two letters.
    wide = 2 if re.search(r"[\u4e00-\u9fff]", first) else 1
    longer = max(len(line) for line in lines[1:8]) * wide
    second = " ".join(lines[1].split())
    goes_on = 3 < len(second) <= 60 and second[-1] not in ".。,，;；" and len(lines) > 4
    return f"{first}, {second}" if goes_on and longer > 60 else first if longer > 30 else ""


def _error(text: str) -> str | None:
    """What a program that stopped says last, in lines rather than in prose."""
    lines = text[-4000:].splitlines()
    found = [match[1] for line in lines if (match := _ERROR_LINE.match(line))]
    return found[0] if found and len(text) < 200 * (line_count(text) + 1) else None


def _fields(text: str, say: Voice) -> list[str] | None:
    """Names and values, one a line, below the names of sections."""
    lines = [line.strip() for line in text[:20_000].splitlines() if line.strip() and line[0] != "#"]
    found = [match for line in lines if (match := _NAMED_VALUE.fullmatch(line))]
    if len(found) < 8 or len(found) < 0.8 * len(lines):
        return None
    bad = [match[0] for match in found if re.search(r"(?i)\b(?:err|error|fail\w*|down|critical)\b", match[2])]
    told = say.listed([match[0] for match in found], len(found), most=150, name_chars=50)
    return [
        say(f"{len(found):,} 个字段：{told}", f"{len(found):,} fields: {told}"),
        say("异常：", "Notable: ") + squeeze(", ".join(bad), 90) if bad else "",
    ]


def _is_output(text: str) -> bool:
    """Whether a text is lines rather than sentences."""
    lines = [line for line in text[:8000].splitlines() if line.strip()]
    return len(lines) > 4 and sum(bool(_SENTENCE_END.search(line + " ")) for line in lines) < 0.3 * len(lines)


def _output(text: str, say: Voice) -> list[str]:
    lines = [" ".join(line.split()) for line in text[:20_000].splitlines() if line.strip()]
    lines = [line for line in lines if not _DRAWN.fullmatch(line)] or lines
    last = [" ".join(line.split()) for line in text[-1500:].splitlines() if line.strip()][-2:]
    bad = next((line for line in lines[1:] if line not in last and BAD.search(line[:300])), "")
    end = [" ".join(line.split()) for line in text[-_END_CHARS:].splitlines()]
    total = next((line for line in reversed(end) if _TOTAL.match(line) and line not in last), "")
    count = line_count(text.strip())
    return [
        say(f"{count:,} 行：", f"{count:,} lines: ") + squeeze(lines[0], 90),
        say("异常：", "Notable: ") + squeeze(bad, 90) if bad else "",
        squeeze(total, 80),
        say("结尾：", "Ends: ") + squeeze(" | ".join(last), 150),
        squeeze(" | ".join(lines[1:12]), 250),
    ]


def _headers(text: str) -> list[str]:
    """The lines above a mail: those that its servers added, too, each with what goes on below it, and readable."""
    head = re.sub(r"\r?\n[ \t]+", " ", text[:_HEAD_CHARS]).partition("\n\n")[0].splitlines()
    if not all(_HEADER_LINE.match(line) for line in head[:5]):
        head = text[:3000].splitlines()[:25]
    return [_readable(line) if "=?" in line else line for line in head]


def _readable(header: str) -> str:
    """A header whose letters a mail could not carry as they are."""
    try:
        return str(make_header(decode_header(header)))
    except (LookupError, ValueError):
        return header


def _mail(text: str, say: Voice) -> list[str] | None:
    found = {match[1]: match[2].strip() for line in _headers(text) if (match := _HEADER.match(line))}
    subject = found.get("Subject") or found.get("主题")
    if subject is None or len(found) < 2:
        return None
    sender = found.get("From") or found.get("发件人") or ""
    mails = len(re.findall(r"(?m)^(?:> ?)*(?:From|发件人)[:：] ", text))
    body = text.partition("\n\n")[2] or text
    many = say(f"，{mails} 封", f", {mails} messages") if mails > 1 else ""
    return [
        say(f"邮件{many}：{squeeze(subject, 90)}", f"Mail{many}: {squeeze(subject, 90)}"),
        say("发件人：", "From ") + squeeze(sender, 50) if sender else "",
        prose(body, 240),
    ]


def _subtitles(text: str, say: Voice) -> list[str] | None:
    cues = len(_CUE.findall(text)) if " --> " in text[:2000] else 0
    if cues < 3 or cues * 8 < line_count(text):
        return None
    spoken = _CUE.sub("", text[:60_000]).replace("WEBVTT", "")
    lines = [line.strip() for line in spoken.splitlines() if line.strip()]
    end = re.findall(r"--> (\d{1,2}:\d\d(?::\d\d)?)", text[-2000:])
    long = say(f"，到 {end[-1]}", f", until {end[-1]}") if end else ""
    return [
        say(f"字幕，{cues:,} 条{long}：", f"Subtitles, {cues:,} cues{long}: ")
        + squeeze(" ".join(lines[:2]), 110),
        prose("\n".join(lines), 240),
    ]


def describe_dialogue(text: str, say: Voice) -> list[str] | None:
    lines = [line.strip() for line in text[:20_000].splitlines() if line.strip()]
    names = [match[1] for line in lines if (match := _SPEAKER.match(line))]
    speakers = Counter(names)
    if (
        len(names) < 6
        or len(names) < 0.5 * len(lines)
        or not 2 <= len(speakers) <= 12
        or len(names) < 3 * len(speakers)
    ):
        return None
    # Who speaks once above all others is a field: the subject, the date.
    first = _SPEAKER.match(lines[0])
    opening = lines[0] if first is None or speakers[first[1]] == 1 else ""
    often = [name for name, times in speakers.most_common() if times > 1]
    told = say.listed(often, len(often), most=70)
    rest = lines[1:] if opening else lines
    said = "\n".join(line[match.end() - 1 :] if (match := _SPEAKER.match(line)) else line for line in rest)
    return [
        squeeze(opening, 90),
        say(
            f"对话，{line_count(text):,} 行，参与者：{told}",
            f"Dialogue of {line_count(text):,} lines between {told}",
        ),
        prose(said, 260),
    ]


def _exchange(text: str, say: Voice) -> list[str] | None:
    """What was asked over HTTP, what the answer was, and what it said."""
    if "HTTP/" not in text[:60_000]:
        return None
    statuses = list(islice(_STATUS_LINE.finditer(text[:60_000]), 20))
    if not statuses:
        return None
    asked = _REQUEST_LINE.search(text[:60_000])
    code, phrase = statuses[-1][1], statuses[-1][2].strip()
    body = "\n".join(
        line
        for line in text[statuses[-1].end() :].splitlines()
        if not re.match(r"[<>*{}] |[<>]\s*$|\{ \[|\} \[|[\w-]+: ", line)
    ).strip()
    said = _failure(body) or squeeze(body, 200)
    opening = f"HTTP {code} {phrase}".strip() + (say(f"（{asked[1]}）", f" for {asked[1]}") if asked else "")
    return [opening, said]


def _metrics(text: str, say: Voice) -> list[str] | None:
    """What a program exposes to Prometheus."""
    names = _marked("# TYPE ", r"(?m)^# TYPE (\S+ \w+)$", text)
    if not names:
        return None
    series = re.findall(r"(?m)^[a-zA-Z_:][\w:]*(?:\{[^\n]*\})? [^\s]+", text)
    told = say.listed(names, len(names), most=150)
    return [
        say(
            f"Prometheus 指标，{len(names):,} 个，{len(series):,} 条序列：",
            f"Prometheus metrics, {len(names):,} with {len(series):,} series: ",
        )
        + told,
        say("如：", "E.g. ") + squeeze(series[0], 120) if series else "",
    ]


def _marked(mark: str, pattern: str, text: str) -> list[str]:
    """What a pattern finds in a text; searched only if its beginning has the mark, for most texts have none."""
    return re.findall(pattern, text) if mark in text[:20_000] else []


def _plan(text: str, say: Voice) -> list[str] | None:
    """How a database ran a query: how long it took, and its outermost step."""
    steps = _marked(" (cost=", r"(?m)^ *(?:-> +)?(\S[^\n]{0,200}?) {1,4}\(cost=", text)
    if not steps:
        return None
    took = re.search(r"Execution Time: ([\d.]+) ms", text)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    long = f"{float(took[1]) / 1000:,.1f} s" if took and len(took[1]) < 15 else ""
    scans = [f"{step} ×{count}" for step, count in Counter(steps).most_common(4)]
    return [
        say(f"执行计划，{len(steps):,} 步", f"Query plan of {len(steps):,} steps")
        + (say(f"，执行 {long}", f", executed in {long}") if long else ""),
        squeeze(first, 120),
        _longest_step(text, say),
        say("步骤：", "Steps: ") + say.listed(scans, len(scans), most=140),
    ]


def _longest_step(text: str, say: Voice) -> str:
    """The scan that took longest: what is above it waits for it."""
    found = [
        (float(ended) * int(loops), step)
        for step, ended, loops in re.findall(
            r"(?m)^ *(?:-> +)?([^\n]{0,40}Scan[^\n(]{0,160}?) +\(cost=[^\n]{0,90}actual time=[\d.]{1,15}\.\.([\d.]{1,15}) rows=\d+ loops=(\d{1,9})",
            text,
        )
    ]
    if not found:
        return ""
    took, step = max(found)
    return say("最慢的扫描：", "Slowest scan: ") + f"{squeeze(step, 80)}, {took / 1000:,.1f} s"


def _failure(body: str) -> str:
    if body[:1] != "{" or len(body) > 20_000:
        return ""
    try:
        return failure_in(json.loads(body)) or ""
    except (ValueError, RecursionError):
        return ""
