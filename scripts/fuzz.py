"""Fuzz a reader of text or files, guided by coverage: `python scripts/fuzz.py NAME --seconds 60`.

Needs atheris, which is in no lock because only this script uses it: `uv pip install atheris` (or pip). Whatever a reader raises
that is not Pagefile's own stops the run and prints the bytes: make an example of them in tests/fuzz first, then mend it.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

try:
    import atheris
except ImportError:
    sys.exit(
        "atheris is not installed here: run `uv pip install atheris` (or `pip install atheris`), then try again."
    )

with atheris.instrument_imports(include=["pagefile"]):
    from pagefile.client.transport import events_in
    from pagefile.engine import Memory
    from pagefile.engine.arguments import checked_json, result_text
    from pagefile.engine.importer import _check
    from pagefile.errors import PagefileError
    from pagefile.models.chat import _Answer
    from pagefile.settings.sources import load
    from pagefile.standalone.session import SessionValue
    from pagefile.text.extract import anchors
    from pagefile.text.fact_data import given_facts, sections
    from pagefile.text.fact_rules import own_words, stated
    from pagefile.text.passages import split
    from pagefile.text.sentences import sentences
    from pagefile.text.sources import sources
    from pagefile.text.synopsis import synopsis
    from pagefile.text.times import periods
    from pagefile.text.words import terms
    from pagefile.tiers.workspace.outline import entries
    from pagefile.tiers.workspace.results import hits, page_text, to_json, toc_of
    from pagefile.window.placeholder import gist, placeholder, placeholder_uuid, short_placeholder

_FOLDER = Path(tempfile.mkdtemp(prefix="pagefile-fuzz-"))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape" if data[:1] == b"\x01" else "replace")


def placeholders(data: bytes) -> None:
    """Placeholders and what only looks like one."""
    text = "📎 [" + _text(data)
    placeholder_uuid(text)
    gist(text)
    own_words(text)


def times(data: bytes) -> None:
    """Stretches of time in a question."""
    found, _ = periods(_text(data), date(2026, 5, 6))
    assert all(period.first <= period.last for period in found)


def passages(data: bytes) -> None:
    """Passages, sentences, words, anchors and sources of a text."""
    text = _text(data)
    assert text == "".join(passage.text for passage in split(text, target_chars=20, max_chars=60))
    assert text == "".join(sentences(text))
    synopsis(text)
    sources(text)
    anchors(text)
    terms(text)
    stated(text)


def results(data: bytes) -> None:
    """What a tool returned, as text and as JSON."""
    text = _text(data)
    for value in (text, data, _json(text)):
        result_text(value).encode()
        read = to_json(value)
        hits(read)
        page_text(read)
        entries(toc_of(read))
        _ours(lambda value=value: checked_json(value, "input"))


def imports(data: bytes) -> None:
    """An export: the bytes as a file, and as the lines behind a good first one."""
    file = _FOLDER / "in.jsonl"
    for content in (data, b'{"type":"pagefile-export","version":1}\n' + data):
        file.write_bytes(content)
        _ours(lambda: _check(file, "t", "it"))


def memories(data: bytes) -> None:
    """A memory.json, and a session of a cache."""
    value = _json(_text(data))
    given_facts(value)
    list(sections(value))
    if isinstance(value, dict):
        SessionValue.of(value)


def streams(data: bytes) -> None:
    """The events of a service, and the chunks of a model."""

    async def lines() -> Any:
        for line in [*_text(data).split("\n"), ""]:
            yield line

    async def read() -> None:
        async for _ in events_in(lines()):
            pass

    _ours(lambda: asyncio.run(read()))
    answer = _Answer("m")
    for piece in _text(data).split("\0"):
        delta = SimpleNamespace(content=piece, tool_calls=None)
        answer.take(SimpleNamespace(choices=[SimpleNamespace(finish_reason=None, delta=delta)]))


def settings(data: bytes) -> None:
    """Settings files."""
    for suffix in (".toml", ".yaml"):
        file = _FOLDER / f"pagefile{suffix}"
        file.write_bytes(data)
        _ours(lambda file=file: load(file=file, environ={}))


READERS: dict[str, Callable[[bytes], None]] = {
    reader.__name__: reader
    for reader in (placeholders, times, passages, results, imports, memories, streams, settings)
}


#: What readers are there for, to begin with: chance alone does not come upon a date, a table or a first line. What Pagefile
#: itself writes is not among them: it is made.
SEEDS: dict[str, tuple[str, ...]] = {
    "times": (
        "What did we say last May, three weeks ago, and on 2026-03-04?",
        "上周三说的那个导演是谁？去年五月、前天晚上和三个月前呢？",
        "between 12 March 2025 and the first week of April",
    ),
    "passages": (
        "# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint(1)\n```\n- one\n- two\n",
        "我叫李雷，我喜欢喝茶。不对，应该是咖啡。I prefer tea! See https://example.org/a?b=c or call 555-1234.",
        "<table><tr><td>a</td></tr></table> Dr. Wu paid $1,234.50 on 2026-05-06 (order #A-77).",
        'name,"quoted\nline",3\nx,y,z\n',
    ),
    "results": (
        '[{"title": "第一章", "page": 3, "score": 0.5, "content": "text"}, {"id": 1, "rrf": 0.016}]',
        '{"results": [{"text": "a", "bm25": 12.5}], "toc": [{"title": "1.1 Pumps", "children": []}]}',
        "1 Introduction ........ 3\n1.1 Scope ........ 4\n第二章 方法 12",
    ),
    "memories": (
        '{"facts": [{"id": "f", "content": "喜欢茶", "category": "preference", "confidence": 0.9}]}',
        '{"user": {"workContext": {"summary": "w"}}, "history": {"recentMonths": {"summary": "m"}}}',
        '{"session_id": "s", "messages": [{"role": "user", "content": "hi"}], "version": 3}',
    ),
    "streams": (
        'event: token\ndata: {"text": "你"}\n\n: beat\n\nid: 3\ndata: a\ndata: b\n\nevent: done\ndata: {}\n\n',
        "data: [DONE]\r\n\r\nretry: 10\n\n",
    ),
    "settings": (
        'url = "sqlite:///a.db"\nwindow_tokens = 4000\n[archive]\npage_from = 300\n',
        "url: sqlite:///a.db\nmemory:\n  extract: rules\nembedder: {name: none}\n",
    ),
}


def _ours(work: Callable[[], object]) -> None:
    """Pagefile's own errors are answers."""
    try:
        work()
    except PagefileError:
        return


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


