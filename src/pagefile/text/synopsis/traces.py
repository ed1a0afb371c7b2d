"""Tracebacks: what was raised comes first, then where."""

import re
from collections.abc import Callable
from typing import NamedTuple

from pagefile.text.synopsis.wording import Voice, squeeze

#: How much of a text is searched, from its end, where the last failure is, and from its beginning.
_TAIL_CHARS, _HEAD_CHARS = 100_000, 100_000

_PYTHON = "Traceback (most recent call last):"
_BEGINNING = re.compile(
    r"^(?:Traceback \(most recent call last\):|Exception in thread |panic: |thread '[^'\n]*' |Unhandled exception\b|Caused by: )",
    re.MULTILINE,
)
_PYTHON_RAISED = re.compile(r"^(?:[ |+-]*)((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:: [^\n]*)?)$", re.MULTILINE)
_PYTHON_FRAME = re.compile(r'^[ |]*File "([^"\n]+)", line (\d+)(?:, in ([^\n]+))?', re.MULTILINE)
_JAVA_RAISED = re.compile(
    r"^(?:\S.{0,300}? )?((?:[a-z_]\w*\.)+[A-Z][\w$]*(?:Exception|Error|Throwable|Failure)[\w$]*(?:: [^\n]*)?)(?=\n(?:[^\n]*\n){0,3}?[ \t]+at )",
    re.MULTILINE,
)
_JAVA_CAUSE = re.compile(r"^[ \t]*Caused by: ([^\n]+)", re.MULTILINE)
_JAVA_FRAME = re.compile(r"^[ \t]+at ((?:[\w$]+[./])+[\w$<>]+\([^()\n]*\))", re.MULTILINE)
_SCRIPT_RAISED = re.compile(
    r"^(?:.{0,120}?)\b((?:Uncaught )?(?:[A-Z]\w*)?(?:Error|Exception)(?: \[\w+\])?: [^\n]*)(?=\n(?:[^\n]*\n){0,6}?[ \t]+at )",
    re.MULTILINE,
)
_SCRIPT_CAUSE = re.compile(r"\[cause\]: ([^\n]+)")
_SCRIPT_FRAME = re.compile(
    r"^[ \t]+at (?:async )?((?:[^\n()]+ \()?(?:file://|/|[A-Za-z]:\\|\w)[^\n()]*:\d+(?::\d+)?\)?)",
    re.MULTILINE,
)
_GO_RAISED = re.compile(r"^((?:panic|fatal error): [^\n]+)", re.MULTILINE)
_GO_FRAME = re.compile(
    r"^((?!runtime|panic|testing|goroutine|created)[\w./*()-]{1,200})\([^\n]{0,300}\)\n\t([^\s]+:\d+)",
    re.MULTILINE,
)
_RUST_RAISED = re.compile(r"^thread '([^'\n]*)'(?: \(\d+\))? panicked at ([^\n]*?):?\n([^\n]*)", re.MULTILINE)
_NET_RAISED = re.compile(r"^(?:Unhandled exception[.:] ?)((?:\w+\.)+\w*Exception: [^\n]*)", re.MULTILINE)
_NET_FRAME = re.compile(r"^ {3}at ([^\n]{1,200})", re.MULTILINE)
_SIGNAL = re.compile(
    r"^(?:Program|Thread [^\n]{0,80}) (?:terminated with|received) signal (\w+, [^\n]+)", re.MULTILINE
)
_NATIVE_FRAME = re.compile(
    r"^#\d+ +(?:0x[0-9a-f]+ in )?([^\n(]{1,120}) \([^\n]*?(?: at ([^\s\n]+:\d+))?$", re.MULTILINE
)
_SANITIZER = re.compile(r"^SUMMARY: (\w+Sanitizer: [^\n]+)", re.MULTILINE)
_SANITIZER_FRAME = re.compile(r"^ +#\d+ 0x[0-9a-f]+ in ([^\n]{1,200}?) (\S+:\d+)(?::\d+)?$", re.MULTILINE)
_RUBY_RAISED = re.compile(r"^(\S+\.rb:\d+):in [`'][^\n]*': ([^\n]+ \([A-Z][\w:]*\))", re.MULTILINE)


class Trace(NamedTuple):
    """An exception or a panic."""

    #: Its kind and its message, on one line.
    raised: str
    #: The place that raised it, "" if unknown.
    where: str
    #: How many frames are shown.
    frames: int
    #: What it led to, or what caused it.
    because: str = ""


def trace_in(text: str) -> Trace | None:
    """The last failure that a traceback in the text tells of."""
    read = text if len(text) <= _TAIL_CHARS + _HEAD_CHARS else text[:_HEAD_CHARS] + "\n" + text[-_TAIL_CHARS:]
    for hint, reader in _READERS:
        if hint in read and (found := reader(read)) is not None:
            return found
    return None


