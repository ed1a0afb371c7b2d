"""What version control, directories and searches in files print: diffs, histories, states, listings, hits."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import PurePosixPath

from pagefile.text.synopsis.wording import Voice, squeeze

#: How many lines are read of a listing, and how many decide whether it is one.
_MOST_LINES = 20_000
_ASKED_LINES = 60
_LINE_CHARS = 300

_DIFF_FILE = re.compile(
    r"^diff --git (?:\"?a/)?(.+?)\"? \"?b/(.+?)\"?$|^\+\+\+ (?:b/)?([^\t\n]+)", re.MULTILINE
)
_DIFF_CHANGE = re.compile(r"^([+-])(?!\+\+ |-- )", re.MULTILINE)
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)
_SHORT_STAT = re.compile(r"^ ?(\d+ files? changed.*)$", re.MULTILINE)
_COMMIT = re.compile(r"^commit [0-9a-f]{7,40}\b.*\n(?:.+\n){1,8}\n {4}(.+)", re.MULTILINE)
_COMMIT_LINE = re.compile(r"(?:[*|\\/ ]+ )?([0-9a-f]{7,12}) (?:\([^()\n]*\) )?(\S.*)$")
_DATE = re.compile(r"^(?:Author)?Date: +(.+?)(?: [+-]\d{4})?$", re.MULTILINE)
_STATUS = re.compile(r"(?:On branch|HEAD detached|位于分支|头指针) ?(.*)")
_SHORT_STATE = re.compile(r"(?:[ MADRCUT?!]{2}) \S")
_STATE_FILE = re.compile(r"^\t(?:([^\s:：][^:：\n]*)[:：] +)?(\S.*)$", re.MULTILINE)
_UNMERGED = re.compile(r"(?i)unmerged paths|尚未合并|未合并的路径|you have unmerged|both modified|双方修改")
_BLAME = re.compile(r"\^?[0-9a-f]{7,40} (?:\S+ +)?\((.+?) +(\d{4}-\d\d-\d\d)[ \d:+-]*\s(\d+)\) ?(.*)")
_LONG_ENTRY = re.compile(
    r"[-dlbcps][rwxsStT-]{9}[.+@]? +\d+ +\S+ +\S+ +([\d.,]+[KMGT]?) +(\S+ +\S+ +\S+|\d{4}-\d\d-\d\d \d\d:\d\d) (.+)"
)
_TREE_ENTRY = re.compile(r"[│|\s]*[├└|`](?:──|--) ?(.+)")
_TREE_COUNT = re.compile(r"^(\d+ director(?:y|ies)(?:, \d+ files?)?|\d+ 个目录.*)$", re.MULTILINE)
_PATH = re.compile(r"(?:\.{0,2}/)?[\w.@+~-][^\s:;,=(){}<>|\"']*+(?: [^\s:;,=(){}<>|\"']++)?$")
_HIT = re.compile(r"(?=[^\s:]*[./])([^\s:]++):(\d+)(?::\d+)?:(.*)")
#: `rg --heading`: the name of a file, and below it hits with their lines.
_HEADED = re.compile(r"\A\s*(?=\S*[./])[^\s:]+\n\d+[:-]")
_UNDER_NAME = re.compile(r"\d+[:-]")
#: A line beside a hit, as `-C` shows it.
_NEAR = re.compile(r"(?=[^\s:]*[./])[^\s:]*?-\d+-|--$")

Describe = Callable[[str, Sequence[str], Voice], list[str] | None]


def describe_repository(text: str, say: Voice) -> list[str] | None:
    """What a text of this kind says; None if it is of none."""
    lines = [line[:_LINE_CHARS] for line in text[:60_000].splitlines() if line.strip()]
    if not lines:
        return None
    return next((parts for describe in _DESCRIBE if (parts := describe(text, lines, say))), None)


def describe_places(text: str, say: Voice) -> list[str] | None:
    """What a list of hits or of paths says; None if the text is neither."""
    return describe_hits_in_files(text, say) or _paths(text, say)


def _asked(text: str) -> list[str]:
    return [line[:_LINE_CHARS] for line in text[:60_000].splitlines() if line.strip()][:_ASKED_LINES]


def _diff(text: str, lines: Sequence[str], say: Voice) -> list[str] | None:
    hunks = len(_HUNK.findall(text)) if "@@ -" in text else 0
    if not hunks or not any(line.startswith(("diff --git ", "--- ", "Index: ")) for line in lines[:200]):
        return None
    files = list(dict.fromkeys(match[2] or match[3] for match in _DIFF_FILE.finditer(text)))
    files = [name for name in files if name != "/dev/null"]
    marks = Counter(match[1] for match in _DIFF_CHANGE.finditer(text, text.find("@@ ")))
    counted = f"+{marks['+']:,} −{marks['-']:,}"
    changed: Counter[str] = Counter()
    for name, piece in zip(
        files, re.split(r"^(?=diff --git |Index: )", text, flags=re.MULTILINE)[1:], strict=False
    ):
        changed[name] = len(_DIFF_CHANGE.findall(piece))
    most = [name for name, _ in changed.most_common()] or files
    return [
        say(
            f"diff，{len(files):,} 个文件，{counted}，{hunks:,} 处：",
            f"Diff of {len(files):,} files, {counted}, {hunks:,} hunks: ",
        )
        + say.listed(most, len(most), most=220, name_chars=70),
        _first_change(text, say),
    ]


def _first_change(text: str, say: Voice) -> str:
    start = text.find("\n@@ ")
    found = re.search(r"^\+(?!\+\+ )\s*(\S[^\n]{8,})", text[start : start + 20_000], re.MULTILINE)
    return say("新增如：", "Adds e.g. ") + squeeze(found[1], 100) if found else ""


def _stat(text: str, lines: Sequence[str], say: Voice) -> list[str] | None:
    found = _SHORT_STAT.search(text[-200:])
    if found is None:
        return None
    rows = [line for line in lines if re.match(r" ?\S.* \| +\d+ [+-]*$| ?\S.* \| Bin", line)]
    if not rows or len(rows) < 0.5 * len(lines):
        return None
    names = [row.split(" | ")[0].strip() for row in rows]
    return [found[1] + say("：", ": ") + say.listed(names, len(names), most=220)]


def _history(text: str, lines: Sequence[str], say: Voice) -> list[str] | None:
    subjects = [match[1] for match in _COMMIT.finditer(text)] if lines[0].startswith("commit ") else []
    if not subjects:
        matched = [_COMMIT_LINE.match(line) for line in lines[:_ASKED_LINES]]
        if len(lines) < 2 or sum(map(bool, matched)) < 0.75 * len(matched):
            return None
        subjects = [
            match[2]
            for line in text.splitlines()[:_MOST_LINES]
            if (match := _COMMIT_LINE.match(line[:_LINE_CHARS]))
        ]
    number = max(len(subjects), len(re.findall(r"^commit [0-9a-f]{7,40}\b", text, re.MULTILINE)))
    dates = _DATE.findall(text)
    span = say(f"，{dates[-1]} 至 {dates[0]}", f", {dates[-1]} to {dates[0]}") if dates else ""
    return [
        say(f"git 历史，{number:,} 个提交{span}", f"Git history, {number:,} commits{span}"),
        say("最新：", "Latest: ") + say.listed(subjects, len(subjects), most=300, name_chars=90),
    ]


def _state(text: str, lines: Sequence[str], say: Voice) -> list[str] | None:
    branch = _STATUS.match(lines[0])
    if branch is None:
        return _short_state(lines, say)
    files = [(match[1] or "", match[2]) for match in _STATE_FILE.finditer(text)]
    states = Counter(state.strip() for state, _ in files if state)
    untracked = sum(not state for state, _ in files)
    counted = [f"{state} {count}" for state, count in states.most_common()]
    counted += [say(f"未跟踪 {untracked}", f"untracked {untracked}")] if untracked else []
    conflict = say("有未合并的冲突，", "unmerged conflicts, ") if _UNMERGED.search(text) else ""
    apart = next((line.strip() for line in lines[1:3] if re.search(r"\d", line)), "")
    clean = "" if files else next((line for line in lines if re.search(r"(?i)clean|干净|无文件", line)), "")
    opening = say(f"git 状态，分支 {branch[1]}：", f"Git status, branch {branch[1]}: ")
    names = [name for _, name in files]
    return [
        opening + conflict + say("、", ", ").join(counted) + clean,
        say.listed(names, len(names), most=200),
        apart,
    ]


def _short_state(lines: Sequence[str], say: Voice) -> list[str] | None:
    marked = [line for line in lines if _SHORT_STATE.match(line)]
    if (
        len(marked) < 2
        or len(marked) < 0.9 * len(lines)
        or not any("?" in line[:2] or "M" in line[:2] for line in marked)
    ):
        return None
    counted = Counter(line[:2].strip() for line in marked)
    told = ", ".join(f"{state} {count:,}" for state, count in counted.most_common())
    names = [line[3:] for line in marked]
    return [
        say(f"git 状态，{len(marked):,} 个文件（{told}）：", f"Git status, {len(marked):,} files ({told}): ")
        + say.listed(names, len(names), most=260)
    ]


def _blame(text: str, lines: Sequence[str], say: Voice) -> list[str] | None:
    found = (
        [match for line in lines if (match := _BLAME.match(line))]
        if any(map(_BLAME.match, lines[:3]))
        else []
    )
    if len(found) < 3 or len(found) < 0.9 * len(lines):
        return None
    total = text.count("\n") + (not text.endswith("\n"))
    authors = Counter(match[1].strip() for match in found)
    newest = max(found, key=lambda match: match[2])
    told = ", ".join(f"{name} {count:,}" for name, count in authors.most_common(5))
    named = [
        name[1]
        for match in found
        if (name := re.match(r"\s*(?:async )?((?:def|class|func|function|fn) \w+)", match[4]))
    ]
    return [
        say(f"git blame，{total:,} 行：", f"Git blame of {total:,} lines: ") + told,
        say("定义：", "Defines: ") + say.listed(named, len(named), most=100) if named else "",
        say(f"最近改动 {newest[2]} {newest[1].strip()}：", f"Latest {newest[2]} by {newest[1].strip()}: ")
        + squeeze(newest[4], 120),
    ]


def _entries(text: str, lines: Sequence[str], say: Voice) -> list[str] | None:
    """`ls -l`: how many, of which kinds, the largest and the newest names."""
    if not any(map(_LONG_ENTRY.match, lines[:6])):
        return None
    found = [
        match for line in text.splitlines()[:_MOST_LINES] if (match := _LONG_ENTRY.match(line[:_LINE_CHARS]))
    ]
    if len(found) < 2 or len(found) < 0.6 * min(len(lines), _MOST_LINES):
        return None
    names = [match[3] for match in found if match[3] not in (".", "..")]
    folders = sum(match[0][0] == "d" for match in found)
    largest = max(found, key=lambda match: _bytes(match[1]))
    return [
        _listing(names, folders, say),
        say("最大：", "Largest: ") + f"{largest[3]} ({largest[1]})",
        say.listed(names, len(names), most=200),
    ]


def _listing(names: Sequence[str], folders: int, say: Voice) -> str:
    kinds = Counter(
        suffix
        for name in names
        if (suffix := PurePosixPath(name.split(" -> ")[0]).suffix) and len(suffix) <= 10
    )
    told = ", ".join(f"{suffix} {count:,}" for suffix, count in kinds.most_common(4))
    many = say(f"，{folders:,} 个目录", f", {folders:,} directories") if folders else ""
    opening = say(f"目录列表，{len(names):,} 项{many}", f"Directory listing, {len(names):,} entries{many}")
    return f"{opening}{say('（', ' (')}{told}{say('）', ')')}" if told else opening


def _bytes(size: str) -> float:
    number, unit = (size[:-1], size[-1]) if size[-1:] in "KMGT" else (size, "")
    try:
        return float(number.replace(",", "")) * 1024 ** (" KMGT".index(unit or " "))
    except ValueError:
        return 0.0


def _tree(text: str, lines: Sequence[str], say: Voice) -> list[str] | None:
    if not any(map(_TREE_ENTRY.match, lines[:6])):
        return None
    found = [
        match[1]
        for line in text.splitlines()[:_MOST_LINES]
        if (match := _TREE_ENTRY.match(line[:_LINE_CHARS]))
    ]
    if len(found) < 3 or len(found) < 0.7 * len(lines):
        return None
    counted = _TREE_COUNT.search(text[-300:])
    root = lines[0].strip() if not _TREE_ENTRY.match(lines[0]) else ""
    top = [
        match[1]
        for line in text.splitlines()[:_MOST_LINES]
        if line[:1] in "├└|`" and (match := _TREE_ENTRY.match(line[:_LINE_CHARS]))
    ]
    return [
        say(f"目录树 {root}，", f"Directory tree {root}, ")
        + (counted[1] if counted else say(f"{len(found):,} 项", f"{len(found):,} entries")),
        say("顶层：", "Top: ") + say.listed(top, len(top), most=120) if top else "",
        _listing(found, 0, say),
    ]


def describe_hits_in_files(text: str, say: Voice) -> list[str] | None:
    """grep and rg: hits by file."""
    if _HEADED.search(text[:_LINE_CHARS]):
        text = _named_again(text)
    asked = _asked(text)
    matched = [match for line in asked if (match := _HIT.match(line))]
    near = sum(bool(_NEAR.match(line)) for line in asked) if matched else 0
    if len(asked) < 2 or not matched or len(matched) + near < 0.7 * len(asked):
        return None
    hits = [match for line in text.splitlines()[:_MOST_LINES] if (match := _HIT.match(line[:_LINE_CHARS]))]
    files = Counter(match[1] for match in hits)
    names = [f"{name} ({count})" for name, count in files.most_common()]
    return [
        say(f"{len(hits):,} 处命中，{len(files):,} 个文件：", f"{len(hits):,} hits in {len(files):,} files: ")
        + say.listed(names, len(names), most=110, name_chars=80),
        say("如：", "E.g. ") + squeeze(hits[0][3], 100),
        squeeze(hits[len(hits) // 2][3], 90) if len(hits) > 2 else "",
    ]


def _named_again(text: str) -> str:
    """Hits below the name of their file, each with the name before it."""
    lines: list[str] = []
    name = ""
    for line in islice(text.splitlines(), _MOST_LINES):
        if _UNDER_NAME.match(line) and name:
            lines.append(f"{name}{'-' if line.lstrip('0123456789')[:1] == '-' else ':'}{line}")
        else:
            name = line.strip()
    return "\n".join(lines)


def _paths(text: str, say: Voice) -> list[str] | None:
    """`find`, `ls`, `git ls-files`: a path on every line."""
    asked = _asked(text)
    paths = [line for line in asked if _PATH.match(line)]
    telling = sum(bool(re.search(r"/|\.\w{1,6}$", line)) for line in paths)
    if len(asked) < 3 or len(paths) < 0.9 * len(asked) or telling < 0.6 * len(asked):
        return None
    every = [line.strip() for line in text.splitlines()[:_MOST_LINES] if line.strip()]
    shared = _shared_folder(every)
    below = [name[len(shared) :].removeprefix("./").strip("/") for name in every]
    tops = Counter(name.split("/")[0] + "/" for name in below if "/" in name)
    told = [f"{name} ({count:,})" for name, count in tops.most_common(6) if count > 1]
    return [
        _listing(every, 0, say) + (say(f"，位于 {shared}", f" below {shared}") if len(shared) > 1 else ""),
        say("多在：", "Mostly in ") + say.listed(told, len(told), most=110) if told else "",
        say("如：", "E.g. ") + say.listed(below, len(below), most=200, name_chars=90),
    ]


def _shared_folder(paths: Sequence[str]) -> str:
    first, last = min(paths), max(paths)
    length = next(
        (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first)
    )
    return first[:length].rpartition("/")[0]


_DESCRIBE: tuple[Describe, ...] = (_diff, _stat, _history, _state, _blame, _entries, _tree)