async def _written() -> dict[str, tuple[str, ...]]:
    """Placeholders and the lines of an export, as Pagefile writes them."""
    async with Memory.open("memory://", embedder=None) as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.record(
            "查一下水泵", "好的", steps=[{"tool": "search", "input": {"q": 1}, "result": "水泵 pump. " * 900}]
        )
        await chat.record("I prefer tea.", "Noted.")
        await chat.checkpoint("They spoke of pumps.", recent_turns=1)
        await chat.reset()
        await memory.remember("Likes tea.", user_id="u")
        await memory.export(_FOLDER / "out.jsonl")
        pages = await chat.pages()
    lines = (_FOLDER / "out.jsonl").read_text(encoding="utf-8").splitlines()
    # The reader puts their first characters before what it is given.
    shown = [placeholder(page) for page in pages] + [short_placeholder(page) for page in pages]
    return {
        "imports": (*lines[1:], "\n".join(lines[1:])),
        "placeholders": tuple(text.removeprefix("📎 [") for text in shown),
    }


def _seeded(name: str) -> Path:
    folder = _FOLDER / "seeds"
    folder.mkdir()
    seeds = SEEDS | asyncio.run(_written())
    for number, text in enumerate(seeds[name]):
        (folder / str(number)).write_text(text, encoding="utf-8")
    return folder


def main() -> None:
    """Fuzz one reader, or each in turn."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("name", choices=READERS)
    given.add_argument("--seconds", type=int, default=60)
    options = given.parse_args()
    limits = [
        f"-max_total_time={options.seconds}",
        "-max_len=4096",
        "-timeout=20",
        f"-artifact_prefix={_FOLDER}/",
    ]
    atheris.Setup([sys.argv[0], *limits, str(_seeded(options.name))], READERS[options.name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
