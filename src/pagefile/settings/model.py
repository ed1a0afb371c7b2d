"""The settings themselves: plain frozen dataclasses, so that importing Pagefile costs nothing.

The same names stand in `pagefile.toml`, in YAML, in the environment (`PAGEFILE_WINDOW_TOKENS`,
`PAGEFILE_MEMORY__ENABLED`) and, where it makes sense, on the command line.
"""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """Which facts enter a window: the `memory:` keys of document 004."""

    #: False: no facts are offered to any window.
    enabled: bool = True
    #: Facts never take more than this many tokens of a window.
    max_injection_tokens: int = 2000
    #: How many of the latest turns say what the conversation is about.
    max_context_turns: int = 3
    similarity_weight: float = 0.6
    confidence_weight: float = 0.4


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """When a tool result becomes a page (document 000)."""

    #: Results of more characters than this are archived.
    threshold: int = 10_000


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The HTTP service."""

    host: str = "127.0.0.1"
    port: int = 8780
    #: The largest request body, in bytes.
    max_body_bytes: int = 32_000_000


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set; the defaults work offline."""

    #: Where everything is kept.
    url: str = "sqlite:///pagefile.db"
    #: Which tokenizer counts: "o200k_base", "cl100k_base", "qwen", "deepseek", "file:/path/tokenizer.json", "estimate".
    tokenizer: str = "o200k_base"
    #: Defaults of `chat.context()`.
    window_tokens: int = 16_000
    threshold: float = 0.75
    recent_turns: int = 8
    placement: Literal["tail", "head"] = "tail"
    #: "never": windows hold no episodes; "auto": past turns come back when the question touches them.
    recall: Literal["auto", "never"] = "auto"
    #: How many past turns a window may recall.
    recall_turns: int = 3
    #: Upper bound of the word index kept in memory, in postings (about 8 bytes each).
    recall_cache_postings: int = 20_000_000
    #: "full": a recorded turn survives a power cut; "normal": it survives a crash of the process.
    synchronous: Literal["full", "normal"] = "full"
    #: A message (user or assistant) of more characters is refused.
    max_message_chars: int = 2_000_000
    #: A tool result of more characters is refused.
    max_result_chars: int = 64_000_000
    #: How many windows of each conversation `chat.calls()` remembers; 0 keeps none.
    calls_kept: int = 50
    #: What happens when a tier fails while a window is built: "record" writes it into the receipt, "raise" is for tests.
    on_tier_error: Literal["record", "raise"] = "record"
    memory: MemorySettings = field(default_factory=MemorySettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    service: ServiceSettings = field(default_factory=ServiceSettings)
