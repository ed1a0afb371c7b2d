"""How many tokens a text costs: every budget in Pagefile uses these numbers.

Counts are exact if a vocabulary is available; otherwise the counter's name says `estimate`.
"""

import threading

from pagefile.errors import SettingsError
from pagefile.text.token_counters import CachedCounter, EstimateCounter, TokenCounter
from pagefile.text.vocabularies import ENCODINGS, open_deepseek, open_encoding, open_file, open_qwen

__all__ = [
    "KNOWN_COUNTERS",
    "MESSAGE_OVERHEAD",
    "REPLY_OVERHEAD",
    "CachedCounter",
    "EstimateCounter",
    "TokenCounter",
    "message_tokens",
    "open_counter",
]

#: The cost of a chat message besides its content in OpenAI's published chat format: three tokens of framing,
#: one of role.
MESSAGE_OVERHEAD = 4
#: The tokens that prime every reply in the same format.
REPLY_OVERHEAD = 3

#: What `open_counter` accepts, for people to read.
KNOWN_COUNTERS = (*ENCODINGS, "qwen", "qwen:MODEL", "deepseek", "file:/path/tokenizer.json", "estimate")

_opened: dict[tuple[str, str | None], TokenCounter] = {}
_opening = threading.Lock()


def message_tokens(content_tokens: int) -> int:
    """The cost of a chat message whose content has this many tokens."""
    return content_tokens + MESSAGE_OVERHEAD


def open_counter(name: str = "o200k_base", *, ranks_dir: str | None = None) -> TokenCounter:
    """The counter of that name, opened once per process.

    `cl100k_base` and `o200k_base` come from rs-bpe, else from tiktoken if its rank file is on disk (in
    `ranks_dir` as `o200k_base.tiktoken` or under tiktoken's cache name, or in tiktoken's default cache), else
    they are estimated, and the name ends in `~estimate`. Nothing is ever downloaded. An unknown name raises
    `SettingsError`, a missing optional package `MissingExtraError`.
    """
    with _opening:  # held while a vocabulary loads, so that it loads once
        counter = _opened.get((name, ranks_dir))
        if counter is None:
            counter = _opened[name, ranks_dir] = _open(name, ranks_dir)
        return counter


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
