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
    from pagefile.client.streaming import events_in
    from pagefile.errors import PagefileError
    from pagefile.memory.drafts import checked_json, result_text
    from pagefile.memory.transfer import _check
    from pagefile.models.streaming import _Answer
    from pagefile.settings.sources import load
    from pagefile.standalone.session import SessionValue
    from pagefile.text.anchors import anchors
    from pagefile.text.facts_data import given_facts, sections
    from pagefile.text.facts_rules import own_words, stated
    from pagefile.text.passages import split
    from pagefile.text.sentences import sentences
    from pagefile.text.sources import sources
    from pagefile.text.synopsis import synopsis
    from pagefile.text.times import periods
    from pagefile.text.words import terms
    from pagefile.tiers.workspace.outline import entries
    from pagefile.tiers.workspace.results import hits, page_text, plain, toc_of
    from pagefile.window.placeholder import gist, placeholder_uuid

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
        read = plain(value)
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
    atheris.Setup([sys.argv[0], *limits], READERS[options.name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