def begins_trace(text: str) -> bool:
    """Whether a text has a traceback at the beginning of a line, not in a string of a program."""
    return _BEGINNING.search(text) is not None


def describe_trace(trace: Trace, say: Voice) -> list[str]:
    parts = [squeeze(trace.raised, 110 if trace.because else 170)]
    if trace.because:
        parts.append(say("起于：", "In: ") + squeeze(trace.because, 90))
    if trace.where:
        parts.append(say("位置：", "At ") + squeeze(trace.where, 110))
    if trace.frames > 1:
        parts.append(say(f"调用栈 {trace.frames:,} 层", f"{trace.frames:,} frames"))
    return parts


def _python(text: str) -> Trace | None:
    starts = [match.start() for match in re.finditer(re.escape(_PYTHON), text)]
    raised: list[str] = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        found = _PYTHON_RAISED.search(text, start + len(_PYTHON), end)
        if found:
            raised.append(found[1])
    if not raised:
        return None
    *_, last = raised
    place = text.rfind(last)
    frames = list(_PYTHON_FRAME.finditer(text, starts[-1], max(place, starts[-1])))
    where = f"{frames[-1][1]}:{frames[-1][2]} {frames[-1][3] or ''}" if frames else ""
    return Trace(last, where, len(frames), next((one for one in raised[-2::-1] if one != last), ""))


def _java(text: str) -> Trace | None:
    raised = _JAVA_RAISED.search(text)
    causes = _JAVA_CAUSE.findall(text)
    frames = _JAVA_FRAME.findall(text)
    if not frames or not (raised or causes):
        return None
    top = raised[1] if raised else ""
    if causes:
        place = _JAVA_FRAME.search(text, text.rfind(causes[-1]))
        return Trace(causes[-1], place[1] if place else "", len(frames), top)
    return Trace(top, frames[0], len(frames))


def _script(text: str) -> Trace | None:
    raised = _SCRIPT_RAISED.search(text)
    if raised is None:
        return None
    cause = _SCRIPT_CAUSE.search(text, raised.start())
    frame = _SCRIPT_FRAME.search(text, cause.start() if cause else raised.start())
    where, frames = frame[1] if frame else "", len(_SCRIPT_FRAME.findall(text))
    return Trace(cause[1], where, frames, raised[1]) if cause else Trace(raised[1], where, frames)


def _go(text: str) -> Trace | None:
    raised = _GO_RAISED.search(text)
    if raised is None or "goroutine " not in text:
        return None
    frame = _GO_FRAME.search(text, raised.end())
    count = text.count("\ngoroutine ")
    return Trace(raised[1], f"{frame[1]} {frame[2]}" if frame else "", count)


def _rust(text: str) -> Trace | None:
    found = _RUST_RAISED.search(text)
    return Trace(f"panicked: {found[3]}", f"{found[2]} ({found[1]})", 0) if found else None


def _net(text: str) -> Trace | None:
    found = _NET_RAISED.search(text)
    frame = _NET_FRAME.search(text, found.end()) if found else None
    return Trace(found[1], frame[1] if frame else "", text.count("\n   at ")) if found else None


def _ruby(text: str) -> Trace | None:
    found = _RUBY_RAISED.search(text)
    return Trace(found[2], found[1], text.count("\n\tfrom ")) if found else None


def _native(text: str) -> Trace | None:
    """What a debugger tells of a process that a signal ended."""
    raised = _SIGNAL.search(text)
    frames = _NATIVE_FRAME.findall(text, raised.end()) if raised else []
    if raised is None:
        return None
    return Trace(raised[1], " ".join(frames[0]).strip() if frames else "", len(frames))


def _sanitizer(text: str) -> Trace | None:
    """What AddressSanitizer and its kin found: the summary names it and its place."""
    found = _SANITIZER.search(text)
    frames = _SANITIZER_FRAME.findall(text)
    if found is None:
        return None
    where = "" if not frames or frames[0][0] in found[1] else " ".join(frames[0])
    return Trace(found[1], where, len(frames))


#: By what is worth a closer look, and what looks.
_READERS: tuple[tuple[str, Callable[[str], Trace | None]], ...] = (
    (_PYTHON, _python),
    ("Unhandled exception", _net),
    ("\tat ", _java),
    ("    at ", _java),
    ("  at ", _script),
    ("goroutine ", _go),
    ("panicked at", _rust),
    (".rb:", _ruby),
    (" signal SIG", _native),
    ("Sanitizer: ", _sanitizer),
)
