"""What is not text: base64, dumps of bytes, bytes that were decoded by force. Named and measured, never shown."""

import base64
import binascii
import re

from pagefile.text.synopsis.wording import Voice, squeeze

_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{4}[\r\n]*){40,}")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.-]+)*;base64,")
_HEX_LINE = re.compile(r"(?:0x)?([0-9a-f]{4,16}):?[ \t]+((?:[0-9a-f]{2,8}[ \t]+){3,})(.*)", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z\u4e00-\u9fff][\w ./-]{3,}")
_ODD = re.compile(r"[\ufffd\x00-\x07\x0e-\x1a\x1c-\x1f]")
#: How files of the common kinds begin.
_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF8", "GIF"),
    (b"%PDF", "PDF"),
    (b"PK\x03\x04", "ZIP/Office"),
    (b"\x1f\x8b", "gzip"),
    (b"\x7fELF", "ELF"),
    (b"RIFF", "RIFF (WebP, WAV, AVI)"),
    (b"OggS", "Ogg"),
    (b"ID3", "MP3"),
    (b"MZ", "Windows"),
    (b"BM", "BMP"),
    (b"SQLite", "SQLite"),
    (b"\xd0\xcf\x11\xe0", "Office"),
)


def is_base64(text: str) -> bool:
    """Whether a string is nothing but base64, long enough to be data."""
    head = text[:4000].strip()
    if _DATA_URL.match(head):
        return True
    lines = head.split()
    if len(head) < 160 or any(len(line) < 40 for line in lines[:-1]) or not _BASE64.match("".join(lines)):
        return False
    body = "".join(lines)[:1000]
    mixed = (
        bool(re.search(r"[A-Z]", body)) and bool(re.search(r"[a-z]", body)) and bool(re.search(r"\d", body))
    )
    return mixed and len(_BASE64.sub("", "".join(lines)).strip("=")) < 4


#: Base64 inside a text, on one line or wrapped, also in a string of JSON.
_RUN = re.compile(
    r"(?:data:[\w.+-]+/[\w.+-]+(?:;[\w=.-]+)*;base64,)?(?:[A-Za-z0-9+/_-]{40,}+(?:\\[rn]|[\r\n])*+)++={0,2}"
)
#: Shorter runs are tokens and hashes.
_RUN_CHARS = 800
_STEP_CHARS = 500_000
#: Takes the place of base64 in a text whose offsets must stay what they are. Nothing real contains it.
_FILL = "\ue000"


def has_base64(text: str) -> bool:
    """Whether a text contains the bytes of a file."""
    # In steps: other threads wait while a pattern looks for the next place. A run that a step cuts is long enough in one of the two.
    return len(text) >= _RUN_CHARS and any(
        _is_file(run[0])
        for start in range(0, len(text), _STEP_CHARS)
        for run in _RUN.finditer(text, start, start + _STEP_CHARS + 3 * _RUN_CHARS)
    )


def masked(text: str) -> str:
    """The text with a note in place of base64, of the same length; `unmasked` gives what can be read."""
    return _RUN.sub(_masked_run, text) if has_base64(text) else text


def unmasked(text: str) -> str:
    """A text, or a part of one, that was masked, as it is shown."""
    return text.replace(_FILL, "")


def _masked_run(run: re.Match[str]) -> str:
    text = run[0]
    if not _is_file(text):
        return text
    body = text[url.end() :] if (url := _DATA_URL.match(text)) else text
    kind = (url[1] if url and url[1] else "") or beginning_of(body)
    size = sum(map(len, re.split(r"\\[rn]|\s", body))) * 3 // 4 - body[-2:].count("=")
    note = f"[base64: {kind}, {size:,} bytes]" if kind else f"[base64: {size:,} bytes]"
    return note.ljust(len(text), _FILL)


def _is_file(run: str) -> bool:
    sample = run[:2000]
    mixed = all(re.search(letters, sample) for letters in ("[A-Z]", "[a-z]", r"\d"))
    return len(run) >= _RUN_CHARS and mixed


def describe_base64(text: str, say: Voice) -> str:
    """What base64 holds, and how much of it."""
    stripped = text.strip()
    url = _DATA_URL.match(stripped)
    body = stripped[url.end() :] if url else stripped
    kind = (url[1] if url and url[1] else "") or beginning_of(body)
    size = len(body) * 3 // 4 - body[-2:].count("=")
    named = f"{kind} " if kind else ""
    return say(
        f"base64 编码的二进制数据：{named}约 {size:,} 字节",
        f"Binary data in base64: {named}about {size:,} bytes",
    )


def beginning_of(encoded: str) -> str:
    """The kind of file that base64 begins."""
    head = "".join(encoded[:64].split())[:32].replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(head[: len(head) // 4 * 4])
    except (binascii.Error, ValueError):
        return ""
    return next((name for start, name in _BEGINNINGS if data.startswith(start)), "")


def describe_bytes(text: str, say: Voice) -> list[str] | None:
    """Base64, a dump, or bytes that are no text; None for everything else."""
    if is_base64(text):
        return [describe_base64(text, say)]
    return _dump(text, say) or _undecoded(text, say)


def _dump(text: str, say: Voice) -> list[str] | None:
    lines = text[:4000].split("\n")[:-1][:30]
    found = [match for line in lines if (match := _HEX_LINE.match(line))]
    if len(found) < 2 or len(found) < 0.8 * len(lines):
        return None
    first = bytes.fromhex("".join(re.findall(r"[0-9a-fA-F]{2}", found[0][2])[:16]))
    kind = next((name for start, name in _BEGINNINGS if first.startswith(start)), "")
    rows = text.count("\n") + (not text.endswith("\n"))
    step = int(found[1][1], 16) - int(found[0][1], 16)
    size = rows * step if 0 < step <= 64 else rows * 16
    opening = say(
        f"十六进制转储（hex dump），{rows:,} 行，约 {size:,} 字节",
        f"Hex dump of binary data, {rows:,} lines, about {size:,} bytes",
    )
    return [
        opening
        + (
            say(f"，{kind} 文件", f", an {kind} file" if kind[0] in "AEIO" else f", a {kind} file")
            if kind
            else ""
        )
    ]


def _undecoded(text: str, say: Voice) -> list[str] | None:
    head = text[:4000]
    odd = len(_ODD.findall(head))
    if odd < 0.1 * len(head):
        return None
    words = list(dict.fromkeys(word.strip() for word in _WORD.findall(text[:200_000])))
    parts = [say(f"二进制数据，{len(text):,} 字符", f"Binary data, {len(text):,} characters")]
    if words:
        parts.append(
            say("可读部分：", "Readable: ")
            + say.listed([squeeze(word, 40) for word in words[:60]], len(words), most=200)
        )
    return parts
